#!/bin/sh
# Fail when a source does not open with a comment that says what it is for: check-openings.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/..}"
find bench examples include src test \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' \) -type f |
    sort | xargs awk '
    FNR == 1 && !/^\/[*\/].*[A-Za-z]/ { printf "%s:1: opens without a line that says what it is for\n", FILENAME; n_wrong++ }
    END { exit n_wrong > 0 }
'
