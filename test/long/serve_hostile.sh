#!/bin/bash
# What one hostile client costs a search server and everybody else: serve_hostile.sh [PART…]
# Each part (test/long/serve_hostile.c says what it does) has a server of its own and prints one line. A finding is:
#   memory    more than 600 MiB resident, of the server and its decoders together
#   decoders  /api/v1/info takes another address 0.2 s or longer, or something of it is not answered
#   queries   a photo of another address takes 1 s or longer, or is not answered
#   uploads   a photo of another address is not answered
#   halves    a connection is open a second after its client has closed it
#   where     a filter of 60 KB takes more than 16 MiB
# The last line counts; the exit status is 1 if there was a finding.
set -euo pipefail
# shellcheck source=test/long/common.sh
source "$(dirname "$0")/common.sh"
client=${HOSTILE_CLIENT:-$(dirname "$(realpath "${KITH_PROGRAM:-$root/build/kith}")")/test/long_serve_hostile}
[ $# -gt 0 ] || set -- memory decoders queries uploads halves where
"$kith" synth "$work/drawn" --classes 10 --images 10 >/dev/null
"$kith" embed --backbone convnet4 --embedding 32 --seed 1 --generate 2 --save "$work/model.safetensors" >/dev/null
"$kith" index "$work/drawn" -o "$work/drawn.kith" --model "$work/model.safetensors" >/dev/null 2>&1
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

# holds PART LINE: is the line without a finding?
holds() {
    local first=${2%% *}
    case $1 in
    memory) awk -v n="$first" 'BEGIN { exit !(n <= 600) }' ;;
    decoders) awk -v n="$first" 'BEGIN { exit !(n < 0.2) }' && [[ $2 == *", 0 without an answer;"* ]] ;;
    queries) awk -v n="$first" 'BEGIN { exit !(n < 1) }' && [[ $2 == *", 0 without an answer;"* ]] ;;
    uploads) [[ $2 == "20 of 20 "* ]] ;;
    halves) [ "$first" = 0 ] ;;
    where) awk -v n="$first" 'BEGIN { exit !(n <= 16) }' && [[ $2 == *"status 200" ]] ;;
    esac
}

n_findings=0
for part in "$@"; do
    : >"$work/server.log"
    "$kith" serve "$work/drawn.kith" --port 0 --decoders 2 --rate 1000000 --burst 1000000 2>"$work/server.log" &
    server=$!
    until grep -q 'at http' "$work/server.log"; do
        sleep 0.1
        kill -0 "$server"
    done
    port=$(sed -n 's|.*at http://[^:]*:\([0-9]*\)/.*|\1|p' "$work/server.log")
    line=$("$client" "$port" "$server" "$part")
    if holds "$part" "$line"; then
        echo "$part: $line"
    else
        echo "$part: $line (a finding)"
        n_findings=$((n_findings + 1))
    fi
    kill -9 "$server"
    wait "$server" 2>/dev/null || true
done
server=
echo "$# parts, $n_findings findings"
[ "$n_findings" = 0 ]
