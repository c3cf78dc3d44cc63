#!/usr/bin/env bash
# Sizes nobody tries by hand: scale.sh [DIVISOR [PART…]] (1: whole; 50: everything a fiftieth, to see that the script
# works). Without a PART, all of them:
#
#   images     110,000 images of 22,000 classes: kith data, a few training steps, kith eval of the run
#   manifest   a list of 1,000,000 lines, read by kith data
#   rows       62,500, 125,000 and 250,000 embeddings of 512 columns, all against all: memory must grow linearly.
#              Retrieval only: k-means is left out, its time is n x clusters and its memory less than the ranking's.
#   proxies    a loss over 1,000,000 classes: finite, and the right gradient on a sample
#
# Limits are generous (a loaded laptop must pass) and there to catch what grows faster than it should. Everything lies in
# a temporary folder (about 3 GB) that is removed.
set -euo pipefail
cd "$(dirname "$0")/../.."
divisor=${1:-1}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- images manifest rows proxies
build=${BUILD:-build}
ninja -C "$build" kith_program long_scale >/dev/null
kith=$PWD/$build/kith scale=$PWD/$build/test/long_scale
folder=$(mktemp -d "${TMPDIR:-/tmp}/kith-scale.XXXXXX")
trap 'rm -rf "$folder"' EXIT
n_failed=0
said=
say() { echo "$1"; said="$said${said:+; }$1"; }
# within NAME SECONDS MIB COMMAND…: run it, print what it took.
within() {
    local name=$1 seconds=$2 mib=$3 took=
    shift 3
    if "$scale" within "$seconds" "$mib" "$folder/took" "$@" >"$folder/output" 2>"$folder/errors"; then
        read -r took mib <"$folder/took"
        say "$name $took s $mib MiB"
    else
        tail -n 5 "$folder/output" "$folder/errors" >&2
        say "$name FAILED: $(tail -n 1 "$folder/errors")"
        n_failed=$((n_failed + 1))
        return 1
    fi
}
# holds TEXT: does the last command's output say so?
holds() {
    grep -qF -- "$1" "$folder/output" || { say "wanted \"$1\" in the output"; cat "$folder/output" >&2; n_failed=$((n_failed + 1)); }
}

classes=$((22000 / divisor / 2 * 2))

scale_images() {
    within synth 600 1000 "$kith" synth "$folder/set" --classes $classes --images 5 --size 16 || return 0
    within data 300 500 "$kith" data "$folder/set" && holds "$((classes * 5)) images, $classes classes"
    cat >"$folder/recipe.yaml" <<RECIPE
data:  {root: $folder/set}
input: {resize: none, crop: 16, channels: 1}
model: {backbone: convnet4, embedding: 64}
batch: {classes: 32, images: 2}
objective: {loss: {name: proxy_nca}}
optim: {name: adam, lr: 1e-3, steps: 5}
eval:  {every: 0, seen: false, untrained: false}
RECIPE
    within train 1800 3000 "$kith" train "$folder/recipe.yaml" --out "$folder/run" --no-report || return 0
    within eval 900 3000 "$kith" eval "$folder/run" --data "$folder/set" --metrics retrieval --bootstrap 0 && holds "R@1"
    rm -rf "$folder/set"
}

# A few files again and again under other classes: what costs is the number of lines.
scale_manifest() {
    local lines=$((1000000 / divisor))
    within synth_few 60 1000 "$kith" synth "$folder/few" --classes 100 --images 5 --size 16 || return 0
    awk -v n="$lines" 'BEGIN {
        print "path,label,split"
        for (i = 0; i < n; i++)
            printf "glyph%05d/%05d.png,class%06d,%s\n", i % 100, i % 5, int(i / 5), i < n / 2 ? "train" : "test"
    }' >"$folder/few/manifest.csv"
    within manifest 600 2000 "$kith" data --dataset csv "$folder/few/manifest.csv" || return 0
    holds "$lines images, $(((lines + 4) / 5)) classes"
}

scale_rows() {
    local n peaks=()
    for n in $((62500 / divisor)) $((125000 / divisor)) $((250000 / divisor)); do
        "$scale" rows "$n" 512 5 "$folder/x.npy" "$folder/y.npy"
        within "eval_$n" 2400 $((400 + n * 512 * 4 * 4 / 1048576)) "$kith" eval --embedding "$folder/x.npy" \
            --labels "$folder/y.npy" --metrics retrieval --bootstrap 0 || return 0
        holds "R@1"
        peaks+=("$(cut -d ' ' -f 2 "$folder/took")")
    done
    rm -f "$folder"/*.npy
    # Twice the rows, twice the growth: four times would be a matrix of all against all.
    if [ $((10 * (peaks[2] - peaks[1]))) -gt $((25 * (peaks[1] - peaks[0]) + 500)) ]; then
        say "memory is not linear: ${peaks[*]} MiB"
        n_failed=$((n_failed + 1))
    fi
}

scale_proxies() {
    within proxies 900 6000 "$scale" proxies "$((1000000 / divisor))" || return 0
    say "$(cat "$folder/output")"
}

for part; do
    case $part in
    images | manifest | rows | proxies) "scale_$part" ;;
    *) echo "no part $part; wanted images, manifest, rows or proxies" >&2 && exit 2 ;;
    esac
done
echo "$n_failed failed: $said"
[ "$n_failed" -eq 0 ]
