#!/bin/sh
# Training over ranks: images per second of GoogLeNet on 1 rank and on RANKS ranks of CORES cores each, with the same batch per
# rank, and how much faster that is.
#
#     bench/ranks.sh [RANKS [CORES [STEPS]]]        2 ranks of 1 core, 12 steps
#
# KITH is the program (build/kith), BATCH the images per rank (32), SIZE the side of the crop (227). The median over the steps
# after the first three, from the log of each run. Ranks are bound to their cores, so the machine should have nothing else to do.
set -eu
cd "$(dirname "$0")/.."
ranks=${1:-2}
cores=${2:-1}
steps=${3:-12}
kith=$(realpath "${KITH:-build/kith}")
batch=${BATCH:-32}
size=${SIZE:-227}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
command -v mpirun >/dev/null || {
    echo "there is no mpirun: install openmpi-bin" >&2
    exit 1
}

"$kith" synth "$work/glyphs" --classes $((batch * ranks)) --images 4 --size 64 >/dev/null 2>&1
train() { # RANKS FOLDER
    cat >"$work/recipe.yaml" <<END
data: {root: $work/glyphs}
input: {resize: squash$size, crop: $size}
model: {backbone: googlenet, embedding: 512}
batch: {classes: $((batch * $1 / 4)), images: 4}
objective: {loss: binomial}
optim: {lr: 1e-4, steps: $steps}
eval: {every: 0, select: last, untrained: false, seen: false, test: false}
checkpoint: {every: 1000000}
loader: {workers: 1, cache: 2048}
threads: $cores
log_every: 1
END
    mpirun --map-by "slot:PE=$cores" --bind-to core -np "$1" "$kith" train "$work/recipe.yaml" --no-report -q --out "$2" \
        >"$work/output.txt" 2>&1 || {
        cat "$work/output.txt" >&2
        exit 1
    }
    sed -nE 's/.*"kind": "step".*"img_per_s": ([0-9.e+]+),.*/\1/p' "$2/log.jsonl" | tail -n +4 | sort -g |
        awk '{ x[NR] = $1 } END { print (NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2) }'
}
one=$(train 1 "$work/one")
many=$(train "$ranks" "$work/many")
echo "$one $many" | awk -v r="$ranks" -v c="$cores" -v b="$batch" '{
    printf "GoogLeNet, batch %d per rank: 1 x %d core %.2f img/s, %d x %d core %.2f img/s: %.2f times\n", b, c, $1, r, c, $2, $2 / $1 }'
