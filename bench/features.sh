#!/bin/sh
# Training on features made elsewhere: the rate of `kith train` beside that of the bare step, which reads no data.
#
#     bench/features.sh [FOLDER]
#
# FOLDER (build/features) keeps the rows: 1,000,000 of 768 numbers in 10,000 classes, 3 GB. A 128-d head learns from them with
# RAW and VTHM. From the environment: ROWS, NUMBERS, CLASSES, STEPS (3000), TURNS (5), BATCH_CLASSES (28, of 4 rows each), BACKBONE
# (none), KITH (the program). The two take turns and run as many steps, because on a machine with other work a short run is
# slowed down less than a long one. Peak memory is that of `kith train`.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
folder=${1:-build/features}
kith=${KITH:-$root/build/kith}
rows=${ROWS:-1000000} numbers=${NUMBERS:-768} classes=${CLASSES:-10000}
steps=${STEPS:-3000} turns=${TURNS:-5} batch=${BATCH_CLASSES:-28} backbone=${BACKBONE:-none}
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
optim: {lr: 1e-9, steps: $steps} # hardly anything is learned, so that there are pairs to mine in every step of both
eval: {every: 0, select: last, untrained: false, test: false, seen: false, clustering: false}
checkpoint: {every: 1000000000, minutes: 0}
log_every: 100
END
bare() {
    "$kith" bench train --recipe recipe.yaml --steps "$steps" --json | sed -n 's/.*"images_per_second": *\([0-9.eE+-]*\).*/\1/p'
}
# The median of the log's lines, each of which is the rate of 100 steps.
trained() {
    rm -rf run
    /usr/bin/time -f '%M' -o memory.txt "$kith" train recipe.yaml --out run --no-report >train.txt 2>&1
    sed -n 's/.*"kind": "step".*"img_per_s": *\([0-9.eE+-]*\).*/\1/p' run/log.jsonl | median
}
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

: >bare.txt
: >trained.txt
cat "$x" >/dev/null # into the page cache, as far as it fits
for turn in $(seq "$turns"); do
    bare >>bare.txt
    trained >>trained.txt
    echo "turn $turn: the bare step $(tail -1 bare.txt) rows/s, kith train $(tail -1 trained.txt)"
done
echo "$(median <bare.txt) $(median <trained.txt) $(tail -1 memory.txt)" | awk -v n="$rows" -v d="$numbers" '{
    printf "%d x %d, medians: the bare step %.0f rows/s, kith train %.0f: %.1f %%; wanted 90 %% at least. Peak memory %.0f MiB\n", \
        n, d, $1, $2, 100 * $2 / $1, $3 / 1024 }'
