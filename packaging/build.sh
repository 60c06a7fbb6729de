#!/usr/bin/env bash
# Makes the packages of this version from a clean checkout: a wheel with the Python package and the
# program, a Debian package, and an archive with the program, its manual pages and completions, with
# their checksums.
#   packaging/build.sh [FOLDER]      [default: dist]
# Needs Rust, a C compiler, Python 3.10 or later with venv and its package index, and for the Debian
# package dpkg-dev. The wheel runs on Linux with the C library of this machine or a later one; with
# PACKAGE_ZIG=1 it is linked by zig for glibc 2.17, which takes a build of all libraries of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(mkdir -p "${1:-dist}" && realpath "${1:-dist}")
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
platform=$(uname -m)-linux-gnu
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

step "the program"
# Together with the library of the wheel, so that both have one build of the libraries below them.
cargo build --release --locked --package evenkeel --package evenkeel-python --bin evenkeel --lib \
    --features evenkeel/cloud,evenkeel/serve
program="$target/release/evenkeel"

step "the archive"
folder="$stage/evenkeel-$version-$platform"
mkdir -p "$folder/completions" "$folder/man"
cp "$program" README.md LICENSE CHANGELOG.md "$folder"
"$program" man "$folder/man"
"$program" completions bash > "$folder/completions/evenkeel.bash"
"$program" completions zsh > "$folder/completions/_evenkeel"
"$program" completions fish > "$folder/completions/evenkeel.fish"
# The same files make the same archive.
changed=$(git log -1 --format=%ct 2>/dev/null || date +%s)
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$changed" -C "$stage" -c "$(basename "$folder")" |
    gzip -9n > "$dist/$(basename "$folder").tar.gz"

step "the wheel"
tools="$target/package-tools"
[ -x "$tools/bin/maturin" ] || python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check maturin==1.16.0 ziglang==0.15.2
linked=()
[ -z "${PACKAGE_ZIG:-}" ] || linked=(--zig --compatibility manylinux_2_17)
# lld, the linker on this processor, keeps one of several equal functions.
folded=()
[ "$(uname -m)" != x86_64 ] || [ -n "${PACKAGE_ZIG:-}" ] || folded=(-- -C link-arg=-Wl,--icf=all)
(cd python && PATH="$tools/bin:$PATH" maturin build --release --locked --compression-level 9 --out "$dist" \
    "${linked[@]}" "${folded[@]}")

wheel=$(ls "$dist/evenkeel-$version"-*.whl)
[ "$(stat -c %s "$wheel")" -le 60000000 ] || { echo "$wheel has more than 60 MB"; exit 1; }

if command -v dpkg-deb > /dev/null; then
    step "the Debian package"
    command -v cargo-deb > /dev/null || cargo install --locked --quiet --root "$target/package-tools" cargo-deb@3.8.0
    # Where Cargo.toml says that these files are.
    rm -rf target/package
    mkdir -p target/package
    cp -r "$folder/man" "$folder/completions" target/package
    {
        printf 'evenkeel (%s-1) unstable; urgency=medium\n\n  * Changes are in CHANGELOG.md.\n\n' "$version"
        printf ' -- The evenkeel developers <evenkeel@example.org>  %s\n' "$(date -Rud "@$changed")"
    } > target/package/changelog
    PATH="$target/package-tools/bin:$PATH" cargo deb --no-build --locked --output "$dist"
fi

step "checksums"
(cd "$dist" && sha256sum "evenkeel-$version"* "evenkeel_$version"* > SHA256SUMS && cat SHA256SUMS && ls -l)
