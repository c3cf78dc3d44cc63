#!/bin/bash
# Exported models through ONNX's own checker and ONNX Runtime: onnx.sh
#
# Installs npm's onnxruntime-node, which brings the library along, into build/onnxruntime, without running its scripts, and
# runs test_onnx with it; Debian's python3-onnx is used where it is installed. A finding is a difference above 1e-5 of the
# largest value, or a file that the checker refuses. Where the package cannot be had it says so and exits with 77.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=$PWD/build/onnxruntime
mkdir -p "$folder"
if ! [ -d "$folder/node_modules/onnxruntime-node" ]; then
    command -v npm >/dev/null || { echo "no npm here"; exit 77; }
    (cd "$folder" && npm install --ignore-scripts --no-audit --no-fund onnxruntime-node >npm.log 2>&1) ||
        { echo "npm cannot install onnxruntime-node: $(tail -1 "$folder/npm.log")"; exit 77; }
fi
KITH_PROGRAM=${KITH_PROGRAM:-$PWD/build/kith} KITH_ONNXRUNTIME=$folder build/test/test_onnx >"$folder/test.log" 2>&1
status=$?
grep -E 'off by|ERROR|SKIPPED' "$folder/test.log"
echo "onnx: $(grep -c 'of the largest value' "$folder/test.log") models run by ONNX Runtime, status $status"
exit $status
