#!/bin/sh
# The tree in a folder with blanks and other letters: built, tested, renamed, built and tested again: paths.sh [REGEX].
# REGEX chooses the tests (default: all). The last line counts.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
tests=${1:-.}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
first="$folder/ein Käse, с хлебом"
second="$folder/renamed twice"
mkdir "$first"
(cd "$here" && git ls-files -z | xargs -0 cp --parents -t "$first")
# The shared material lies beside the checkout.
if [ -e "$here/../shared" ]; then ln -s "$(cd "$here/../shared" && pwd)" "$folder/shared"; fi
make -C "$first" CMAKE_FLAGS=-DKITH_CUDA=OFF >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
make -C "$first" test T="$tests" >"$folder/log" 2>&1 || { grep -a FAILED "$folder/log" | head -n 40; exit 1; }
before=$(tail -n 1 "$folder/log")
mv "$first" "$second"
make -C "$second" test T="$tests" >"$folder/log" 2>&1 || { grep -a FAILED "$folder/log" | head -n 40; exit 1; }
grep -q 'it is configured again' "$folder/log" || { echo "the moved build was not noticed"; exit 1; }
grep -q '^KITH_CUDA:.*=OFF' "$second/build/CMakeCache.txt" || { echo "the options were lost"; exit 1; }
echo "$before; after a move $(tail -n 1 "$folder/log")"
