#!/usr/bin/env bash
# Builds the Python package, installs it into a fresh environment and runs its tests. Needs Rust,
# Python 3.11 or later with venv, and its package index.
#   tests/python/run_package.sh [WHEEL] [PYTEST_ARGUMENT...]
# Without a wheel, one is built as `cargo test` builds, in the same target folder. The packages of
# other projects go into an environment that is kept, PACKAGE_VENV [default: package-venv in the
# target folder]; the wheel into one that is made anew.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$(realpath "$here/../..")
target=$(realpath -m "${CARGO_TARGET_DIR:-$project/target}")
venv=${PACKAGE_VENV:-$target/package-venv}

packages=(maturin==1.16.0 pytest==9.2.0 pyarrow==26.0.1 pandas==3.1.1 polars==2.1.0 duckdb==2.0.1 datafusion==55.0.0
    matplotlib==3.11.2 mypy==2.4.1)
if ! grep -qsxF "${packages[*]}" "$venv/packages"; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
    echo "${packages[*]}" > "$venv/packages"
fi

wheel=
if [[ ${1:-} == *.whl ]]; then
    wheel=$(realpath "$1")
    shift
fi
if [ -z "$wheel" ]; then
    rm -rf "$target/wheels"
    # With the features that tests have, so that libraries are not built again. Stored rather than
    # compressed: it is large. maturin ignores the compiler of the workspace under its usual name.
    [ -z "${RUSTC_WORKSPACE_WRAPPER:-}" ] || export CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER="$RUSTC_WORKSPACE_WRAPPER"
    (cd "$project/python" && "$venv/bin/maturin" build --profile dev --locked --features cluster --auditwheel skip \
        --compression-method stored --out "$target/wheels")
    wheel=$(echo "$target"/wheels/evenkeel-*.whl)
fi

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
python3 -m venv "$fresh/venv"
"$fresh/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$wheel"
# What it installs works without any other package.
(cd "$fresh" && "$fresh/venv/bin/evenkeel" demo --rows 2000 > demo.txt && grep -q verdict demo.txt)
(cd "$fresh" && "$fresh/venv/bin/python" -c 'import evenkeel; evenkeel.Table')
# The packages that it works with.
echo "$venv/lib/$(ls "$venv/lib")/site-packages" > "$fresh/venv/lib/$(ls "$fresh/venv/lib")/site-packages/others.pth"
"$fresh/venv/bin/python" -m mypy --config-file "$project/python/pyproject.toml"
cd "$project/python/tests"
"$fresh/venv/bin/python" -m pytest -q --rootdir "$project/python" -p no:cacheprovider . "$@"
"$fresh/venv/bin/python" -m pytest -q -p no:cacheprovider --doctest-modules --pyargs evenkeel
