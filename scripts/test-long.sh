#!/usr/bin/env bash
# The long tests: what takes minutes, or looks for what only many tries find (docs/testing.md).
#
#     scripts/test-long.sh [PART…]              all parts: about an hour on two cores
#     SLICE=1 scripts/test-long.sh [PART…]      the same in seconds a part: what .ci/run runs
#
# A part's whole output goes to build/long/PART.log, and the last line of it says what was counted (inputs, crashes,
# hangs, leaks …). That line, with verdict and seconds before it, goes to the terminal and to build/long/summary.txt.
# A part that ends with status 77 cannot run here and is counted as skipped. One whose script or tool is missing, that
# ends with another status than 0, takes longer than its limit or says nothing, failed: the end of its log follows, and the exit
# status is 1.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# Threads that wait must not spin; parts that can do less in a slice look at SLICE.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" SLICE="${SLICE:-}" SEED="${SEED:-1}"
long=${LONG_FOLDER:-build/long}

# part, limit in seconds, the whole command; then limit and command of the slice.
table=${LONG_TABLE:-"
fuzz          | 5400 | test/long/fuzz.sh 120               | 600 | test/long/fuzz.sh
commands      | 1200 | test/long/fuzz_commands.sh 300 $SEED | 120 | test/long/fuzz_commands.sh 20 $SEED
kills         | 1800 | test/long/kills.sh 100              | 180 | test/long/kills.sh 5
ranks         | 1800 | test/long/ranks.sh 20               | 300 | test/long/ranks.sh 2
soak          | 1200 | test/long/soak.sh 300               | 240 | test/long/soak.sh 45
serve         | 1800 | test/long/serve.sh 600              | 240 | test/long/serve.sh 60
serve_hostile | 600  | test/long/serve_hostile.sh          | 240 | test/long/serve_hostile.sh
valgrind      | 1800 | test/long/valgrind.sh               | 300 | test/long/valgrind.sh
torture_io    | 3600 | test/long/torture_io.sh build       | 300 | test/long/torture_io.sh build 2
torture_index | 3600 | env KITH_FAULTS=all build/test/test_index_faults | 120 | build/test/test_index_faults
torture_alloc | 3600 | test/long/torture_alloc.sh build    | 300 | test/long/torture_alloc.sh build 2
scale         | 2400 | test/long/scale.sh                  | 300 | test/long/scale.sh 50
bare          | 7200 | test/long/bare.sh                   | 3600 | test/long/bare.sh
deb           | 3600 | test/long/deb.sh                    | 3600 | test/long/deb.sh
arm64         | 7200 | test/long/arm64.sh                  | 7200 | test/long/arm64.sh
docker        | 3600 | test/long/docker.sh                 | 3600 | test/long/docker.sh
dist          | 3600 | test/long/dist.sh                   | 3600 | test/long/dist.sh
wheel         | 3600 | test/long/wheel.sh                  | 3600 | test/long/wheel.sh
hub           | 1800 | test/long/hub.sh                    | 1800 | test/long/hub.sh
same          | 3600 | test/long/same.sh                   | 3600 | test/long/same.sh
cpu           | 1200 | test/long/cpu.sh                    | 300 | test/long/cpu.sh
paths         | 5400 | test/long/paths.sh                  | 2400 | test/long/paths.sh paths|checks|cli
tsan          | 5400 | make tsan                           | 900 | test/long/tsan.sh test_parallel test_loader test_cache_ranks test_learner test_knn test_objective_run
device        | 3600 | scripts/test-device.sh              | 900 | scripts/test-device.sh tests
"}

row_of() { printf '%s\n' "$table" | awk -F ' *[|] ' -v part="$1" '$1 == part'; }
names() { printf '%s\n' "$table" | awk -F ' *[|] ' 'NF { print $1 }'; }

mkdir -p "$long"
: >"$long/summary.txt"
n_failed=0 n_ok=0 n_skipped=0
tell() { # VERDICT PART SECONDS TEXT
    printf '%-7s %-13s %5d s  %s\n' "$1" "$2" "$3" "$4" | tee -a "$long/summary.txt"
    case $1 in
    ok) n_ok=$((n_ok + 1)) ;;
    skipped) n_skipped=$((n_skipped + 1)) ;;
    *)
        n_failed=$((n_failed + 1))
        [ ! -f "$long/$2.log" ] || tail -n 40 "$long/$2.log" | sed 's/^/    /'
        ;;
    esac
}

run_part() { # PART
    local row limit command status=0 began log=$long/$1.log last
    row=$(row_of "$1")
    if [ -z "$row" ]; then
        tell FAILED "$1" 0 "no such part; there are: $(names | tr '\n' ' ')"
        return
    fi
    IFS=$'\t' read -r limit command < <(printf '%s\n' "$row" | awk -F ' *[|] +' -v OFS='\t' -v slice="$SLICE" '
        { if (slice != "") print $4, $5; else print $2, $3 }')
    began=$SECONDS
    local -a words
    read -ra words <<<"$command"
    timeout -k 20 "$limit" "${words[@]}" >"$log" 2>&1 </dev/null || status=$?
    last=$(awk 'NF { line = $0 } END { print line }' "$log")
    case $status in
    0) if [ -n "$last" ]; then tell ok "$1" $((SECONDS - began)) "$last"; else tell FAILED "$1" $((SECONDS - began)) "it said nothing"; fi ;;
    77) tell skipped "$1" $((SECONDS - began)) "$last" ;;
    124 | 137) tell FAILED "$1" $((SECONDS - began)) "took more than $limit s; log: $log" ;;
    126 | 127) tell FAILED "$1" $((SECONDS - began)) "cannot be run: $last" ;;
    *) tell FAILED "$1" $((SECONDS - began)) "status $status: $last; log: $log" ;;
    esac
}

[ $# -gt 0 ] || mapfile -t all < <(names)
for part in "${@:-${all[@]}}"; do
    for one in $part; do run_part "$one"; done
done
echo "long tests: $n_ok ok, $n_failed failed, $n_skipped skipped ($SECONDS s)" | tee -a "$long/summary.txt"
[ "$n_failed" -eq 0 ]
