#!/bin/bash
# A small job (train, embed, index, search) on older processors, played by qemu-user: cpu.sh [MODEL…]
#
# A finding is a command that ends with an error or an illegal instruction, or a search whose hits are others than on this machine
# (scores may differ by 1e-4). MODELs are qemu's: by default one with AVX2 and no AVX-512, one with SSE4.2, and two with SSE3. It
# needs qemu-x86_64 (group cpu of cmake/packages.txt), and is skipped elsewhere. The last line counts.
set -u
[ "$(uname -m)" = x86_64 ] || { echo "this machine is not an x86-64"; exit 77; }
command -v qemu-x86_64 >/dev/null || { echo "qemu-x86_64 is not installed (scripts/setup.sh cpu)"; exit 77; }
# shellcheck source=test/long/common.sh
. "$(dirname "$0")/common.sh"
[ $# -gt 0 ] || set -- Haswell Westmere kvm64 qemu64
export OMP_NUM_THREADS=1
unset OPENBLAS_CORETYPE # kernels chosen for this machine would be an illegal instruction on another
cd "$work" || exit 1
make_data 8 4 4

# The program starts itself again to change its environment, and then is no longer under qemu: the variables are set here.
on() { # MODEL ARGUMENT…
    local model=$1 older=
    shift
    case $model in
    here)
        "$kith" "$@"
        return
        ;;
    kvm64 | qemu64) older=Prescott ;; # as src/cli/start.c does
    esac
    env ${older:+OPENBLAS_CORETYPE=$older} qemu-x86_64 -cpu "$model" "$kith" "$@"
}
query=$(find "$work/glyphs" -name 00002.png | LC_ALL=C sort | tail -n 1)
hits() { grep -o '"id": [0-9]*, "score": [0-9.e-]*' "$1" | tr -d ',' | awk '{ print $2, $4 }'; }
n_findings=0
finding() {
    echo "FINDING $1"
    [ ! -s "$work/log" ] || tail -n 5 "$work/log" | sed 's/^/    /'
    n_findings=$((n_findings + 1))
}
search() { # MODEL: an index of the photos with the first model, and what it finds
    on "$1" index "$work/glyphs" -o "$1.kith" --model run-here >log 2>&1 &&
        on "$1" search "$1.kith" "$query" -k 8 --json >"$1.json" 2>log
}

if ! { on here train "$work/recipe.yaml" --out run-here >log 2>&1 && search here; }; then
    finding "it fails on this machine"
    exit 1
fi
for model in "$@"; do
    rm -rf run "$model.kith"
    on "$model" train "$work/recipe.yaml" --out run >log 2>&1 || finding "$model, train: status $?"
    if ! search "$model"; then
        finding "$model, index and search"
    elif ! paste <(hits here.json) <(hits "$model.json") |
        awk '$1 != $3 || ($2 - $4) ^ 2 > 1e-8 { bad = 1; print "    " $0 } END { exit bad || NR != 8 }'; then
        finding "$model: other hits than here"
    fi
done
echo "cpu: $# processors ($*), $n_findings findings"
[ "$n_findings" -eq 0 ]
