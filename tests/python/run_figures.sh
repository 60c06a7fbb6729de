#!/usr/bin/env bash
# Checks the figures of `evaluate` against DuckDB on random exports. Needs Python 3.10 or later and
# its package index.
#   tests/python/run_figures.sh PATH_TO_EVENKEEL_BINARY [EXPORTS [SEED]]
# Packages go into an environment, kept in FIGURES_VENV [default: figures-venv in the target
# folder].
set -euo pipefail
binary=$(realpath "${1:?the path of the evenkeel binary}")
here=$(cd "$(dirname "$0")" && pwd)
venv=${FIGURES_VENV:-${CARGO_TARGET_DIR:-$here/../../target}/figures-venv}

packages=(duckdb==2.0.0 xxhash==4.1.0)
if ! grep -qsxF "${packages[*]}" "$venv/packages"; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
    echo "${packages[*]}" > "$venv/packages"
fi
exec "$venv/bin/python" "$here/figures.py" "$binary" "${2:-60}" "${3:-1}"
