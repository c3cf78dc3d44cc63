#!/bin/sh
# Memory and time of many proxies over ranks: CLASSES training classes with 64 numbers each, on 1, 2 and 4 ranks.
#
#     bench/proxies.sh [CLASSES [SAMPLE]]        1,000,000 classes, sample 0.1
#
# KITH is the program (build/kith), STEPS the steps (12), RANKS the numbers of ranks ("1 2 4"). Data are features of 8 numbers, one
# row for each class; half of the classes are for testing and are not looked at. Printed: the peak memory of the first
# rank, which writes the checkpoint at the end, and of the others; the same with 1,000 classes of as many rows (everything but the
# proxies); seconds per step, the median.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
classes=${1:-1000000}
sample=${2:-0.1}
kith=$(realpath "${KITH:-build/kith}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
cc -O2 -o "$work/rows" "$root/bench/features_rows.c"
cd "$work"
./rows many.npy $((2 * classes)) 8 $((2 * classes))
./rows few.npy $((2 * classes)) 8 2000

cat >rank.sh <<'END'
exec /usr/bin/time -o "$1.$OMPI_COMM_WORLD_RANK" -f '%M' "$KITH_PROGRAM" train recipe.yaml --no-report -q --out run
END
measure() { # DATA RANKS
    cat >recipe.yaml <<END
data: {features: $1.npy, validation: 0}
model: {backbone: none, embedding: 64}
batch: {classes: 64, images: 1}
objective: {loss: {name: normsoftmax, sample: $sample}}
optim: {lr: 1e-3, steps: ${STEPS:-12}}
eval: {every: 0, select: last, untrained: false, seen: false, test: false}
checkpoint: {every: 1000000}
threads: 1
log_every: 1
END
    rm -rf run peak.*
    KITH_PROGRAM=$kith mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$2" sh rank.sh peak >output.txt 2>&1 || {
        cat output.txt >&2
        exit 1
    }
    seconds=$(sed -nE 's/.*"kind": "step".*"img_per_s": ([0-9.e+]+),.*/\1/p' run/log.jsonl | tail -n +4 | sort -g |
        awk '{ x[NR] = $1 } END { print 64 / x[int((NR + 1) / 2)] }')
    cat peak.* >all.txt # in the order of the ranks
    awk -v s="$seconds" -v d="$1" -v n="$2" '{ x = $1 / 1024; if (NR == 1) first = x; else if (x > most) most = x } END {
        printf "%-4s classes, %d ranks: peak of the first rank %.0f MiB, of the others %.0f MiB each; %.3f s a step\n", \
            d, n, first, most, s }' all.txt
}
for n in ${RANKS:-1 2 4}; do
    measure few "$n"
    measure many "$n"
done
