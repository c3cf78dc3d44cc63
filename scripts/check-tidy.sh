#!/bin/sh
# Run clang-tidy (.clang-tidy) over the library and the program as build/ compiles them:
# check-tidy.sh [FILE…]
set -eu
cd "$(dirname "$0")/.."
[ -e build/compile_commands.json ] || { echo "no build/ to check: run make first" >&2; exit 1; }
if [ "$#" -gt 0 ]; then printf '%s\0' "$@"; else git ls-files -z 'src/*.c' ':!src/backend/cuda/'; fi |
    xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet -p build 2>/dev/null
