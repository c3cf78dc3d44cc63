#!/bin/sh
# Training and inference speed against PyTorch: the same networks, the same threads, taking turns.
#
#     bench/train.sh [ROUNDS] [NETS]        (3 rounds; "googlenet bn_inception resnet50")
#
# SIZE, BATCH, THREADS and STEPS come from the environment. Every line is the median over the rounds;
# a ratio compares medians of runs that alternated on one machine. Run it on an idle one. The peer
# needs Debian's python3-torch and python3-torchvision; without them kith's figures stand alone.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-3}
nets=${2:-googlenet bn_inception resnet50}
size=${SIZE:-224} batch=${BATCH:-32} threads=${THREADS:-2} steps=${STEPS:-5}
python=${PYTHON:-/usr/bin/python3}
results=$(mktemp)
trap 'rm -f "$results"' EXIT
has_torch=
if "$python" -c 'import torch, torchvision' 2>/dev/null; then has_torch=1; fi
[ -n "$has_torch" ] || echo "no PyTorch here: only kith is measured" >&2

field() { # the number of a key in one line of JSON
    sed -n 's/.*"'"$1"'": *\([0-9.eE+-]*\).*/\1/p'
}

note() { # NET MODE WHO, then JSON on standard input
    line=$(cat)
    printf '%s %s %s %s %s\n' "$1" "$2" "$3" "$(echo "$line" | field images_per_second)" \
        "$(echo "$line" | field peak_rss_bytes)" >>"$results"
}

ours() { # NET MODE THREADS WHO
    build/kith bench "$2" --backbone "$1" --batch "$batch" --size "$size" --threads "$3" --steps "$steps" --json |
        note "$1" "$2" "$4"
}

theirs() { # NET MODE LAYOUT
    [ -n "$has_torch" ] || return 0
    "$python" bench/train_torch.py --net "$1" --mode "$2" --layout "$3" --batch "$batch" --size "$size" \
        --threads "$threads" --steps "$steps" | note "$1" "$2" "torch-$3"
}

round=0
while [ "$round" -lt "$rounds" ]; do
    for net in $nets; do
        for mode in train embed; do
            ours "$net" "$mode" "$threads" kith
            theirs "$net" "$mode" nchw
            theirs "$net" "$mode" nhwc
            ours "$net" "$mode" 1 kith-1-thread
        done
    done
    case "$round $nets" in
    "0 "*googlenet*) # torchvision's own GoogLeNet has batch norm: for scale
        theirs googlenet_bn train nchw
        theirs googlenet_bn train nhwc
        theirs googlenet_bn embed nchw
        ;;
    esac
    round=$((round + 1))
done

echo "batch $batch, $size px, $threads threads, $rounds rounds; images/s and peak MiB, medians"
sort "$results" | awk '
    function median(list, n,    i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    {
        key = $1 " " $2
        if (!(key in seen)) { seen[key] = 1; order[++n_keys] = key }
        n = ++count[key, $3]
        speed[key, $3, n] = $4 + 0
        memory[key, $3, n] = $5 / 1048576
    }
    function of(table, key, who,    i, list) {
        if (!((key, who) in count)) return 0
        for (i = 1; i <= count[key, who]; i++) list[i] = table[key, who, i]
        return median(list, count[key, who])
    }
    function ratio(x, y) { return y > 0 ? x / y : 0 }
    END {
        printf "%-13s %-6s %9s %9s %9s %9s %8s %8s %8s %7s %7s %7s\n", "net", "mode", "kith", "1 thread", "torch", \
            "ch_last", "x torch", "x better", "2t/1t", "MiB", "torch", "ch_last"
        for (k = 1; k <= n_keys; k++) {
            key = order[k]
            a = of(speed, key, "kith"); b = of(speed, key, "torch-nchw"); c = of(speed, key, "torch-nhwc")
            one = of(speed, key, "kith-1-thread"); better = b > c ? b : c
            split(key, part, " ")
            printf "%-13s %-6s %9.2f %9.2f %9.2f %9.2f %8.2f %8.2f %8.2f %7.0f %7.0f %7.0f\n", part[1], part[2], a, one, b, c, \
                ratio(a, b), ratio(a, better), ratio(a, one), \
                of(memory, key, "kith"), of(memory, key, "torch-nchw"), of(memory, key, "torch-nhwc")
        }
    }'
