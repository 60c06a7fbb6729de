#!/usr/bin/env bash
# Reads exported tables with deltalake, Polars and DuckDB. Needs Python 3.10 or later and its
# package index.
#   tests/python/run_delta.sh PATH_TO_EVENKEEL_BINARY
# Packages go into two environments, kept in DELTA_VENV [default: .delta-venv in the system's
# temporary folder].
set -euo pipefail
binary=$(realpath "${1:?the path of the evenkeel binary}")
here=$(cd "$(dirname "$0")" && pwd)
venv=${DELTA_VENV:-${TMPDIR:-/tmp}/.delta-venv}

environment() {
    local place=$1
    shift
    if ! grep -qsxF "$*" "$place/packages"; then
        python3 -m venv --clear "$place"
        "$place/bin/pip" install --quiet --disable-pip-version-check "$@"
        echo "$*" > "$place/packages"
    fi
}
environment "$venv/readers" deltalake==1.6.6 polars==2.1.0 duckdb==2.0.0 pyarrow==26.0.1
# The Delta extension of DuckDB as a package; it is made for one version of DuckDB.
environment "$venv/extension" duckdb==1.5.5 duckdb-extension-delta==1.5.5 pyarrow==26.0.1
exec "$venv/readers/bin/python" "$here/delta.py" "$binary" "$venv/extension/bin/python"
