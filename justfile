# The usual commands; `just` lists them.

default:
    @just --list

# Everything that must be green before a change lands.
ci:
    .ci/run

# All tests.
test:
    cargo test

# Format and lint.
lint:
    cargo fmt --all -- --check
    cargo clippy --all-targets --locked -- -D warnings

# The main job.
demo *ARGS:
    cargo run --release -- demo {{ARGS}}

# Benches; an argument picks some, as in `just bench hash`.
bench *FILTER:
    cargo bench -- {{FILTER}}

# The documentation of the library.
doc:
    cargo doc --no-deps --open
