#!/bin/sh
# Images per second of the loader, and of PyTorch's on the same files: data.sh [CUB_ROOT]
# The two take turns, three times each; read the medians. CUB_ROOT defaults to $CUB, else data/CUB_200_2011.
set -eu
cd "$(dirname "$0")/.."
root=${1:-${CUB:-data/CUB_200_2011}}
[ -e "$root/images.txt" ] || { echo "no CUB-200-2011 at $root: skipped (bench/data.sh ROOT says where it is)"; exit 0; }
for turn in 1 2 3; do
    echo "-- turn $turn"
    build/kith data "$root" --speed --workers 2 | grep '^speed'
    if /usr/bin/python3 -c 'import torch, torchvision, PIL' 2>/dev/null; then
        /usr/bin/python3 bench/data_peer.py "$root" --workers 2 --images 3000
    fi
done
