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
    cargo clippy --workspace --all-targets --locked -- -D warnings

# The main job.
demo *ARGS:
    cargo run --release -- demo {{ARGS}}

# Benches; an argument picks some, as in `just bench hash`.
bench *FILTER:
    cargo bench -- {{FILTER}}

# The same work beside DuckDB, ClickHouse and Polars, as in `just peers --runs 3 --only ingest`.
peers *ARGS:
    python3 benches/peers/run.py {{ARGS}}

# The documentation of the library.
doc:
    cargo doc --no-deps --open

# The Python package, built and tested in an environment of its own.
python *ARGS:
    tests/python/run_package.sh {{ARGS}}

# The wheel, the Debian package and the archive, in dist/.
package:
    packaging/build.sh
