#!/bin/sh
# Value + gradient of every loss on the device, as a captured step runs them: milliseconds, and the value beside the
# host's. Then the miners, and a cross-batch memory of 16,384 items.
#
#     bench/objective_cuda.sh [KITH]      (default build/cuda/kith)
#
# Without a device it says so and is done.
set -eu
cd "$(dirname "$0")/.."
kith=${1:-build/cuda/kith}
on_device() { "$kith" bench objective --device cuda "$@"; }
if ! first=$(on_device --loss raw+vthm --batch 8 --steps 1 2>&1); then
    echo "no CUDA objective here: $(echo "$first" | tail -n 1)" >&2
    exit 0
fi
on_device --loss raw+vthm --batch 128,512,1024,2048
echo "the same on the host:"
"$kith" bench objective --loss raw+vthm --batch 128,512,1024,2048 --steps 3 --no-products
on_device --all --batch 128,512,2048
on_device --loss triplet+semihard --loss triplet+hard --loss margin+distance_weighted --loss contrastive+pair_margin \
    --batch 128,512,2048 --images 4
for batch in 128 1024; do
    on_device --recipe '{loss: {name: raw}, miner: {name: vthm}, memory: {size: 16384, warmup: 0}}' --batch $batch
    on_device --recipe '{loss: {name: contrastive}, memory: {size: 16384, warmup: 0}}' --batch $batch
done
