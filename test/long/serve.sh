#!/bin/bash
# Ask a server for SECONDS (default 600) and see that nothing grows: serve.sh [SECONDS]
# Clients search by item and by image, and after each round a decoder is killed and the index changed. Resident memory and open files of
# the server are looked at; of the second half, the last part may have 1 % more memory (or 1 MiB) than the first, and no more files.
# The last line counts; the exit status is 0 only when all was flat and the clients were answered.
set -euo pipefail
# shellcheck source=test/long/common.sh
source "$(dirname "$0")/common.sh"
seconds=${1:-600}
[ -d /proc/self/fd ] || {
    echo "there is no /proc here to look into" >&2
    exit 77
}
load=$(dirname "$(realpath "${KITH_PROGRAM:-$root/build/kith}")")/bench/serve_load
"$kith" synth "$work/drawn" --classes 50 --images 20 >/dev/null
"$kith" embed --backbone convnet4 --embedding 32 --seed 1 --generate 2 --save "$work/model.safetensors" >/dev/null
"$kith" index "$work/drawn" -o "$work/drawn.kith" --model "$work/model.safetensors" >/dev/null 2>&1
"$kith" serve "$work/drawn.kith" --port 0 --rate 1000000 --burst 1000000 2>"$work/server.log" &
server=$!
trap 'kill -9 "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
until grep -q 'at http' "$work/server.log"; do
    sleep 0.1
    kill -0 "$server"
done
port=$(sed -n 's|.*at http://[^:]*:\([0-9]*\)/.*|\1|p' "$work/server.log")
photo=$work/drawn/glyph00003/00001.png

look() {
    echo "$(awk '/^VmRSS/ { print $2 }' "/proc/$server/status") $(find "/proc/$server/fd" -type l | wc -l)" >>"$work/looks"
}

rounds=0 each=$(((seconds + 79) / 80))
while [ "$SECONDS" -lt "$seconds" ] || [ "$rounds" -lt 8 ]; do
    "$load" "$port" 50 "$each" 1000 >>"$work/load.txt"
    "$load" "$port" 20 "$each" 1000 "$photo" >>"$work/load.txt"
    pkill -9 -P "$server" -o || true # the oldest decoder
    cp "$photo" "$work/drawn/glyph00003/new.png"
    [ $((rounds % 2)) = 0 ] || rm "$work/drawn/glyph00003/new.png"
    "$kith" index "$work/drawn.kith" --sync >/dev/null 2>&1
    sleep 2 # connections are closed by now
    kill -0 "$server" || {
        cat "$work/server.log" >&2
        exit 1
    }
    look
    rounds=$((rounds + 1))
done
kill -TERM "$server"
wait "$server"
awk -v rounds="$rounds" -v answered="$(awk '{ for (i = 2; i <= NF; i++) if ($i == "answered,") n += $(i - 1) } END { print n + 0 }' "$work/load.txt")" '
    { rss[NR] = $1; fds[NR] = $2 }
    END {
        half = int(NR / 2); three = int(3 * NR / 4)
        for (i = half + 1; i <= NR; i++) {
            late = i > three
            if (rss[i] > most[late]) most[late] = rss[i]
            if (!(late in fewest) || fds[i] < fewest[late]) fewest[late] = fds[i]
        }
        printf "%d answers in %d rounds: %.1f then %.1f MiB, %d then %d open files\n", answered, rounds, most[0] / 1024,
            most[1] / 1024, fewest[0], fewest[1]
        allowed = most[0] / 100 > 1024 ? most[0] / 100 : 1024
        exit !(answered > 0 && most[1] <= most[0] + allowed && fewest[1] <= fewest[0])
    }' "$work/looks"
