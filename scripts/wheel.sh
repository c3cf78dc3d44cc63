#!/bin/sh
# The Python package as a wheel with everything inside: wheel.sh [OUT], by default build/wheel
#
# libkith, the program, plugins and the libraries these need, which get names of their own (python/make/bundle.py). The wheel is tagged for
# the highest glibc symbol of any file inside. docs/adr/0131 says why it is made this way.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=scripts/epoch.sh
. scripts/epoch.sh
out=${1:-build/wheel} python=${PYTHON:-/usr/bin/python3}
fail() { echo "wheel.sh: $*" >&2; exit 1; }
command -v patchelf >/dev/null || fail "patchelf is missing: scripts/setup.sh dist"
"$python" -c 'import cffi, numpy, tomllib' || fail "it needs python3 (3.11 or newer) with cffi and numpy: scripts/setup.sh python"
mkdir -p "$out"
out=$(cd "$out" && pwd)
version=$(sed -n 's/^#define KITH_VERSION "\(.*\)"$/\1/p' include/kith/version.h)
scripts/stage.sh "$out/stage" -DKITH_PYTHON="$python"
cmake --build build/stage --target kith_python >>"$out/stage.log" 2>&1 || { tail "$out/stage.log"; fail "the build failed"; }
"$python" python/make/bundle.py "$out/stage"
scripts/check-dist.sh "$out/stage" >"$out/versions.tsv"
glibc=$(tail -n 1 "$out/versions.tsv" | cut -f 1)
rm -rf "$out/stage/include" "$out/stage/lib/pkgconfig" "$out/stage/share/man" "$out/stage/share/bash-completion" \
    "$out/stage/share/zsh" "$out/stage/share/fish"
scripts/spdx.sh "$out/stage" kith-metric "$version" >"$out/kith-metric-$version.spdx"
cp "$out/kith-metric-$version.spdx" "$out/stage/share/doc/kith/"
rm -f "$out"/*.whl
"$python" python/make/wheel.py build/stage/python/kith "$out" --stage "$out/stage" \
    --tag "manylinux_$(echo "$glibc" | tr . _)_$(uname -m)"
