#!/usr/bin/env bash
# Connects clients of PostgreSQL to `evenkeel serve`, and many of them at a time. Needs Python 3.10
# or later and its package index.
#   tests/python/run_serve.sh PATH_TO_EVENKEEL_BINARY [SECONDS_OF_LOAD]
# Packages go into an environment, kept in SERVE_VENV [default: serve-venv in the target folder].
set -euo pipefail
binary=$(realpath "${1:?the path of the evenkeel binary}")
here=$(cd "$(dirname "$0")" && pwd)
venv=${SERVE_VENV:-${CARGO_TARGET_DIR:-$here/../../target}/serve-venv}

# PostgreSQL itself, with psql, is among the packages; the extension of DuckDB is made for one
# version of it.
packages=(adbc-driver-postgresql==1.13.0 asyncpg==0.32.0 duckdb==1.5.5 duckdb-extension-postgres-scanner==1.5.5
    pgserver==0.1.4 "psycopg[binary]==3.3.9" pyarrow==26.0.1 sqlalchemy==2.1.9 trustme==1.2.1)
if ! grep -qsxF "${packages[*]}" "$venv/packages"; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
    echo "${packages[*]}" > "$venv/packages"
fi
# The server of PostgreSQL keeps its socket there.
mkdir -p -m 700 "$venv/run"
export XDG_RUNTIME_DIR="$venv/run"
"$venv/bin/python" "$here/serve.py" "$binary"
exec "$venv/bin/python" "$here/serve_load.py" "$binary" --seconds "${2:-20}"
