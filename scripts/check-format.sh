#!/bin/sh
# Fail when a tracked C file, or the code of docs/adding-*.md, is not laid out as .clang-format says (make format does the files).
set -eu
cd "$(dirname "$0")/.."
git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' | xargs -0 clang-format --dry-run -Werror
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp .clang-format "$folder"
awk -v root=. -v out="$folder" -f test/pages/cut.awk docs/adding-*.md >"$folder/list"
cd "$folder"
grep -E '\.(c|h|cu)$' list | xargs clang-format --dry-run -Werror
