#!/usr/bin/env bash
# A rustdoc for `cargo test` that writes the documentation of a crate, warnings denied, before it
# runs the crate's examples: from the same build of the libraries, while `cargo doc` needs another
# one.
#
#   RUSTDOC="$PWD/tests/rustdoc.sh" cargo test --doc
set -euo pipefail

document=()
examples=false
skip=false
for argument in "$@"; do
    if $skip; then
        skip=false
        continue
    fi
    case $argument in
        --test) examples=true ;;
        --test-run-directory | --test-runtool | --test-args) skip=true ;;
        --test-* | --nocapture | --no-run) ;;
        *) document+=("$argument") ;;
    esac
done
if $examples; then
    rustdoc "${document[@]}" -D warnings --out-dir "${CARGO_TARGET_DIR:-target}/doc"
fi
exec rustdoc "$@"
