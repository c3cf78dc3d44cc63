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
fault=io
# shellcheck source=test/long/torture.sh
. "$(dirname "$0")/torture.sh"

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

# Times and speeds differ from run to run.
steady() { sed -E 's/[0-9:.,]+ (s|min|img\/s|of training)//g; s/[0-9.]+ images\/s//g' "$1"; }

same_as_reference() { same_files && [ "$(steady "$work/out")" = "$(steady "$work/reference.out")" ]; }

# What was left out stands on stderr, in the page or, as a number, on stdout. (Which kind of data set a folder is, is asked
# by looking for its files: one that cannot be looked at is not there, and the first line on stdout names the kind.)
says_so() {
    case $name in data*) [ "$(head -1 "$work/out")" = "$(head -1 "$work/reference.out")" ] || return 0 ;; esac
    [ -s "$work/err" ] || page_says_so || grep -qE '(unreadable|missing) +[1-9]|[1-9][0-9]* could not be read' "$work/out"
}

old_or_complete() {
    for file in $files; do
        [ -e "$work/run/$file" ] || { case $file in */*) continue ;; *) finding "$file is gone" && return ;; esac; }
        [ "$(head -c 4 "$work/run/$file" | tr -d '\0')" = old ] && continue
        # A page of tables is about the runs that are there.
        case $file in *.md) [ "$(head -1 "$work/run/$file")" = "$(head -1 "$work/reference/$file")" ] && continue ;; esac
        same_file "$file" || finding "$file is neither the old one nor complete"
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
    check_end "$status" || return
    if [ "$status" -eq 0 ]; then
        if ! same_as_reference; then
            case $kind in
            eintr | short) finding "the result is another one" ;;
            *) says_so || finding "another result without a line" ;;
            esac
        fi
    else
        case $kind in eintr | short) finding "it failed" ;; esac
        old_or_complete
    fi
    grep -q '^failed unlink' "$work/log" || nothing_half_written
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
        for n in $(each_n "$(sed -n "s/^calls $kind //p" "$work/counts" | tail -1)"); do
            prepare
            go "$kind" "$n"
            check $?
            n_runs=$((n_runs + 1))
        done
    done
done < <(tiny_commands)
summary fault
