#!/bin/bash
# Exported models through ONNX's own checker and ONNX Runtime: onnx.sh
#
# Installs Debian's python3-onnx and npm's onnxruntime-node (scripts/setup.sh onnx), which brings the library along, and runs
# test_onnx with them. A finding is a difference above 1e-5 of the largest value, or a file that the checker refuses. Where the
# packages cannot be had it says so and exits with 77.
set -u
cd "$(dirname "$0")/../.." || exit 1
scripts/setup.sh onnx || exit 77
log=build/test/test_onnx.log
KITH_PROGRAM=${KITH_PROGRAM:-$PWD/build/kith} build/test/test_onnx >"$log" 2>&1
status=$?
grep -E 'off by|ERROR|SKIPPED' "$log"
echo "onnx: $(grep -c 'of the largest value' "$log") models run by ONNX Runtime, status $status"
exit $status
