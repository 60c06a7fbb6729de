#!/usr/bin/env bash
# Compares the rows of the 22 queries of TPC-H with those of DuckDB. Needs Python 3 and its package
# index.
#   tests/python/run_tpch.sh PATH_TO_EVENKEEL_BINARY [arguments of tpch.py]
# Packages go into TPCH_VENV [default: .tpch-venv in the system's temporary folder].
set -euo pipefail
binary=$(realpath "${1:?the path of the evenkeel binary}")
shift
here=$(cd "$(dirname "$0")" && pwd)
venv=${TPCH_VENV:-${TMPDIR:-/tmp}/.tpch-venv}
if [ ! -x "$venv/bin/tpchgen-cli" ]; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/duckdb.txt" tpchgen-cli==4.0.0
fi
exec "$venv/bin/python" "$here/tpch.py" "$binary" "$@"
