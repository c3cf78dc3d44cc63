#!/bin/sh
# The tests on a machine with a GPU: builds build/cuda and runs scripts/check-cuda.sh there, logs in build/device.
#
#     scripts/test-device.sh [WHAT…]     WHAT as check-cuda.sh has it (all of them)
#
# The last line counts the checks. Exit status 77 where there is no GPU: then nothing was looked at.
set -eu
cd "$(dirname "$0")/.."
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || gpu=
[ -n "$gpu" ] || { echo "no GPU here: run this on a machine where nvidia-smi lists one"; exit 77; }
command -v nvcc >/dev/null || { echo "there is a GPU ($gpu) but no nvcc: install the CUDA toolkit"; exit 1; }
scripts/setup.sh build
cmake --preset cuda
cmake --build build/cuda
rm -rf build/device
status=0
scripts/check-cuda.sh build/device "$@" || status=$?
awk -v gpu="$gpu" '{ n[$1]++ } END { printf "%d checks ok, %d failed, %d skipped on %s\n", n["OK"], n["FAILED"], n["SKIPPED"], gpu }' \
    build/device/summary.txt
exit "$status"
