#!/bin/sh
# An index, and the compressed scan inside it, beside hnswlib and usearch on the same rows: search.sh [FOLDER [RECALL]] (build/search, 0.95)
# Needs the rows of bench/search_rows.sh in FOLDER, g++ and libhnswlib-dev; USEARCH=FOLDER of usearch's sources (npm pack usearch, unpacked)
# for the third. hnswlib: M = 16, efConstruction = 200, -O3 -march=native. Every program takes the best of several rounds; the numbers
# in brackets are by processor time, for machines that others use too.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/search}
recall=${2:-0.95}
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
programs=build/bench
ninja -C build search_rows search_scan search_index search_churn search_growth >/dev/null
flags="-O3 -march=native -fopenmp -Ibench"
# shellcheck disable=SC2086 # words of flags
if [ -f /usr/include/hnswlib/hnswlib.h ]; then g++ $flags bench/search_hnsw.cpp -o $programs/search_hnsw; fi
if [ -n "${USEARCH:-}" ]; then
    # Without its own kernels, which need a newer compiler than Debian 12's.
    g++ -std=c++17 -Ofast -march=native -fopenmp -DUSEARCH_USE_NUMKONG=0 -DUSEARCH_USE_OPENMP=0 -Ibench \
        "-I$USEARCH/include" "-I$USEARCH/c" bench/search_usearch.cpp "$USEARCH/c/lib.cpp" -o $programs/search_usearch
fi
# compare PREFIX FILE.npy…
compare() {
    prefix=$1
    shift
    [ -f "$1" ] || return 0
    [ -f "$prefix.truth" ] || $programs/search_rows "$prefix" 1000 "$@"
    rm -rf "$prefix.kith"
    $programs/search_index "$prefix" "$prefix.kith" "$recall"
    $programs/search_scan "$prefix" 1 0 "$recall" 0.99
    if [ -x $programs/search_hnsw ]; then $programs/search_hnsw "$prefix" "$recall"; fi
    if [ -n "${USEARCH:-}" ]; then $programs/search_usearch "$prefix" "$recall"; fi
    $programs/search_churn "$prefix"
}
compare "$folder/glyphs" "$folder"/glyphs-*.npy
compare "$folder/cub" "$folder"/cub-*.npy
# Growth: GROWTH="10000 100000 1000000 10000000"; above ten million rows in parts of ten million.
[ -z "${GROWTH:-}" ] || $programs/search_growth
for n in ${GROWTH:-}; do
    rm -rf "$folder/growth.kith"
    $programs/search_growth "$folder/growth.kith" "$n" 10000000
done
rm -rf "$folder/growth.kith"
