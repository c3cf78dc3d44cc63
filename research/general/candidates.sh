#!/bin/sh
# Networks that could be the student: parameters, megabytes in float16, and images per second of processor time on one thread.
#
#     research/general/candidates.sh [-r ROUNDS] > candidates.md
#
# Speed does not depend on weights, so they are random. The networks take turns, ROUNDS (3) of them, and the median counts; a turn
# is a run of 12 batches of 8 less a run of 2, so that planning does not count. The first two are the teachers, at the size that they
# were trained with. Environment: KITH.
set -eu
KITH=${KITH:-$(cd "$(dirname "$0")/../.." && pwd)/build/kith}
rounds=3
while getopts r: option; do
    case $option in
    r) rounds=$OPTARG ;;
    *) exit 1 ;;
    esac
done
[ -x "$KITH" ] || { echo "candidates.sh: $KITH is not there; run make first, or set KITH" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Network, settings and size. The embedding has 256 numbers; the teachers' vectors are what they pool.
cat > "$work/list" <<'EOF'
googlenet - 224
resnet50 - 224
mobilenet_v3_large - 128
mobilenet_v3_large - 160
mobilenet_v3_large - 192
mobilenet_v3_large - 224
mobilenet_v3_large head=false,width=1.25 160
mobilenet_v3_large width=1.1 160
efficientnet_b0 - 128
efficientnet_b0 - 160
efficientnet_b0 - 192
efficientnet_b0 - 224
resnet18 - 128
resnet18 - 160
resnet18 - 224
convnext_t width=40 128
convnext_t width=40 160
convnext_t width=40 224
convnext_t width=48,depth=5,blocks=2 160
vit_t - 128
vit_t - 160
vit_t - 224
swin_t width=32 224
EOF

# seconds NETWORK SETTINGS SIZE STEPS: processor time, user and system.
seconds() {
    settings=${2#-}
    # shellcheck disable=SC2086 # no settings: no argument
    { LC_ALL=C bash -c 'TIMEFORMAT="%U %S"; time "$@" > /dev/null 2>&1' time "$KITH" bench embed --backbone "$1" ${settings:+--settings $settings} \
        --batch 8 --size "$3" --threads 1 --steps "$4"; } 2>&1 | awk '{ print $1 + $2 }'
}

round=0
while [ $((round += 1)) -le "$rounds" ]; do
    row=0
    while read -r network settings size; do
        row=$((row + 1))
        short=$(seconds "$network" "$settings" "$size" 2) long=$(seconds "$network" "$settings" "$size" 12)
        echo "$short $long" | awk '{ print 80 / ($2 - $1) }' >> "$work/$row"
        echo "round $round: $network $settings $size: $(tail -1 "$work/$row")" >&2
    done < "$work/list"
done

# The parameters of a model file of float32, without the classifier: the file's size less its header, over 4.
parameters() {
    settings=${2#-} embedding=256
    case $1 in googlenet | resnet50) embedding=0 ;; esac
    # shellcheck disable=SC2086
    "$KITH" embed --backbone "$1" ${settings:+--settings $settings} --embedding $embedding --generate 1 --save "$work/model.safetensors" -o "$work/x.npy" > /dev/null
    header=$(od -An -tu8 -N8 "$work/model.safetensors")
    echo $((($(wc -c < "$work/model.safetensors") - 8 - header) / 4))
}

echo "| network | settings | pixels | million parameters | MB in float16 | images/s | of GoogLeNet's | of ResNet-50's |"
echo "|---|---|---|---|---|---|---|---|"
row=0
while read -r network settings size; do
    row=$((row + 1))
    speed=$(sort -n "$work/$row" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    n=$(parameters "$network" "$settings")
    echo "$network $settings $size $n $speed"
done < "$work/list" > "$work/rows"
googlenet=$(sed -n 1p "$work/rows" | awk '{ print $5 }') resnet=$(sed -n 2p "$work/rows" | awk '{ print $5 }')
awk -v g="$googlenet" -v r="$resnet" \
    '{ printf "| %s | %s | %d | %.2f | %.1f | %.0f | %.2f | %.2f |\n", $1, $2 == "-" ? "" : $2, $3, $4 / 1e6, 2 * $4 / 1e6, $5, $5 / g, $5 / r }' "$work/rows"
