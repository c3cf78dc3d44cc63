#!/bin/sh
# On CUDA beside the plain step: HORDE, large batches, out of memory, embedding, and a whole job from JPEG files.
#
#     CUB=CUB_200_2011 WEIGHTS=googlenet_bvlc.safetensors bench/cuda_more.sh [OUT] [WHAT…]
#
# WHAT: horde large memory embed job (all of them). KITH is the program (build/cuda/kith) or a bundle's run.sh
# followed by kith; STEPS the length of the job (1000). Without a device it says so and is done.
set -eu
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] && shift
what=${*:-horde large memory embed job}
kith=${KITH:-build/cuda/kith}
mkdir -p "$out"
if ! $kith bench train --backbone convnet4 --device cuda --batch 8 --steps 1 >"$out/first.txt" 2>&1; then
    echo "no CUDA step here: $(tail -1 "$out/first.txt")" >&2
    exit 0
fi

step() { # ARGUMENTS: JSON of a training step in bf16
    $kith bench train --device cuda --precision bf16 --size 227 --json "$@" 2>&1
}
field() { # the number of a key
    sed -n 's/.*"'"$1"'": *\([0-9.eE+-]*\).*/\1/p'
}

horde() {
    loss='loss: {name: binomial}'
    with='regularizers: [{name: horde, orders: 5, dimension: 8192, embedding: 512}]'
    for net in googlenet bn_inception; do
        a=$(step --backbone $net --batch 80 --images 10 --objective "{$loss}" | tee "$out/plain-$net.json" | field step_seconds)
        b=$(step --backbone $net --batch 80 --images 10 --objective "{$loss, $with}" | tee "$out/horde-$net.json" | field step_seconds)
        echo "$net ${a:-0} ${b:-0}" | awk '{ printf "HORDE, 5 orders of 8192, batch 80, %s: %.3f ms, without %.3f ms: %.2f times; wanted 1.5 at most\n", \
            $1, 1e3 * $3, 1e3 * $2, ($2 > 0 ? $3 / $2 : 0) }'
        $kith bench train --device cuda --precision bf16 --size 227 --backbone $net --batch 80 --images 10 \
            --objective "{$loss, $with}" --profile >"$out/profile-horde-$net.txt" 2>&1 || :
    done
}

large() {
    for net in googlenet bn_inception resnet50; do
        step --backbone $net --batch 1024 --objective '{loss: raw, miner: vthm}' --steps 20 | tee "$out/large-$net.json" |
            awk -v net=$net '{ if (match($0, /"images_per_second": *[0-9.]+/)) { split(substr($0, RSTART, RLENGTH), a, ":")
                match($0, /"device_bytes": *[0-9]+/); split(substr($0, RSTART, RLENGTH), b, ":")
                printf "batch 1024, %s: %.0f images/s, %.2f GiB\n", net, a[2], b[2] / 1073741824 } else print "batch 1024, " net ": " $0 }'
    done
}

memory() { # more than any device has: one line
    step --backbone resnet50 --batch 16384 --objective '{loss: raw, miner: vthm}' --steps 1 | tail -1 | sed 's/^/too large a batch: /' || :
}

embed() {
    for net in googlenet bn_inception resnet50; do
        for precision in bf16 float32; do
            $kith bench embed --backbone $net --device cuda --precision $precision --batch 128 --size 227 --steps 100 --json \
                >"$out/embed-$net-$precision.json" 2>&1 || :
            echo "embed $net $precision: $(field images_per_second <"$out/embed-$net-$precision.json") images/s"
        done
    done
}

# From JPEG files: all of the first epoch is decoded, the rest comes from the cache.
job() {
    if [ -z "${CUB:-}" ]; then
        echo "job: CUB names no folder" >&2
        return 0
    fi
    cat >"$out/job.yaml" <<RECIPE
data:  {dataset: cub, root: $CUB}
input: {resize: squash256, crop: 227, mirror: true}
model: {backbone: googlenet, embedding: 512${WEIGHTS:+, weights: $WEIGHTS}}
batch: {classes: 32, images: 4}
objective: {loss: {name: raw}, miner: {name: vthm}}
optim: {name: adam, lr: 1e-5, multipliers: {embedding: 10}, steps: ${STEPS:-1000}}
eval:  {every: 0, seen: false, untrained: true, select: last}
loader: {cache: 4096}
log_every: 10
RECIPE
    rm -rf "$out/job"
    began=$(date +%s)
    if ! $kith train "$out/job.yaml" --out "$out/job" --device cuda --precision bf16 --no-report >"$out/job.log" 2>&1; then
        echo "job: $(tail -1 "$out/job.log")"
        return 0
    fi
    echo "job: ${STEPS:-1000} steps of batch 128 and two evaluations in $(($(date +%s) - began)) s"
    # Seconds of training so far are in every line of the log.
    sed -n 's/.*"kind": *"step".*"step": *\([0-9]*\).*"seconds": *\([0-9.eE+-]*\).*/\1 \2/p' "$out/job/log.jsonl" | awk '
        NR == 1 { s = $1; t = $2 } { if (!m && $1 >= 100) { m = $1; u = $2 } n = $1; v = $2 }
        END { if (n > m && m) printf "job: %.0f images/s over all %d steps, %.0f from step %d on\n", 128 * n / v, n, 128 * (n - m) / (v - u), m }'
    sed -n 's/.*"kind": *"eval".*"step": *\([0-9]*\).*"split": *"\([a-z]*\)".*"seconds": *\([0-9.eE+-]*\).*/job: evaluation at step \1 (\2): \3 s/p' \
        "$out/job/log.jsonl"
    cp "$out/job/log.jsonl" "$out/job-log.jsonl"
    tail -6 "$out/job.log"
}

for check in $what; do $check; done
