#!/bin/sh
# Load on kith serve: serve.sh [SECONDS [FOLDER]] (60, build/serve)
# An index of 100,000 drawn images, d = 128, is made once. Then
#   200 clients ask for neighbours of items, and 200 with an image, for SECONDS each;
#   one client asks alone, and beside 1,000 slow connections (Debian's slowhttptest; left out where it is not there).
# The server's resident memory is printed before and after each part. CLIENTS=N: another number.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
seconds=${1:-60}
kith=${KITH_PROGRAM:-$root/build/kith}
load=$(dirname "$kith")/bench/serve_load
clients=${CLIENTS:-200}
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
mkdir -p "${2:-build/serve}"
cd "${2:-build/serve}"
if ! [ -d drawn.kith ]; then
    rm -rf drawn drawn.part
    "$kith" synth drawn --classes 2000 --images 50 --size 40
    "$kith" embed --backbone convnet4 --embedding 128 --seed 1 --generate 2 --save model.safetensors >/dev/null
    "$kith" index drawn -o drawn.part --model model.safetensors
    mv drawn.part drawn.kith
fi
rm -f server.log # of an earlier run
# Slow connections are all from one address: they may all stay, so that the server has to bear them.
"$kith" serve drawn.kith --port 0 --rate 1000000 --burst 1000000 --connections-each 2000 2>server.log &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
until grep -qs 'serving .* at http' server.log; do sleep 0.1; kill -0 "$server"; done
port=$(sed -n 's|.*at http://[^:]*:\([0-9]*\)/.*|\1|p' server.log)
memory() { awk '/^VmRSS/ { printf "resident: %.1f MiB\n", $2 / 1024 }' "/proc/$server/status"; }
part() {
    echo "$1"
    shift
    "$@"
    memory
}
photo=$(find drawn -name '*.png' | sort | head -n 1)
"$load" "$port" "$clients" 2 100000 >/dev/null
memory
part "items:" "$load" "$port" "$clients" "$seconds" 100000
part "images:" "$load" "$port" "$clients" "$seconds" 100000 "$photo"
part "one client alone:" "$load" "$port" 1 10 100000
if command -v slowhttptest >/dev/null 2>&1; then
    slowhttptest -c 1000 -H -i 2 -r 500 -l 25 -u "http://127.0.0.1:$port/" >slow.log 2>&1 &
    slow=$!
    sleep 5
    part "one client beside 1,000 slow connections:" "$load" "$port" 1 10 100000
    wait "$slow" || true
fi
