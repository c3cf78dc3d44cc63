#!/bin/bash
# Every allocation of every command fails once: torture_alloc.sh [BUILD [MOST [COMMAND…]]]
#
# As torture_io.sh, with test/support/fault_alloc.c: the n-th allocation of core/alloc.h fails, or all from the n-th on,
# or the n-th of a parser's or decoder's library; MOST > 0 takes that many n, evenly spread. A run must end by itself
# with exit status 0, 1 or 2. When it fails, the last line on stderr is "kith: …" and nothing half written is left;
# when it succeeds, its files are those of a run without faults, or a line says what was left out.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
most=${2:-0}
only=" ${*:3} "
# shellcheck source=test/long/tiny.sh
. "$here/tiny.sh"
if grep -qE '__(asan|tsan)_init' "$build/kith"; then
    echo "$(basename "$0"): a sanitizer's library must be loaded before all others; use a build without" >&2
    exit 77
fi
work=$(tiny_work_folder)
trap 'rm -rf "$work"' EXIT
cp "$build/kith" "$work/kith" || exit 1 # a build meanwhile changes nothing
cp "$build/test/libfault_alloc.so" "$work/fault.so" || exit 1
kith=$work/kith shim=$work/fault.so # the path of a preloaded library may have no blank in it
n_runs=0 n_failed=0 n_findings=0

finding() {
    n_findings=$((n_findings + 1))
    printf 'FINDING %s, %s, allocation %s: %s\n' "$name" "$kind" "$n" "$1"
    sed 's/^/    /' "$work/err" | tail -5
}

# go KIND AT: the command, in a fresh folder, with that fault.
go() {
    rm -rf "$work/run" "$work/log"
    cp -r "$work/tiny" "$work/run"
    (
        cd "$work/run" || exit 99
        tiny_limits
        # shellcheck disable=SC2086
        exec timeout -s KILL "$TINY_SECONDS" env LD_PRELOAD="$shim" FAULT_KIND="$1" FAULT_AT="$2" FAULT_LOG="$work/log" \
            "$kith" $arguments
    ) >"$work/out" 2>"$work/err" </dev/null
}

same_as_reference() {
    for file in $files; do
        case $file in *.md) continue ;; esac # dated
        cmp -s "$work/reference/$file" "$work/run/$file" || return 1
    done
}

# A page says itself which lines of a log it could not read.
page_says_so() {
    case $files in *.html) grep -q 'are left out' "$work/run/$files" ;; *) return 1 ;; esac
}

check() {
    [ "$1" -le 2 ] || { finding "exit status $1" && return; }
    grep -vE '^kith: |[0-9]+/[0-9]+' "$work/err" >"$work/odd" && finding "stderr holds '$(head -1 "$work/odd")'"
    if [ "$1" -eq 0 ]; then
        same_as_reference || [ -s "$work/err" ] || page_says_so || finding "another result without a line"
    else
        n_failed=$((n_failed + 1))
        tail -1 "$work/err" | grep -qE '^kith: |^[0-9]+/[0-9]+ .*: failed: ' || case $name in data) ;; *) finding "no line that says why" ;; esac
    fi
    left=$(cd "$work/run" && find . -name '*.tmp-*' -o -name '*.partial' | head -1)
    [ -z "$left" ] || finding "$left is left"
}

tiny_make "$kith" "$work/tiny" || exit 1
while IFS='|' read -r name files arguments; do
    case $only in "  " | *" $name "*) ;; *) continue ;; esac
    for kind in own all others; do
        n=0
        if ! go "$kind" 0; then
            finding "it fails without a fault"
            continue 2
        fi
        calls=$(sed -n 's/^calls //p' "$work/log" | tail -1)
        rm -rf "$work/reference"
        mv "$work/run" "$work/reference"
        step=1
        [ "$most" -gt 0 ] && [ "$calls" -gt "$most" ] && step=$(((calls + most - 1) / most))
        for ((n = 1 + step / 2; n <= calls; n += step)); do
            go "$kind" "$n"
            check $?
            n_runs=$((n_runs + 1))
        done
    done
done < <(tiny_commands)
echo "torture_alloc: $n_runs runs with a failed allocation, $n_failed failed as they should, $n_findings findings"
[ "$n_findings" -eq 0 ]
