# shellcheck shell=bash
# What the long tests share; sourced, not run. Sets: kith (the program, from KITH_PROGRAM or build/kith), work (a folder
# of the test's own, removed at the end; in memory where that is possible, for runs sync their files).
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kith=$(realpath "${KITH_PROGRAM:-$root/build/kith}")
[ -x "$kith" ] || {
    echo "there is no program at $kith: run make, or set KITH_PROGRAM" >&2
    exit 1
}
in=${TMPDIR:-/dev/shm}
[ -w "$in" ] || in=/tmp
work=$(mktemp -d "$in/kith-long-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cp "$kith" "$work/kith" || exit 1 # a build meanwhile changes nothing
kith=$work/kith
# Tests share the cores: threads that wait must not spin.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

# make_data CLASSES IMAGES STEPS: glyphs in $work/glyphs, and a small convnet4 for them in $work/recipe.yaml. One thread:
# the bits of two runs are compared, and another number of threads would change them.
make_data() {
    "$kith" synth "$work/glyphs" --classes "$1" --images "$2" --size 24 >"$work/synth.txt"
    cat >"$work/recipe.yaml" <<END
data: {root: $work/glyphs}
input: {resize: squash20, crop: 16, channels: 1}
model: {backbone: convnet4, embedding: 8, settings: {width: 16}}
batch: {classes: 3, images: 2}
objective: {loss: binomial}
optim: {lr: 3e-3, steps: $3}
eval: {every: 20}
checkpoint: {every: 4}
loader: {workers: 1}
threads: 1
log_every: 5
END
}

# A file without what clocks say.
without_clocks() {
    sed -E 's/"(seconds|wall_seconds|img_per_s)": [^,}]*//g' "$1"
}

# same_run A B: do two finished runs have the same model, scores and log? Says which file differs.
same_run() {
    local name
    for name in model.safetensors best.safetensors test/embedding.npy test/labels.npy split.csv data.csv; do
        cmp "$1/$name" "$2/$name" || return 1
    done
    for name in result.json log.jsonl; do
        without_clocks "$1/$name" | cmp - <(without_clocks "$2/$name") || {
            echo "$1/$name and $2/$name differ" >&2
            return 1
        }
    done
}

milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}
