#!/bin/sh
# kith.evaluate of Python beside the program, and what a call of kith.Loss costs over the call in C: python.sh [ROWS]
# The two take turns, three times each. Python's peak memory is that of its process with the array, numpy and the evaluation.
set -eu
cd "$(dirname "$0")/.."
rows=${1:-60502}
python=${PYTHON:-/usr/bin/python3}
PYTHONPATH=$PWD/build/python
export PYTHONPATH
"$python" -c 'import kith' 2>/dev/null || { echo "no Python package here: skipped (make setup-python builds it)"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" bench/python_peer.py make "$work" "$rows"
for turn in 1 2 3; do
    echo "-- turn $turn"
    "$python" bench/python_peer.py evaluate "$work"
    "$python" bench/python_peer.py program "$work" build/kith eval --embedding "$work/x.npy" --labels "$work/y.npy" \
        --metrics retrieval --json
done
"$python" bench/python_peer.py loss
