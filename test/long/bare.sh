#!/bin/bash
# README's two commands as a newcomer types them, in a bare Debian that has nothing but make and git: bare.sh [RELEASE [COMMAND…]]
#
# RELEASE is bookworm (12) or trixie (13); without one, both in turn. COMMANDs are make test and make demo; in a slice (SLICE=1)
# bookworm gets only make test T=npy and make demo, which show that the packages are complete and that everything builds there.
#
# A machine on which things were installed by hand hides what is missing from cmake/packages.txt; this one cannot. The clone's folder
# has a blank and a letter that is not ASCII in its name. chroot.sh makes the Debian, which needs root and mmdebstrap: elsewhere the
# commands run on the machine itself if it has that release, and are skipped otherwise (status 77 if nothing was run). What is tested is
# the last commit. A finding is a command that fails; the last line counts, with the seconds of each command and those of the processors,
# which other work on the machine does not change.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD name="kith ü test"
# shellcheck source=test/long/chroot.sh
. test/long/chroot.sh
log=$work/log
git diff --quiet HEAD 2>/dev/null || echo "there are changes that are not committed: they are left out"

# As a newcomer: without the settings that other scripts' commands get.
on_bare() { in_root root "unset LC_ALL DEBIAN_FRONTEND; cd '/srv/$name' && $1"; }
on_machine() { (cd "$work/$name" && sh -c "$1"); }

said='' n_run=0
TIMEFORMAT='%U + %S s'
try() { # RELEASE COMMAND…
    local release=$1 why place run command began count
    shift
    rm -rf --one-file-system "${work:?}/root" "${work:?}/$name"
    if why=$(can_chroot && make_root root "$release" --include=make,git); then
        place="a bare $release"
        run=on_bare
        git clone -q "$here" "$work/root/srv/$name" || exit 1
    elif [ "$(machine_release)" = "$release" ]; then
        place="$release on this machine ($why)"
        run=on_machine
        git clone -q "$here" "$work/$name" || exit 1
    else
        echo "$release: skipped ($why)"
        said="$said; $release: skipped ($why)"
        return
    fi
    said="$said; $place"
    for command in "$@"; do
        doing "$place: $command"
        began=$SECONDS
        { time $run "$command" >"$log" 2>&1 </dev/null; } 2>"$work/time" || {
            cat "$log"
            echo "$place, $command: failed after $((SECONDS - began)) s"
            exit 1
        }
        cat "$log"
        count=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed') && count=": $count"
        said="$said, $command$count ($((SECONDS - began)) s, $(cat "$work/time") of processors)"
        n_run=$((n_run + 1))
    done
}

case ${1:-} in
'')
    if [ -n "${SLICE:-}" ]; then try bookworm "make test T=npy" "make demo"; else try bookworm "make test" "make demo"; fi
    try trixie "make test" "make demo"
    ;;
bookworm | trixie)
    release=$1
    shift
    [ $# -gt 0 ] || set -- "make test" "make demo"
    try "$release" "$@"
    ;;
*)
    echo "unknown release $1; there are bookworm and trixie" >&2
    exit 2
    ;;
esac
echo "${said#; }; in a folder named '$name'"
[ "$n_run" -gt 0 ] || exit 77
