#!/bin/sh
# Training on features made elsewhere: the rate of `kith train` beside that of the bare step, which reads no data.
#
#     bench/features.sh [FOLDER]
#
# FOLDER (build/features) keeps the rows: 1,000,000 of 768 numbers in 10,000 classes, 3 GB. A 128-d head learns from them with
# RAW and VTHM. From the environment: ROWS, NUMBERS, CLASSES, STEPS (3000, 4000 at most), TURNS (8), BATCH_CLASSES (28, of 4 rows each),
# BACKBONE (none), KITH (the program). The two take turns. A step's time is that of a long run less that of a short one, over the
# steps between them, so that starting is not in it: on the clock, and of the processors. On a busy machine the second is the
# fairer one; chrt -r 10 before the script gives both priority over everything else. Memory is that of `kith train`: its own, and the
# pages of the file that it has touched, which are the system's page cache.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
folder=${1:-build/features}
kith=${KITH:-$root/build/kith}
rows=${ROWS:-1000000} numbers=${NUMBERS:-768} classes=${CLASSES:-10000}
steps=${STEPS:-3000} turns=${TURNS:-8} batch=${BATCH_CLASSES:-28} backbone=${BACKBONE:-none}
mkdir -p "$folder"
cd "$folder"
x=rows-$rows-$numbers-$classes.npy
if ! [ -f "$x" ]; then
    cc -O2 -o features_rows "$root/bench/features_rows.c"
    ./features_rows part.npy "$rows" "$numbers" "$classes"
    mv part.labels.npy "${x%.npy}.labels.npy"
    mv part.npy "$x"
fi

# recipe STEPS
recipe() {
    cat <<END
data: {features: $x, validation: 0}
model: {backbone: $backbone, embedding: 128}
batch: {classes: $batch, images: 4}
objective: {loss: raw, miner: vthm}
optim: {lr: 1e-9, steps: $1} # hardly anything is learned, so that there are pairs to mine in every step of both
eval: {every: 0, select: last, untrained: false, test: false, seen: false, clustering: false}
checkpoint: {every: 1000000000, minutes: 0}
log_every: 100
END
}
recipe 1000 >short.yaml
recipe $((1000 + steps)) >long.yaml
# Seconds on the clock, and of the processors.
seconds() { /usr/bin/time -f '%e %U %S' -o time.txt "$@" >out.txt 2>&1 && awk '{ print $1, $2 + $3 }' time.txt; }
bare() {
    seconds "$kith" bench train --recipe short.yaml --steps 96
    seconds "$kith" bench train --recipe short.yaml --steps $((96 + steps))
}
trained() {
    for length in short long; do
        rm -rf run
        seconds "$kith" train $length.yaml --out run --no-report
    done
}
# Microseconds of a step, from the two lines above: on the clock, and of the processors.
step() { awk -v n="$steps" '{ c = 1e6 * ($1 - w) / n; p = 1e6 * ($2 - u) / n; w = $1; u = $2 } END { printf "%.1f %.1f\n", c, p }'; }
# median COLUMN
median() { awk -v c="$1" '{ print $c }' | sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

: >bare.txt
: >trained.txt
cat "$x" >/dev/null # into the page cache, as far as it fits
for turn in $(seq "$turns"); do
    bare | step >>bare.txt
    trained | step >>trained.txt
    echo "turn $turn: microseconds a step and of the processors: the bare step $(tail -1 bare.txt), kith train $(tail -1 trained.txt)"
done
rm -rf run
"$kith" train long.yaml --out run --no-report >out.txt 2>&1 &
while kill -0 $! 2>/dev/null; do
    sed -n 's/^\(RssAnon\|RssFile\):[^0-9]*\([0-9]*\) kB/\1 \2/p' "/proc/$!/status" 2>/dev/null || true
    sleep 0.1
done >memory.txt
awk '$2 > m[$1] { m[$1] = $2 } END { printf "kith train held %.0f MiB at most, and %.0f of files\n", m["RssAnon"] / 1024, m["RssFile"] / 1024 }' memory.txt
paste -d ' ' bare.txt trained.txt | awk '{ print 100 * $1 / $3, 100 * $2 / $4 }' >ratios.txt
echo "$(median 1 <bare.txt) $(median 1 <trained.txt) $(median 1 <ratios.txt) $(median 2 <ratios.txt)" |
    awk -v n="$rows" -v d="$numbers" -v rows=$((4 * batch)) '{
        printf "%d x %d, medians: the bare step %.0f us (%.0f rows/s), kith train %.0f us (%.0f rows/s)\n", n, d, $1, 1e6 * rows / $1, $2, 1e6 * rows / $2
        printf "kith train has %.1f %% of the bare step in the same turn on the clock, and %.1f %% by processor time; wanted 90 %%\n", $3, $4 }'
