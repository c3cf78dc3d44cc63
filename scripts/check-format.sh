#!/bin/sh
# Fail when a tracked C file is not laid out as .clang-format says (make format does it).
set -eu
cd "$(dirname "$0")/.."
git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' | xargs -0 clang-format --dry-run -Werror
