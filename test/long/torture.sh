# shellcheck shell=bash disable=SC2034,SC2154
# What torture_io.sh and torture_alloc.sh share; sourced with their arguments (BUILD, MOST, COMMAND…) and `fault` (io, alloc)
# set. Sets: kith, work (common.sh), shim (the library to preload), and the counts below. A command that is run has its
# `name`, the `files` it writes and its `arguments` (tiny_commands), the `kind` of fault and its number `n`.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
most=${2:-0}
only=" ${*:3} "
shim=$build/test/libfault_$fault.so
if grep -qE '__(asan|tsan)_init' "$build/kith"; then
    echo "torture_$fault: a sanitizer's library must be loaded before all others; use a build without" >&2
    exit 77
fi
KITH_PROGRAM=$build/kith
# shellcheck source=test/long/common.sh
. "$here/common.sh"
# shellcheck source=test/long/tiny.sh
. "$here/tiny.sh"
cp "$shim" "$work/fault.so" || exit 1
shim=$work/fault.so # the path of a preloaded library may have no blank in it
n_runs=0 n_failed=0 n_findings=0

finding() {
    n_findings=$((n_findings + 1))
    printf 'FINDING %s, %s, call %s (%s): %s\n' "$name" "$kind" "$n" "$(grep -m1 '^failed' "$work/log" 2>/dev/null)" "$1"
    sed 's/^/    /' "$work/err" | tail -5
}

# go KIND AT: the command, in $work/run, with that fault; its exit status.
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

# A page of tables has a date, the seconds and images/s of every run before its hashes, and at the end of a table's rows their seconds.
undated() { case $1 in *.md) sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}//g; s/[|] [0-9.]+ [|] [0-9]+ [|] .([0-9a-f]{12})/\1/; s/[|] [0-9]+ [|]$/|/' "$1" ;; *) cat "$1" ;; esac; }

same_file() { cmp -s <(undated "$work/reference/$1") <(undated "$work/run/$1"); }

same_files() {
    local file
    for file in $files; do
        same_file "$file" || return 1
    done
}

# A report says itself what of a run it could not read: lines of a log, files, pictures that the reference has.
page_says_so() {
    case $files in *.html) grep -qE 'are left out|could not be read|cannot (open|read)' "$work/run/$files" ;; *) return 1 ;; esac
}

# What every run must hold to: it ended by itself, and stderr has kith's own lines and progress ("embedding 15/15",
# "1/3 NAME seed 0: …") only; when it failed, the last of them says why.
check_end() {
    if [ "$1" -gt 2 ]; then
        finding "exit status $1"
        return 1
    fi
    grep -vE '^kith: |[0-9]+/[0-9]+' "$work/err" >"$work/odd" && finding "stderr holds '$(head -1 "$work/odd")'"
    [ "$1" -eq 0 ] && return
    n_failed=$((n_failed + 1))
    tail -1 "$work/err" | grep -qE '^kith: |^[0-9]+/[0-9]+ .*: failed: ' || said_on_stdout || finding "no line that says why"
}

# `kith data --check` fails by what it found, and prints that.
said_on_stdout() { [ "$name" = data ] && grep -qE '^unreadable +[1-9]|^missing +[1-9]' "$work/out"; }

nothing_half_written() {
    local left
    left=$(cd "$work/run" && find . -name '*.tmp-*' -o -name '*.partial' | head -1)
    [ -z "$left" ] || finding "$left is left"
}

# each_n CALLS: the numbers of the calls that fail, all or MOST of them, evenly spread.
each_n() {
    local step=1
    [ "$most" -gt 0 ] && [ "$1" -gt "$most" ] && step=$((($1 + most - 1) / most))
    seq $((1 + step / 2)) "$step" "$1"
}

summary() { # WHAT
    echo "torture_$fault: $n_runs runs with a $1, $n_failed failed as they should, $n_findings findings"
    [ "$n_findings" -eq 0 ]
}
