#!/bin/sh
# The rows that bench/search.sh searches: real embeddings, never noise. search_rows.sh [FOLDER] (build/search):
#   glyphs-*.npy  d = 128: ten times 100,000 drawn glyphs (2,000 new classes of 50 each) and Omniglot, through a small
#                 network trained on 500 other classes
#   cub-*.npy     d = 512: the images of CUB-200-2011 in several croppings, through GoogLeNet and a random projection of its
#                 1,024 features to 512
# OMNIGLOT=FOLDER, CUB=FOLDER and GOOGLENET=FILE say where those are; what is not given is left out. What is
# there already is kept: the script goes on where it was stopped.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
kith=${KITH_PROGRAM:-$root/build/kith}
mkdir -p "${1:-build/search}"
cd "${1:-build/search}"
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

# embed OUT ARGUMENT…: to a file that is there only when it is whole
embed() {
    out=$1
    shift
    "$kith" embed "$@" -o part.npy
    mv part.npy "$out"
    rm -f part.*
}

if ! [ -f run/model.safetensors ]; then
    rm -rf glyphs run
    "$kith" synth --classes 600 glyphs
    "$kith" train "$root/recipes/demo.yaml" --out run --set data.root=glyphs --set input.resize=squash36 \
        --set input.crop=32 --set model.embedding=128 --set model.settings.features=64
fi
for seed in 101 102 103 104 105 106 107 108 109 110; do
    [ -f "glyphs-$seed.npy" ] && continue
    rm -rf drawn
    "$kith" synth --classes 2000 --images 50 --size 40 --seed "$seed" drawn
    embed "glyphs-$seed.npy" run drawn
    rm -rf drawn
done
if [ -n "${OMNIGLOT:-}" ] && ! [ -f glyphs-omniglot.npy ]; then
    embed glyphs-omniglot.npy run "$OMNIGLOT"
fi
[ -n "${CUB:-}" ] && [ -n "${GOOGLENET:-}" ] || exit 0
for view in squash256 shorter256 squash288; do
    [ -f "cub-$view.npy" ] && continue
    embed "cub-$view.npy" --backbone googlenet --weights "$GOOGLENET" --embedding 512 --resize "$view" "$CUB"
done
