#!/bin/sh
# The reference as HTML, from the headers and the manual's pages: docs.sh FOLDER. A warning is a failure.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/docs}
mkdir -p "$out"
version=$(sed -n 's/^#define KITH_VERSION "\(.*\)"/\1/p' include/kith/version.h)
{ cat docs/Doxyfile; printf 'OUTPUT_DIRECTORY = "%s"\nPROJECT_NUMBER = %s\n' "$out" "$version"; } | doxygen -
echo "$out/html/index.html"
