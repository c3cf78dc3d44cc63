#!/bin/bash
# Kill a training run N times (default 100) at random moments with SIGKILL, resume it each time, and compare every run that
# gets to its end with one that was never killed, byte for byte: kills.sh [N]
# The last line is "kills N, resumed N, different 0"; the exit status is 0 only for that.
# KITH_KILLS_SEED chooses the moments (default: the clock; it is printed), KITH_KILLS_SECONDS the most time (1800).
set -euo pipefail
# shellcheck source=test/long/common.sh
source "$(dirname "$0")/common.sh"
n=${1:-100}
seed=${KITH_KILLS_SEED:-$(date +%s)}
limit=${KITH_KILLS_SECONDS:-1800}
RANDOM=$seed
echo "$n kills, seed $seed"

make_data 18 8 60
train=("$kith" train "$work/recipe.yaml" --no-report -q)
"${train[@]}" --out "$work/whole" >"$work/whole.txt" # once to warm the disk's cache, once to take its time
rm -r "$work/whole"
began=$(milliseconds)
"${train[@]}" --out "$work/whole" >"$work/whole.txt"
whole_ms=$(($(milliseconds) - began))

killed=0 resumed=0 different=0 finished=0 was_killed=0
fail() {
    echo "$1" >&2
    cat "$work/output.txt" >&2
    echo "kills $killed, resumed $resumed, different $different"
    exit 1
}

# A run that got to its end: compare it, and begin another.
end_run() {
    finished=$((finished + 1))
    same_run "$work/whole" "$work/killed" || different=$((different + 1))
    local left
    left=$(find "$work/killed" -name '*.tmp-*')
    [ -z "$left" ] || fail "half-written files are left: $left"
    rm -r "$work/killed"
}

while [ "$killed" -lt "$n" ]; do
    [ "$SECONDS" -lt "$limit" ] || fail "stopped after $limit s"
    "${train[@]}" --out "$work/killed" --resume >"$work/output.txt" 2>&1 &
    pid=$!
    moment=$((whole_ms * (RANDOM % 1000) / 1000))
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    kill -9 "$pid" 2>/dev/null || true
    status=0
    wait "$pid" 2>/dev/null || status=$?
    case $status in
    0 | 137) resumed=$((resumed + was_killed)) ;;
    *) fail "status $status" ;;
    esac
    was_killed=0
    if [ "$status" = 137 ]; then
        killed=$((killed + 1))
        was_killed=1
    fi
    # Killed between the result and the end of the process: it is done all the same.
    if [ -e "$work/killed/result.json" ]; then
        [ "$status" = 137 ] && resumed=$((resumed + 1))
        was_killed=0
        end_run
    fi
done
if [ "$was_killed" = 1 ]; then
    timeout 300 "${train[@]}" --out "$work/killed" --resume >"$work/output.txt" 2>&1 || fail "the last run did not finish"
    resumed=$((resumed + 1))
    end_run
fi
echo "$finished runs got to their end, $whole_ms ms for one that is left alone"
echo "kills $killed, resumed $resumed, different $different"
[ "$resumed" = "$killed" ] && [ "$different" = 0 ]
