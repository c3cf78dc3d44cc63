#!/bin/sh
# Images per second of the loader, and of PyTorch's on the same files: data.sh [CUB_ROOT]
# Twice: plain views, and views with all effects (colours, RandAugment, blur, erased parts). The two take turns, three times each; read
# the medians. CUB_ROOT defaults to $CUB, else data/CUB_200_2011.
set -eu
cd "$(dirname "$0")/.."
root=${1:-${CUB:-data/CUB_200_2011}}
[ -e "$root/images.txt" ] || { echo "no CUB-200-2011 at $root: skipped (bench/data.sh ROOT says where it is)"; exit 0; }
root=$(cd "$root" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/effects.yaml" <<EOF
data: {dataset: cub, root: $root}
input:
  resize: squash256
  crop: 227
  effects:
    - {name: randaugment, n: 2, magnitude: 9}
    - {name: jitter, brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1, p: 0.8}
    - {name: grey, p: 0.2}
    - {name: blur, kernel: 23, sigma: [0.1, 2], p: 0.5}
    - {name: erase, p: 0.5}
EOF
peer() {
    if /usr/bin/python3 -c 'import torch, torchvision, PIL' 2>/dev/null; then
        /usr/bin/python3 bench/data_peer.py "$root" --workers 2 "$@"
    fi
}
for turn in 1 2 3; do
    echo "-- turn $turn, plain"
    build/kith data "$root" --speed --workers 2 | grep '^speed'
    peer --images 3000
    echo "-- turn $turn, effects"
    build/kith data "$work/effects.yaml" --speed --workers 2 | grep '^speed'
    peer --images 1500 --effects
done
