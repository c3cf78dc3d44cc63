#!/bin/bash
# Training over ranks: 50 steps of a small GoogLeNet on 2 and 3 ranks beside one process, and a run whose ranks are killed
# N times (default 20) at random moments with SIGKILL, each time resumed with another number of ranks: ranks.sh [N]
# A finding is a loss that departs from one process's, a job that does not end by itself or says nothing of the rank that
# died, a run that cannot be resumed, or half-written files. The last line is "kills N, resumed N, different 0"; the exit
# status is 0 only for that, and 77 where mpirun or the plugin is missing.
# KITH_KILLS_SEED chooses the moments (default: the clock; it is printed), KITH_KILLS_SECONDS the most time (1500).
set -euo pipefail
# shellcheck source=test/long/common.sh
source "$(dirname "$0")/common.sh"
n=${1:-20}
seed=${KITH_KILLS_SEED:-$(date +%s)}
limit=${KITH_KILLS_SECONDS:-1500}
RANDOM=$seed
built=$(dirname "$(realpath "${KITH_PROGRAM:-$root/build/kith}")")
plugin=$(find "$built"/lib* -name libkith-mpi.so 2>/dev/null | head -1)
if ! command -v mpirun >/dev/null || [ -z "$plugin" ]; then
    echo "no mpirun, or no plugin for it: skipped"
    exit 77
fi
KITH_PLUGINS=$(dirname "$plugin")
export KITH_PLUGINS OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks=(mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca btl "self,vader"
    --mca btl_vader_single_copy_mechanism none --mca plm isolated -np)
echo "$n kills, seed $seed"

killed=0 resumed=0 different=0
fail() {
    echo "$1" >&2
    tail -n 20 "$work/output.txt" >&2
    echo "kills $killed, resumed $resumed, different $different"
    exit 1
}

# "STEP TOTAL" of every step in a run's log.
totals() {
    sed -nE 's/.*"kind": "step", "step": ([0-9]+),.*"total": ([-0-9.e+]+),.*/\1 \2/p' "$1/log.jsonl"
}

# follows A B: does every loss of run B lie within a thousandth of run A's?
follows() {
    join <(totals "$1" | sort -k1,1) <(totals "$2" | sort -k1,1) | awk -v wanted="$(totals "$1" | wc -l)" '
        { d = $2 - $3; if (d < 0) d = -d; a = $2 < 0 ? -$2 : $2; if (d > 1e-3 * (a > 1 ? a : 1)) bad = 1; n++ }
        END { exit bad || n != wanted || n == 0 }'
}

# ---- a small GoogLeNet ----
# Slowly and without Adam, whose first steps make a whole step of any rounding: with Adam at 1e-4 one process leaves its own
# curve within ten steps when its rate is off by a millionth, and with SGD at 1e-5 within fifty.
make_data 18 8 60
sed -e 's/squash20, crop: 16, channels: 1/squash72, crop: 64/' -e 's/lr: 3e-3, steps: 60/name: sgd, momentum: 0.9, lr: 5e-6, steps: 50/' \
    -e 's/^model: .*/model: {backbone: googlenet, embedding: 16}/' -e 's/^log_every.*/log_every: 1/' \
    -e 's/^eval: .*/eval: {every: 0, select: last}/' "$work/recipe.yaml" >"$work/googlenet.yaml"
"$kith" train "$work/googlenet.yaml" --no-report -q --out "$work/g1" >"$work/output.txt" 2>&1 || fail "GoogLeNet, one process"
for size in 2 3; do
    timeout 600 "${ranks[@]}" $size "$kith" train "$work/googlenet.yaml" --no-report -q --out "$work/g$size" \
        >"$work/output.txt" 2>&1 || fail "GoogLeNet, $size ranks"
    follows "$work/g1" "$work/g$size" || different=$((different + 1))
done
echo "50 steps of GoogLeNet on 2 and 3 ranks: $different departed from one process"

# ---- kills ----
sed -i 's/^log_every.*/log_every: 1/' "$work/recipe.yaml"
train=("$kith" train "$work/recipe.yaml" --no-report -q)
"${train[@]}" --out "$work/whole" >"$work/output.txt" 2>&1 || fail "one process"
began=$(milliseconds)
timeout 300 "${ranks[@]}" 2 "${train[@]}" --out "$work/two" >"$work/output.txt" 2>&1 || fail "two ranks"
whole_ms=$(($(milliseconds) - began))
follows "$work/whole" "$work/two" || different=$((different + 1))

end_run() {
    follows "$work/whole" "$work/killed" || different=$((different + 1))
    [ -z "$(find "$work/killed" -name '*.tmp-*')" ] || fail "half-written files are left"
    rm -r "$work/killed"
}

was_killed=0
while [ "$killed" -lt "$n" ]; do
    [ "$SECONDS" -lt "$limit" ] || fail "stopped after $limit s"
    size=$((2 + RANDOM % 3))
    "${ranks[@]}" $size "${train[@]}" --out "$work/killed" --resume >"$work/output.txt" 2>&1 &
    pid=$!
    moment=$((whole_ms * (RANDOM % 1000) / 1000))
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    mapfile -t each < <(pgrep -P "$pid" -x kith || true)
    [ ${#each[@]} -eq 0 ] || kill -9 "${each[$((RANDOM % ${#each[@]}))]}" 2>/dev/null || true
    for ((i = 0; i < 600; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$pid" 2>/dev/null; then
        kill -9 "$pid"
        fail "the job goes on without one of its $size ranks"
    fi
    status=0
    wait "$pid" 2>/dev/null || status=$?
    resumed=$((resumed + was_killed))
    was_killed=0
    if [ "$status" != 0 ]; then
        grep -q 'signal 9' "$work/output.txt" || fail "status $status, and no line about the rank that died"
        killed=$((killed + 1))
        was_killed=1
    fi
    if [ -e "$work/killed/result.json" ]; then
        resumed=$((resumed + was_killed))
        was_killed=0
        end_run
    fi
done
if [ "$was_killed" = 1 ]; then
    timeout 300 "${train[@]}" --out "$work/killed" --resume >"$work/output.txt" 2>&1 || fail "one process could not go on"
    resumed=$((resumed + 1))
    end_run
fi
echo "kills $killed, resumed $resumed, different $different"
[ "$resumed" = "$killed" ] && [ "$different" = 0 ]
