#!/bin/sh
# The training step on CUDA against PyTorch, on one machine in one call.
#
#     bench/cuda_train.sh [OUT]
#
# The step: forward, RAW loss on the pairs VTHM keeps, backward, Adam; batch 128, 227 px, 512-d. kith runs twice,
# before and after PyTorch; both are printed and ratios take the slower. From the
# environment: NETS, PRECISIONS (bf16 float32), HOW (PyTorch: eager compiled), SCALE (nets of PyTorch's own, for
# scale: googlenet_bn), BATCH, SIZE, STEPS, KITH (the program, or a bundle's run.sh followed by kith), PYTHON. WARM=1
# first compiles all of PyTorch's nets side by side, so that the measured processes find them in its cache. Results are JSON lines in OUT/train.jsonl, kith's
# profiles in OUT/profile-*.txt. Without a device it says so and is done.
set -eu
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d)}
nets=${NETS:-googlenet bn_inception resnet50} precisions=${PRECISIONS:-bf16 float32} how=${HOW:-eager compiled}
batch=${BATCH:-128} size=${SIZE:-227} steps=${STEPS:-60}
kith=${KITH:-build/cuda/kith} python=${PYTHON:-python3} scale=${SCALE-googlenet_bn}
mkdir -p "$out"
results=$out/train.jsonl
objective='{loss: {name: raw}, miner: {name: vthm}}'
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
    $kith bench train --backbone "$net" --device cuda --precision "$precision" --batch "$batch" --size "$size" \
        --objective "$objective" --steps "$steps" --json "$@" >"$out/line.json" 2>"$out/line.err" ||
        printf '{"backbone": "%s", "precision": "%s", "error": "%s"}\n' "$net" "$precision" \
            "$(tail -1 "$out/line.err" | tr -d '"\\' | cut -c1-200)" >"$out/line.json"
    sed "s/^{/{\"who\": \"$who\", /" "$out/line.json" >>"$results"
}
ways() { # PRECISION: PyTorch's, with commas; float32 in both layouts, "PyTorch's best" being either
    for one in $how; do
        printf '%s,' "$one"
        if [ "$1" = float32 ]; then printf '%s_nchw,' "$one"; fi
    done | sed 's/,$//'
}
theirs() { # NETS PRECISION
    [ -n "$has_torch" ] || return 0
    PYTHONUNBUFFERED=1 timeout "${TORCH_SECONDS:-400}" "$python" bench/train_torch_cuda.py --nets "$(echo "$1" | tr ' ' ,)" \
        --precision "$2" --how "$(ways "$2")" --batch "$batch" --size "$size" --steps "$steps" \
        >>"$results" 2>"$out/torch-$2.err" || echo "PyTorch, $2: stopped early; see $out/torch-$2.err" >&2
}

warm() { # compile, and measure nothing
    [ -n "$has_torch" ] || return 0
    for precision in $precisions; do
        for net in $nets $scale; do
            timeout "${TORCH_SECONDS:-400}" "$python" bench/train_torch_cuda.py --nets "$net" --precision "$precision" \
                --how "$(ways "$precision" | tr , '\n' | grep compiled | paste -sd,)" --batch "$batch" --size "$size" \
                --steps 1 --warm-ups 2 >"$out/warm-$net-$precision.txt" 2>&1 &
        done
    done
    wait
}

: >"$results"
case "$how" in *compiled*) if [ -n "${WARM:-}" ]; then warm; fi ;; esac
for precision in $precisions; do
    for net in $nets; do ours "$net" "$precision" kith; done
    theirs "$nets${scale:+ $scale}" "$precision"
    for net in $nets; do ours "$net" "$precision" kith-again; done
done
for net in $nets; do
    for precision in $precisions; do
        $kith bench train --backbone "$net" --device cuda --precision "$precision" --batch "$batch" --size "$size" \
            --objective "$objective" --steps "$steps" --profile >"$out/profile-$net-$precision.txt" 2>&1 || :
    done
done
"$python" bench/cuda_table.py "$results"
