#!/bin/bash
# README's two commands as a newcomer types them, in a bare Debian that has nothing but make and git: bare.sh [RELEASE [COMMAND…]]
#
# RELEASE is bookworm (12) or trixie (13); without one, both in turn. COMMANDs are make test and make demo; in a slice (SLICE=1)
# bookworm gets only make test T=npy and make demo, which show that the packages are complete and that everything builds there.
#
# A machine on which things were installed by hand hides what is missing from cmake/packages.txt; this one cannot. The clone's folder
# has a blank and a letter that is not ASCII in its name. Debian comes from the mirror of this machine's apt, or from
# KITH_DEBIAN_MIRROR. That needs root and mmdebstrap: elsewhere the commands run on the machine itself if it has that release, and are
# skipped otherwise (status 77 if nothing was run). What is tested is the last commit. A finding is a command that fails; the last line
# counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD name="kith ü test"
work=$(mktemp -d)
log=$work/log
trap 'rm -rf --one-file-system "$work"' EXIT
git diff --quiet HEAD 2>/dev/null || echo "there are changes that are not committed: they are left out"

# Sources of a release, by the mirrors that this machine's apt has for its own Debian, and the settings that reaching them
# takes (proxies, checks of dates).
sources() { # RELEASE
    if [ -n "${KITH_DEBIAN_MIRROR:-}" ]; then
        echo "deb $KITH_DEBIAN_MIRROR $1 main"
        return
    fi
    # shellcheck disable=SC2016
    apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v own="$(machine_release)" -v release="$1" '
            $3 == "main" && (index($2, own "-") == 1 || $2 == own) { sub("^" own, release, $2); print "deb", $1, $2, $3 }' |
        sort -u | grep .
}
machine_release() { sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null; }
settings() { apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until)' || true; }

# The root of a bare Debian in $work/root, or a line that says why not.
make_root() { # RELEASE
    [ "$(id -u)" = 0 ] || { echo "it needs root" && return 1; }
    command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not installed" && return 1; }
    settings >"$work/apt.conf"
    sources "$1" >"$work/sources.list" || { echo "apt has no sources of Debian here; KITH_DEBIAN_MIRROR names one" && return 1; }
    timeout 300 mmdebstrap --variant=apt --include=make,git --aptopt="$work/apt.conf" --aptopt='Acquire::http::Timeout "20"' \
        --aptopt='Acquire::Retries "0"' "$1" "$work/root" "$work/sources.list" >"$work/made" 2>&1 || {
        echo "mmdebstrap failed: $(grep -m 1 '^E:' "$work/made")"
        return 1
    }
    unshare --mount --pid --fork true 2>/dev/null || { echo "no namespaces here" && return 1; }
}

# In namespaces of its own: what the commands start ends with them, and nothing stays mounted. unshare passes no signals on.
child=
trap '[ -z "$child" ] || kill -KILL "$child"; exit 143' INT TERM
in_root() {
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc" && exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$1" sh -c "$2"' \
        sh "$work/root" "cd '/srv/$name' && $1" &
    child=$!
    wait "$child"
}
on_machine() { (cd "$work/$name" && sh -c "$1"); }

said='' n_run=0
try() { # RELEASE COMMAND…
    local release=$1 why place run command began count
    shift
    rm -rf --one-file-system "${work:?}/root" "${work:?}/$name"
    if why=$(make_root "$release"); then
        place="a bare $release"
        run=in_root
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
        began=$SECONDS
        if ! $run "$command" >"$log" 2>&1 </dev/null; then
            cat "$log"
            echo "$place, $command: failed after $((SECONDS - began)) s"
            exit 1
        fi
        cat "$log"
        count=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed') && count=": $count"
        said="$said, $command$count ($((SECONDS - began)) s)"
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
