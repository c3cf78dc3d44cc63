#!/bin/sh
# Training on features made elsewhere: the rate of `kith train` beside that of the bare step, which reads no data.
#
#     bench/features.sh [FOLDER]
#
# FOLDER (build/features) keeps the rows: 1,000,000 of 768 numbers in 10,000 classes, 3 GB. A 128-d head learns from them with
# RAW and VTHM. From the environment: ROWS, NUMBERS, CLASSES, STEPS (3000), BATCH_CLASSES (28, of 4 rows each), BACKBONE (none), KITH
# (the program). The bare step is timed before and after; the ratio takes the faster. Peak memory is that of `kith train`.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
folder=${1:-build/features}
kith=${KITH:-$root/build/kith}
rows=${ROWS:-1000000} numbers=${NUMBERS:-768} classes=${CLASSES:-10000}
steps=${STEPS:-3000} batch=${BATCH_CLASSES:-28} backbone=${BACKBONE:-none}
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
mkdir -p "$folder"
cd "$folder"
x=rows-$rows-$numbers-$classes.npy
if ! [ -f "$x" ]; then
    cc -O2 -o features_rows "$root/bench/features_rows.c"
    ./features_rows part.npy "$rows" "$numbers" "$classes"
    mv part.labels.npy "${x%.npy}.labels.npy"
    mv part.npy "$x"
fi

cat >recipe.yaml <<END
data: {features: $x, validation: 0}
model: {backbone: $backbone, embedding: 128}
batch: {classes: $batch, images: 4}
objective: {loss: raw, miner: vthm}
optim: {lr: 1e-4, steps: $steps}
eval: {every: 0, select: last, untrained: false, test: false, seen: false, clustering: false}
checkpoint: {every: 1000000000, minutes: 0}
log_every: 100
END
bare() {
    "$kith" bench train --recipe recipe.yaml --steps 200 --json | sed -n 's/.*"images_per_second": *\([0-9.eE+-]*\).*/\1/p'
}
first=$(bare)
rm -rf run
/usr/bin/time -f '%M' -o memory.txt "$kith" train recipe.yaml --out run --no-report >train.txt 2>&1
second=$(bare)
rate=$(sed -n 's/.*"img_per_s": *\([0-9.eE+-]*\).*/\1/p' run/result.json | head -1)
echo "$first $second $rate $(tail -1 memory.txt)" | awk -v n="$rows" -v d="$numbers" '{
    bare = $1 > $2 ? $1 : $2
    printf "%d x %d: kith train %.0f rows/s, the bare step %.0f and %.0f: %.1f %%; wanted 90 %% at least. Peak memory %.0f MiB\n", \
        n, d, $3, $1, $2, 100 * $3 / bare, $4 / 1024 }'
