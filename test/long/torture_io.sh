#!/bin/bash
# Every file call of every command fails once, or is short: torture_io.sh [BUILD [MOST [COMMAND…]]]
#
# For each command and each kind of fault (test/support/fault_io.c) the calls are counted, then one run per call is
# made in which that call fails; MOST > 0 takes that many of them, evenly spread. A run must end by itself, with exit
# status 0, 1 or 2. When it fails: one line "kith: …" last on stderr, files it would have written
# as they were or complete, nothing half written left. When it succeeds: the files and stdout of the run without
# faults, or a line that says what was left out; after a short or interrupted call the former only. A training run
# that failed must go on to the same bits. Prints the counts and exits 1 when there was a finding.
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
cp "$build/test/libfault_io.so" "$work/fault.so" || exit 1
kith=$work/kith shim=$work/fault.so # the path of a preloaded library may have no blank in it
n_runs=0 n_failed=0 n_findings=0

finding() {
    n_findings=$((n_findings + 1))
    printf 'FINDING %s, %s, call %s (%s): %s\n' "$name" "$kind" "$n" "$(grep -m1 '^failed' "$work/log" 2>/dev/null)" "$1"
    sed 's/^/    /' "$work/err" | tail -5
}

# A fresh copy of the folder, with an old file wherever one will be written.
prepare() {
    rm -rf "$work/run"
    cp -r "$work/tiny" "$work/run"
    for file in $files; do
        case $file in
        */*) ;;
        *) echo old >"$work/run/$file" ;;
        esac
    done
}

# go KIND AT: the command with that fault; its exit status.
go() {
    rm -f "$work/log"
    (
        cd "$work/run" || exit 99
        tiny_limits
        # shellcheck disable=SC2086
        exec timeout -s KILL "$TINY_SECONDS" env LD_PRELOAD="$shim" FAULT_ROOT="$work/run" FAULT_KIND="$1" FAULT_AT="$2" \
            FAULT_LOG="$work/log" "$kith" $arguments
    ) >"$work/out" 2>"$work/err" </dev/null
}

# Times and speeds differ from run to run.
steady() { sed -E 's/[0-9:.,]+ (s|min|img\/s|of training)//g; s/[0-9.]+ images\/s//g' "$1"; }

same_as_reference() {
    for file in $files; do
        case $file in *.md) continue ;; esac # dated
        cmp -s "$work/reference/$file" "$work/run/$file" || return 1
    done
    case $name in train | resume | reproduce | synth) return 0 ;; esac
    [ "$(steady "$work/out")" = "$(steady "$work/reference.out")" ]
}

old_or_complete() {
    for file in $files; do
        case $file in *.md) continue ;; esac
        [ -e "$work/run/$file" ] || { case $file in */*) continue ;; *) finding "$file is gone" && return ;; esac; }
        [ "$(head -c 4 "$work/run/$file" | tr -d '\0')" = old ] && continue
        cmp -s "$work/reference/$file" "$work/run/$file" || finding "$file is neither the old one nor complete"
    done
}

# What a failed training run left must lead to the same model; a run that had not begun begins.
goes_on() {
    local folder=${files%%/*}
    (
        cd "$work/run" || exit 99
        if [ -e "$folder/recipe.yaml" ]; then "$kith" train "$folder" --resume -q; else "$kith" train tiny.yaml --out "$folder" -q; fi
    ) >"$work/out" 2>"$work/err" </dev/null || { finding "it does not go on" && return; }
    cmp -s "$work/reference/$files" "$work/run/$files" || finding "it goes on to another model"
}

check() {
    local status=$1
    if [ "$status" -gt 2 ]; then
        finding "exit status $status"
        return
    fi
    # "embedding 15/15", "1/3 NAME seed 0: …": progress
    grep -vE '^kith: |[0-9]+/[0-9]+' "$work/err" >"$work/odd" && finding "stderr holds '$(head -1 "$work/odd")'"
    if [ "$status" -eq 0 ]; then
        if ! same_as_reference; then
            case $kind in
            eintr | short) finding "the result is another one" ;;
            *) [ -s "$work/err" ] || case $name in data* | map_images | report) ;; *) finding "another result without a line" ;; esac ;; # on stdout or in the page
            esac
        fi
    else
        n_failed=$((n_failed + 1))
        case $kind in eintr | short) finding "it failed" ;; esac
        tail -1 "$work/err" | grep -qE '^kith: |^[0-9]+/[0-9]+ .*: failed: ' || case $name in data) ;; *) finding "no line that says why" ;; esac
        old_or_complete
    fi
    if ! grep -q '^failed unlink' "$work/log"; then
        left=$(cd "$work/run" && find . -name '*.tmp-*' -o -name '*.partial' | head -1)
        [ -z "$left" ] || finding "$left is left"
    fi
    case $name in train | resume) [ "$status" -eq 0 ] || goes_on ;; esac
}

tiny_make "$kith" "$work/tiny" || exit 1
while IFS='|' read -r name files arguments; do
    case $only in "  " | *" $name "*) ;; *) continue ;; esac
    kind=none n=0
    prepare
    if ! go none 0; then
        finding "it fails without a fault"
        continue
    fi
    cp "$work/log" "$work/counts"
    cp "$work/out" "$work/reference.out"
    rm -rf "$work/reference"
    mv "$work/run" "$work/reference"
    for kind in eio emfile enospc eintr short; do
        calls=$(sed -n "s/^calls $kind //p" "$work/counts" | tail -1)
        step=1
        [ "$most" -gt 0 ] && [ "$calls" -gt "$most" ] && step=$(((calls + most - 1) / most))
        for ((n = 1 + step / 2; n <= calls; n += step)); do
            prepare
            go "$kind" "$n"
            check $?
            n_runs=$((n_runs + 1))
        done
    done
done < <(tiny_commands)
echo "torture_io: $n_runs runs with a fault, $n_failed failed as they should, $n_findings findings"
[ "$n_findings" -eq 0 ]
