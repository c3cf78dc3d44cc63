#!/bin/sh
# Embedding on the CPU beside ONNX Runtime: the same random weights, exported by kith export, the same threads, taking turns.
#
#     bench/embed_onnx.sh [ROUNDS] [NETS]        (3 rounds; "vit_s convnext_t mobilenet_v3_large")
#
# A net may have settings behind a colon, as vit_s:patch=14. SIZE, BATCH, THREADS and STEPS come from the environment. Every line is the
# median over the rounds. ONNX Runtime is what scripts/setup.sh onnx installs. Run it on an idle machine.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-3}
nets=${2:-vit_s convnext_t mobilenet_v3_large}
size=${SIZE:-224} batch=${BATCH:-16} threads=${THREADS:-2} steps=${STEPS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --build build --target kith_program random_model >/dev/null

# The number of images/s in one line of JSON.
speed() { sed -n 's/.*"images_per_second": *\([0-9.eE+-]*\).*/\1/p'; }
note() { echo "$1 $2 $(speed)" >>"$work/results"; } # NET WHO, then JSON on standard input

for net in $nets; do
    case $net in *:*) settings=${net#*:} ;; *) settings= ;; esac
    build/bench/random_model "${net%%:*}" "$work/$net.safetensors" "$settings"
    build/kith export "$work/$net.safetensors" -o "$work/$net.onnx" --crop "$size" >/dev/null
done
round=0
while [ "$round" -lt "$rounds" ]; do
    for net in $nets; do
        case $net in *:*) settings=${net#*:} ;; *) settings= ;; esac
        build/kith bench embed --backbone "${net%%:*}" ${settings:+--settings "$settings"} --batch "$batch" --size "$size" \
            --threads "$threads" --steps "$steps" --json | note "$net" kith
        node bench/embed_onnx.js "$work/$net.onnx" "$batch" "$size" "$threads" "$steps" | note "$net" onnx
    done
    round=$((round + 1))
done
echo "batch $batch, $size px, $threads threads, $rounds rounds; images/s, medians"
sort "$work/results" | awk '
    { list[$1, $2] = list[$1, $2] " " $3; if (!($1 in seen)) { seen[$1] = 1; order[++n] = $1 } }
    function median(text,    a, i, j, t, m) {
        m = split(text, a, " ")
        for (i = 2; i <= m; i++) for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
        return m % 2 ? a[(m + 1) / 2] : (a[m / 2] + a[m / 2 + 1]) / 2
    }
    END {
        printf "%-28s %10s %10s %8s\n", "net", "kith", "onnx", "ratio"
        for (i = 1; i <= n; i++) {
            k = median(list[order[i], "kith"]); o = median(list[order[i], "onnx"])
            printf "%-28s %10.2f %10.2f %8.2f\n", order[i], k, o, (o > 0 ? k / o : 0)
        }
    }'
