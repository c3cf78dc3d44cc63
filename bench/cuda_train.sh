#!/bin/sh
# The training step on CUDA against PyTorch, on one machine in one call.
#
#     bench/cuda_train.sh [OUT]
#
# The step: forward, RAW loss on the pairs VTHM keeps, backward, Adam; batch 128, 227 px, 512-d. With TODAY=1 today's networks with
# AdamW and the binomial loss at 224 px (bench/today.yaml), and with MODE=embed the forward pass alone. kith runs twice,
# before and after PyTorch; both are printed and ratios take the slower. From the
# environment: NETS, PRECISIONS (bf16 float32), HOW (PyTorch: eager compiled; in float32 both layouts),
# EXTRA_WAYS (just these), SCALE (nets of PyTorch's own, for
# scale: googlenet_bn), BATCH, SIZE, STEPS, KITH (the program, or a bundle's run.sh followed by kith), PYTHON. WARM=1
# warms all of PyTorch's nets and ways up side by side, which takes memory for all of them, and times one after the
# other. Results are JSON lines in OUT/train.jsonl, kith's profiles in OUT/profile-*.txt. Without a device it says so and is done.
set -eu
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d)}
precisions=${PRECISIONS:-bf16 float32} how=${HOW:-eager compiled} batch=${BATCH:-128} steps=${STEPS:-60} mode=${MODE:-train}
kith=${KITH:-build/cuda/kith} python=${PYTHON:-python3}
if [ -n "${TODAY:-}" ]; then
    nets=${NETS:-vit_s vit_b convnext_t} size=${SIZE:-224} scale=${SCALE:-} recipe=bench/today.yaml
    peer='--loss binomial --optimizer adamw'
else
    nets=${NETS:-googlenet bn_inception resnet50} size=${SIZE:-227} scale=${SCALE-googlenet_bn} recipe=bench/raw.yaml peer=
fi
mkdir -p "$out"
results=$out/train.jsonl
# kith's bench of a network at a precision: the recipe says what a step is, but for the network and the size.
bench() { # NET PRECISION [OPTIONS]
    net=$1 precision=$2
    shift 2
    if [ "$mode" = train ]; then set -- --recipe "$recipe" "$@"; fi
    $kith bench "$mode" --backbone "$net" --device cuda --precision "$precision" --batch "$batch" --size "$size" \
        --steps "$steps" "$@"
}

if ! $kith bench train --backbone convnet4 --device cuda --batch 8 --steps 1 >"$out/first.txt" 2>&1; then
    echo "no CUDA step here: $(tail -1 "$out/first.txt")" >&2
    exit 0
fi
has_torch=
if "$python" -c 'import torch, torchvision; assert torch.cuda.is_available()' 2>/dev/null; then has_torch=1; fi
[ -n "$has_torch" ] || echo "no PyTorch with CUDA here: only kith is measured" >&2

ours() { # NET PRECISION WHO [OPTIONS]
    net=$1 precision=$2 who=$3
    shift 3
    bench "$net" "$precision" --json "$@" >"$out/line.json" 2>"$out/line.err" ||
        printf '{"backbone": "%s", "precision": "%s", "error": "%s"}\n' "$net" "$precision" \
            "$(tail -1 "$out/line.err" | tr -d '"\\' | cut -c1-200)" >"$out/line.json"
    sed "s/^{/{\"who\": \"$who\", /" "$out/line.json" >>"$results"
}
ways() { # PRECISION: PyTorch's, with commas; float32 in both layouts, "PyTorch's best" being either
    {
        for one in $how; do
            printf '%s,' "$one"
            if [ "$1" = float32 ]; then printf '%s_nchw,' "$one"; fi
        done
        for one in ${EXTRA_WAYS:-}; do printf '%s,' "$one"; done
    } | sed 's/,$//'
}
torch() { # NETS PRECISION WAYS [OPTIONS]
    torch_nets=$1 torch_precision=$2 torch_ways=$3
    shift 3
    # shellcheck disable=SC2086
    PYTHONUNBUFFERED=1 timeout "${TORCH_SECONDS:-400}" "$python" bench/train_torch_cuda.py --nets "$torch_nets" \
        --precision "$torch_precision" --how "$torch_ways" --batch "$batch" --size "$size" --steps "$steps" --mode "$mode" \
        $peer "$@"
}
theirs() { # NETS PRECISION
    [ -n "$has_torch" ] || return 0
    torch "$(echo "$1" | tr ' ' ,)" "$2" "$(ways "$2")" >>"$results" 2>"$out/torch-$2.err" ||
        echo "PyTorch, $2: stopped early; see $out/torch-$2.err" >&2
}

# Side by side PyTorch's nets are ready in the time of the slowest; then each is timed alone.
warm_up() { # PRECISION: begin all of its nets and ways, and wait until they are warm
    rm -f "$out"/turn-*
    for way in $(ways "$1" | tr , ' '); do
        for net in $nets $scale; do
            turn=$out/turn-$1-$net-$way
            : >"$turn.json" # before anybody looks for it
            (torch "$net" "$1" "$way" --turn "$turn" >"$turn.json" 2>"$turn.err" ||
                echo "PyTorch, $1, $net, $way: stopped early; see $turn.err" >&2
            touch "$turn.warm" "$turn.over") &
        done
    done
    for json in "$out"/turn-"$1"-*.json; do
        while [ ! -e "${json%.json}.warm" ]; do sleep 0.1; done
    done
}
take_turns() { # PRECISION
    for json in "$out"/turn-"$1"-*.json; do
        turn=${json%.json}
        touch "$turn"
        while [ ! -e "$turn.over" ]; do sleep 0.05; done
        cat "$json" >>"$results"
    done
    wait
}

: >"$results"
for precision in $precisions; do
    if [ -n "${WARM:-}" ] && [ -n "$has_torch" ]; then warm_up "$precision"; fi
    for net in $nets; do ours "$net" "$precision" kith; done
    if [ -n "${WARM:-}" ] && [ -n "$has_torch" ]; then take_turns "$precision"; else theirs "$nets${scale:+ $scale}" "$precision"; fi
    for net in $nets; do ours "$net" "$precision" kith-again; done
done
for net in $nets; do
    for precision in $precisions; do
        bench "$net" "$precision" --profile >"$out/profile-$net-$precision.txt" 2>&1 || :
    done
done
"$python" bench/cuda_table.py "$results"
