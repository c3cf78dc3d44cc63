#!/bin/bash
# Every allocation of every command fails once: torture_alloc.sh [BUILD [MOST [COMMAND…]]]
#
# As torture_io.sh, with test/support/fault_alloc.c: the n-th allocation of base/alloc.h fails, or all from the n-th on,
# or the n-th of a parser's or decoder's library; MOST > 0 takes that many n, evenly spread. A run must end by itself
# with exit status 0, 1 or 2. When it fails, the last line on stderr is "kith: …" and nothing half written is left;
# when it succeeds, its files are those of a run without faults, or a line says what was left out.
set -u
fault=alloc
# shellcheck source=test/long/torture.sh
. "$(dirname "$0")/torture.sh"

prepare() {
    rm -rf "$work/run"
    cp -r "$work/tiny" "$work/run"
}

check() {
    check_end "$1" || return
    [ "$1" -ne 0 ] || same_files || [ -s "$work/err" ] || page_says_so || finding "another result without a line"
    nothing_half_written
}

tiny_make "$kith" "$work/tiny" || exit 1
while IFS='|' read -r name files arguments; do
    case $only in "  " | *" $name "*) ;; *) continue ;; esac
    for kind in own all others; do
        n=0
        prepare
        if ! go "$kind" 0; then
            finding "it fails without a fault"
            continue 2
        fi
        calls=$(sed -n 's/^calls //p' "$work/log" | tail -1)
        rm -rf "$work/reference"
        mv "$work/run" "$work/reference"
        for n in $(each_n "$calls"); do
            prepare
            go "$kind" "$n"
            check $?
            n_runs=$((n_runs + 1))
        done
    done
done < <(tiny_commands)
summary "failed allocation"
