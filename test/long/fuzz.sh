#!/bin/bash
# Every fuzz target for a while, from its corpus: fuzz.sh [SECONDS [TARGET…]]
#
# Builds build/fuzz with clang and runs each target (NAME of test/fuzz/fuzz_NAME.c) for SECONDS. Inputs that reach new
# code are kept in build/fuzz/grown/NAME and used next time; findings in build/fuzz/found: one that is understood becomes
# a file of test/corpus/NAME. Exits 1 when there was one.
#
# With SLICE set, each target reads 20,000 inputs that follow from SEED and the corpus alone: what .ci/run says depends on the
# change, not on luck or on the machine's speed.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-60}
[ $# -gt 0 ] && shift
cmake -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DKITH_FUZZ=ON >/dev/null || exit 1
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(cd test/fuzz && for f in fuzz_*.c; do f=${f#fuzz_}; echo "${f%.c}"; done)
# shellcheck disable=SC2046
cmake --build build/fuzz --target $(printf 'fuzz_%s ' "$@") >build/fuzz/build.log 2>&1 || {
    tail -20 build/fuzz/build.log
    exit 1
}
mkdir -p build/fuzz/found
n_findings=0 total=0
for name; do
    grown=build/fuzz/grown/$name
    how=-max_total_time=$seconds
    if [ -n "${SLICE:-}" ]; then
        grown=build/fuzz/slice/$name
        rm -rf "$grown"
        how="-seed=${SEED:-1} -runs=20000"
    fi
    mkdir -p "$grown"
    corpus=test/corpus/$name
    [ -d "$corpus" ] || corpus=
    # shellcheck disable=SC2086
    build/fuzz/test/fuzz_"$name" $how -timeout=120 -rss_limit_mb=2048 -malloc_limit_mb=512 \
        -print_final_stats=1 -artifact_prefix="build/fuzz/found/$name-" "$grown" $corpus \
        >"build/fuzz/$name.log" 2>&1
    status=$?
    n=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log")
    total=$((total + ${n:-0}))
    if [ $status -eq 0 ]; then
        echo "fuzz_$name: ${n:-0} inputs, no finding"
    else
        n_findings=$((n_findings + 1))
        echo "fuzz_$name: ${n:-0} inputs, FINDING (build/fuzz/$name.log)"
        grep -E 'ERROR|SUMMARY|runtime error|^ *#[0-9]+ 0x|Test unit written|^Base64' "build/fuzz/$name.log" | cut -c 1-2000 | head -30
    fi
done
echo "fuzz: $total inputs, $n_findings findings"
[ $n_findings -eq 0 ]
