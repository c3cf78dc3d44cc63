#!/bin/sh
# Some tests under ThreadSanitizer, building only those: tsan.sh TEST… (make tsan builds and runs all of them)
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || { sed -n 2p "$0" >&2; exit 2; }
cmake --preset tsan
cmake --build build/tsan --target kith_program "$@"
scripts/test.sh build/tsan "^($(echo "$*" | tr ' ' '|'))\$"
