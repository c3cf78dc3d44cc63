#!/bin/sh
# The public structs that have a body, one to a line as X(NAME), from the headers alone: list-structs.sh [INCLUDE]
# From it comes kith_struct_bytes, with which bindings check that they lay structs out as the library does.
set -eu
cd "${1:-$(dirname "$0")/../include}"
find kith -name '*.h' ! -path 'kith/experimental/*' | LC_ALL=C sort |
    xargs sed -n 's/^typedef struct \(kith_[a-z0-9_]*\) {.*/X(\1)/p'
