#!/bin/bash
# Work for SECONDS (default 600) and see that nothing grows: soak.sh [SECONDS]
# One long training run is watched (memory and open files, from /proc) while short ones are begun, stopped, resumed, evaluated
# and embedded beside it, and compared with the first of them. The last line counts; the exit status is 0 only when all
# was the same and flat.
set -euo pipefail
# shellcheck source=test/long/common.sh
source "$(dirname "$0")/common.sh"
seconds=${1:-600}
[ -d /proc/self/fd ] || {
    echo "there is no /proc here to look into" >&2
    exit 77
}
make_data 18 8 60

# Evaluations and checkpoints all the time: they are what could leave something behind.
"$kith" train "$work/recipe.yaml" --no-report -q --out "$work/long" -s optim.steps=1000000000 -s eval.every=50 \
    -s checkpoint.every=20 >"$work/long.txt" 2>&1 &
long=$!
trap 'kill -9 "$long" 2>/dev/null || true; rm -rf "$work"' EXIT

# Resident KiB and open files of the long run, a line each time.
look() {
    kill -0 "$long" 2>/dev/null || {
        echo "the long run has ended:" >&2
        cat "$work/long.txt" >&2
        exit 1
    }
    echo "$(awk '/^VmRSS/ { print $2 }' "/proc/$long/status") $(find "/proc/$long/fd" -type l 2>/dev/null | wc -l)" >>"$work/looks"
}

# Whoever looks at a function's status switches "set -e" off inside it: each step says that it failed.
rounds=0
round() {
    local run=$work/round-$1 status=0
    "$kith" train "$work/recipe.yaml" --no-report -q --out "$run" >"$work/round.txt" 2>&1 &
    local pid=$!
    # Stopped after its first checkpoint, whichever is there by now: old ones are removed.
    until compgen -G "$run/checkpoints/*.safetensors" >/dev/null || ! kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || status=$?
    [ "$status" = 0 ] || [ "$status" = 143 ] || return 1
    "$kith" train "$run" --resume --no-report -q >"$work/round.txt" 2>&1 || return 1
    "$kith" eval "$run/model.safetensors" --data "$work/glyphs" --json >"$run/eval.json" 2>"$work/round.txt" || return 1
    "$kith" embed "$run/model.safetensors" "$work/glyphs/glyph00000" -o "$run/embed.npy" >"$work/round.txt" 2>&1 || return 1
    [ "$1" != 0 ] || return 0
    same_run "$work/round-0" "$run" && cmp "$work/round-0/embed.npy" "$run/embed.npy" && rm -r "$run"
}

next=0
while [ "$SECONDS" -lt "$seconds" ]; do
    round "$rounds" || {
        echo "round $rounds failed:" >&2
        cat "$work/round.txt" >&2
        exit 1
    }
    rounds=$((rounds + 1))
    if [ "$SECONDS" -ge "$next" ]; then
        look
        next=$((SECONDS + (seconds + 99) / 100))
    fi
done

kill -TERM "$long"
wait "$long" || [ $? = 143 ]
# The first half is for warming up. Of the second, its first part against its last: the most memory, and the fewest files (a
# checkpoint being written is one more).
awk -v rounds="$rounds" '
    { rss[NR] = $1; fds[NR] = $2 }
    END {
        if (NR < 8) { print "only " NR " looks: give it more time"; exit 1 }
        half = int(NR / 2); three = int(3 * NR / 4)
        for (i = half + 1; i <= NR; i++) {
            late = i > three
            if (rss[i] > most[late]) most[late] = rss[i]
            if (!(late in fewest) || fds[i] < fewest[late]) fewest[late] = fds[i]
        }
        printf "%d rounds the same; the long run: %d looks, %.1f then %.1f MiB, %d then %d open files\n",
            rounds, NR, most[0] / 1024, most[1] / 1024, fewest[0], fewest[1]
        exit !(most[1] <= most[0] + 2048 && fewest[1] <= fewest[0])
    }' "$work/looks"
