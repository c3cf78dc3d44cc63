#!/bin/sh
# What kith can do, in one run: a network turns generated images into embeddings, and images of the
# same pattern come out next to each other. WEIGHTS=FILE takes trained weights of BVLC's GoogLeNet
# instead of random ones.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
say() { echo "\$ $*"; "$@"; }
say build/kith --version
say build/kith list
if [ -n "${WEIGHTS:-}" ]; then
    say build/kith embed --backbone googlenet --weights "$WEIGHTS" --generate 8 -o "$folder/features.npy"
else
    say build/kith embed --backbone googlenet --generate 8 -o "$folder/features.npy"
fi
say build/kith embed --backbone convnet4 --embedding 32 --generate 8 --save "$folder/model.safetensors"
say build/kith embed "$folder/model.safetensors" --generate 8
say build/kith bench train --backbone convnet4 --batch 32 --steps 20
