#!/bin/sh
# Makes the general embedding from the laid-out images: OUT/general.safetensors and what its card says of it.
#
#     research/general/make.sh DATA OUT [--device NAME] [--precision NAME] [OPTION of kith train …]
#     SMALL=1 research/general/make.sh DATA OUT        the same on a few drawn images, in a minute or two on a CPU
#
# DATA is what layout.py wrote. In order: pictures that are also judged leave the training sets (duplicates.py), the teachers are
# given their pooling and input (OUT/weights), the recipe is general.yaml with the paths of DATA and OUT, kith trains and measures
# the error rates of the validation classes (OUT/run), the run's model is written in half precision, and OUT/facts.txt gets
# the facts for the card. What is there is not made again, and a training that was stopped goes on, so the same command may be repeated.
# The full one wants a GPU (--device cuda --precision bf16) and half an hour with it.
#
# SMALL=1 takes the same steps: it draws DATA if that is not there, with one picture both in training and judged, its teachers have random weights,
# and a small network takes a few steps at 64 pixels. Its file is good for nothing but comparing: two OUTs have the same bytes.
# Environment: KITH, CUB (CUB-200-2011), RESNET50 and GOOGLENET (the teachers' files), PYTHON.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
KITH=${KITH:-$here/build/kith} CUB=${CUB:-data/CUB_200_2011} PYTHON=${PYTHON:-python3}
RESNET50=${RESNET50:-resnet50.safetensors} GOOGLENET=${GOOGLENET:-googlenet_bvlc.safetensors}
SMALL=${SMALL:-} recipe=$here/research/general/general.yaml

fail() {
    echo "make.sh: $1" >&2
    exit 1
}
[ $# -ge 2 ] || { sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0" && exit 1; }
data=$1 out=$2
shift 2
[ -x "$KITH" ] || fail "$KITH is not there; run make first, or set KITH"
mkdir -p "$out"
out=$(cd "$out" && pwd)
sets=$(sed -n 's|.*root: data/general/\([a-z-]*\)\.csv.*|\1|p' "$recipe")
judged='flowers caltech' # the sets that have classes held out for judging

# ---- a few drawn images, laid out as layout.py does ----

# draw SET SEED CLASSES IMAGES: a folder and a list; every second class judges where the set has judges, without labels each image is a class.
draw() {
    "$KITH" synth "$data/$1" --seed "$2" --classes "$3" --images "$4" --size 72 > /dev/null
    (cd "$data" && find "$1" -name '*.png') | LC_ALL=C sort | awk -F/ -v judges="$(echo " $judged " | grep -c " $1 ")" '
        BEGIN { print "path,label,split" }
        $2 != last { last = $2; n++ }
        { print $0 "," $2 "," (judges && n % 2 == 0 ? "test" : "train") }' > "$data/$1.csv"
}
if [ -n "$SMALL" ]; then
    sets='flowers caltech fruits coco birds'
    CUB=$data/cub
    if [ ! -e "$data/drawn" ]; then
        rm -rf "$data"
        mkdir -p "$data"
        draw flowers 1 16 6
        draw caltech 2 16 6
        draw fruits 3 10 6
        draw coco 4 12 4
        draw birds 5 8 4
        # CUB has numbers in its names; of its classes those above 100 judge.
        mkdir -p "$CUB/images/200.drawn"
        "$KITH" synth "$CUB/drawn" --seed 6 --classes 2 --images 3 --size 72 > /dev/null
        find "$CUB/drawn" -name '*.png' | LC_ALL=C sort | awk -v to="$CUB/images/200.drawn" '{ print "cp \"" $0 "\" \"" to "/" NR ".png\"" }' | sh
        (cd "$CUB/images" && find . -name '*.png' | LC_ALL=C sort | sed 's|^\./||' | awk '{ print NR, $0 }') > "$CUB/images.txt"
        cp "$CUB/images/200.drawn/1.png" "$data/birds/glyph00000/00000.png" # what duplicates.py must find
        touch "$data/drawn"
    fi
fi
data=$(cd "$data" && pwd) || fail "there are no images: run layout.py, or set SMALL=1"
for set in $sets; do [ -s "$data/$set.csv" ] || fail "$data/$set.csv is not there; layout.py makes it"; done

# ---- pictures that are judged ----
if [ ! -e "$data/duplicates.done" ]; then
    [ -s "$CUB/images.txt" ] || fail "$CUB/images.txt is not there; set CUB"
    # shellcheck disable=SC2086 # a list of names
    "$PYTHON" "$here/research/general/duplicates.py" "$KITH" "$data" "$CUB" $sets > "$out/duplicates.log"
    touch "$data/duplicates.done"
fi

# ---- the teachers ----

# teacher NAME OPTION…: OUT/weights/NAME.safetensors, which says how it is pooled and fed.
photo=$data/$(sed -n '2s/,.*//p' "$data/coco.csv")
teacher() {
    name=$1
    shift
    [ ! -s "$out/weights/$name.safetensors" ] || return 0
    mkdir -p "$out/weights"
    "$KITH" embed "$@" --pool both --resize shorter256 --crop 224 "$photo" --save "$out/weights/part.safetensors" -o "$out/weights/x.npy" > /dev/null ||
        fail "the teacher $name cannot be made; RESNET50 and GOOGLENET name the files"
    rm -f "$out/weights"/x.*
    mv "$out/weights/part.safetensors" "$out/weights/$name.safetensors"
}
if [ -n "$SMALL" ]; then
    teacher resnet50-both --backbone resnet18 --seed 1
    teacher googlenet-both --backbone googlenet --seed 2
else
    teacher resnet50-both --backbone resnet50 --weights "$RESNET50" --settings stride=1x1,preprocess=caffe
    teacher googlenet-both --backbone googlenet --weights "$GOOGLENET"
fi

# ---- the run ----
if [ ! -e "$out/general.yaml" ]; then
    pattern=$(echo "$sets" | tr ' \n' '||')
    awk -v pattern="/(${pattern%|})\\.csv" '!/root: data\/general\// || $0 ~ pattern' "$recipe" |
        sed "s|data/general/|$data/|; s|weights: weights/|weights: $out/weights/|" > "$out/general.yaml.part"
    mv "$out/general.yaml.part" "$out/general.yaml"
fi
if [ -n "$SMALL" ]; then
    set -- --set input.resize=atmost72 --set input.crop=64 --set input.test_resize=shorter73 --set input.test_crop=64 \
        --set model.settings.width=0.25 --set model.embedding=32 --set batch.classes=8 --set batch.images=2 --set optim.steps=12 \
        --set optim.warmup=2 --set eval.every=12 --set log_every=4 --set threads=1 "$@"
fi
if [ ! -e "$out/run/result.json" ]; then
    if [ -e "$out/run/recipe.yaml" ]; then "$KITH" train "$out/run" --resume; else "$KITH" train "$out/general.yaml" --out "$out/run" "$@"; fi
fi
grep -q '"error_rates"' "$out/run/result.json" || fail "the run measured no error rates"

# ---- the file, and what its card says ----
if [ ! -e "$out/general.safetensors" ]; then
    "$KITH" export "$out/run" --half -o "$out/part.safetensors" > /dev/null
    mv "$out/part.safetensors" "$out/general.safetensors"
fi
{
    echo "made by: $("$KITH" --version | head -n 1)"
    echo "file: $(wc -c < "$out/general.safetensors") bytes, SHA-256 $(sha256sum < "$out/general.safetensors" | cut -d ' ' -f 1)"
    echo "images that train, by set:"
    for set in $sets; do echo "  $set $(awk -F, '$3 == "train"' "$data/$set.csv" | wc -l)"; done
    echo "pictures that were judged, too, and left out: $(wc -l < "$data/duplicates.tsv")"
    echo "options: $*"
    sed -n '/^## Scores/,/^## How to use it/{/^## How to use it/!p;}' "$out/run/MODEL.md"
} > "$out/facts.txt"
echo "$out/general.safetensors: $(wc -c < "$out/general.safetensors") bytes; for the card: $out/facts.txt; judge it: research/general/judge.sh"
