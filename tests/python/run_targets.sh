#!/usr/bin/env bash
# Runs the statements that `evaluate --target` writes on ClickHouse, PostgreSQL and parsers, and
# reads files that real systems write. Needs Python 3.10 or later and its package index.
#   tests/python/run_targets.sh PATH_TO_EVENKEEL_BINARY
# Packages go into an environment, kept in TARGETS_VENV [default: targets-venv in the target
# folder].
set -euo pipefail
binary=$(realpath "${1:?the path of the evenkeel binary}")
here=$(cd "$(dirname "$0")" && pwd)
venv=${TARGETS_VENV:-${CARGO_TARGET_DIR:-$here/../../target}/targets-venv}

packages=(chdb==4.4.0 cramjam==2.14.0 duckdb==2.0.0 fastavro==1.12.2 pgserver==0.1.4 pyarrow==26.0.1 sqlglot==30.30.0)
if ! grep -qsxF "${packages[*]}" "$venv/packages"; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
    echo "${packages[*]}" > "$venv/packages"
fi
"$venv/bin/python" "$here/exports.py" "$binary"
exec "$venv/bin/python" "$here/targets.py" "$binary"
