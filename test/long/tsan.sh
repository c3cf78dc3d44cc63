#!/bin/sh
# Some tests under ThreadSanitizer, building only those: tsan.sh TEST… (make tsan builds and runs all of them)
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || { sed -n 2p "$0" >&2; exit 2; }
cmake --preset tsan
names="^($(echo "$*" | tr ' ' '|'))\$"
scripts/build-tests.sh build/tsan "$names"
# As make tsan: oneDNN and OpenBLAS are not instrumented.
export TSAN_OPTIONS=ignore_noninstrumented_modules=1 TIMEOUT="${TIMEOUT:-600}"
scripts/test.sh build/tsan "$names"
