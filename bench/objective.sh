#!/bin/sh
# Value + gradient of the losses: kith beside PyTorch autograd in turn, and beside the two matrix
# products alone. Then the largest batch. Needs python3-torch for the peer; without it, ours alone.
set -eu
cd "$(dirname "$0")/.."
kith=${KITH_PROGRAM:-build/kith}
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    /usr/bin/python3 bench/objective_peer.py --kith "$kith" "$@"
else
    "$kith" bench objective --all
fi
echo "largest batch: 16,384 items"
"$kith" bench objective --loss raw+vthm --batch 16384 --steps 1 --no-products --json
