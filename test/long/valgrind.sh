#!/bin/bash
# A short training run, its resumption from the checkpoint before a damaged one, and an evaluation under valgrind: any invalid access, any
# use of undefined values and any memory definitely lost fails. No error is suppressed; none of the libraries needs it.
set -euo pipefail
# shellcheck source=test/long/common.sh
source "$(dirname "$0")/common.sh"
command -v valgrind >/dev/null || {
    echo "valgrind is not installed" >&2
    exit 77
}
# valgrind does not know AVX-512; it shows programs a processor without. oneDNN and OpenBLAS ask for themselves.
export ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=2

check() {
    local status=0
    timeout 1200 valgrind --quiet --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --track-fds=no --num-callers=25 --error-exitcode=99 --log-file="$work/valgrind.txt" \
        "$kith" "$@" >"$work/output.txt" 2>&1 || status=$?
    if [ "$status" != 0 ] || [ -s "$work/valgrind.txt" ]; then
        cat "$work/valgrind.txt" "$work/output.txt" >&2
        echo "valgrind: kith $1 failed with status $status"
        exit 1
    fi
}

make_data 8 3 3
sed -i 's/^threads: 1/threads: 2/; s/squash20, crop: 16/squash16, crop: 16/; s/width: 16/width: 8/' "$work/recipe.yaml"
more=(--no-report -q -s checkpoint.every=1 -s eval.every=2)
check train "$work/recipe.yaml" --out "$work/run" "${more[@]}"
# As if it had been killed at the end, with its last checkpoint damaged.
rm "$work/run/result.json"
truncate -s -1 "$work/run/checkpoints/step-00000003.safetensors"
check train "$work/run" --resume --no-report -q
grep -q "resumes from step 2" "$work/output.txt" || {
    cat "$work/output.txt" >&2
    exit 1
}
check eval "$work/run/model.safetensors" --data "$work/glyphs"
echo "valgrind: 3 commands, 0 errors"
