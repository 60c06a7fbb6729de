#!/usr/bin/env bash
# Random tables and statements, the answers of evenkeel against those of DuckDB over the raw rows.
# Needs Python 3 with venv.
#
#   tests/python/run_differential.sh [--statements N] [--seed N] [--seconds N]
set -euo pipefail
cd "$(dirname "$0")/../.."
target="${CARGO_TARGET_DIR:-target}"
python="$target/duckdb-venv/bin/python"

if ! "$python" -c 'import duckdb' 2>/dev/null; then
    python3 -m venv "$target/duckdb-venv"
    "$python" -m pip install --quiet --disable-pip-version-check -r tests/python/duckdb.txt
fi
server="$(cargo test --locked --test it --no-run --message-format=json 2>"$target/differential-build.log" |
    "$python" -c 'import json, sys; print([m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable") and m["target"]["name"] == "it"][-1])')"
exec "$python" tests/python/differential.py "$target/debug/evenkeel" "$server" "$@"
