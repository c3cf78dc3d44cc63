#!/bin/bash
# README's two commands as a newcomer types them: make test and make demo in a bare Debian 12 that has nothing but make and git,
# in a clone whose folder has a blank and a letter that is not ASCII in its name: bare.sh [COMMAND…]
#
# A machine on which things were installed by hand hides what is missing from cmake/packages.txt; this one cannot. Debian comes
# from the sources of this machine's apt, or from KITH_DEBIAN_MIRROR. It needs root and mmdebstrap: elsewhere the commands run
# on the machine itself, in a folder of that name. What is tested is the last commit. A finding is a command that fails; the last
# line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD name="kith ü test"
[ $# -gt 0 ] || set -- "make test" "make demo"
work=$(mktemp -d)
log=$work/log
trap 'rm -rf --one-file-system "$work"' EXIT
git diff --quiet HEAD 2>/dev/null || echo "there are changes that are not committed: they are left out"

# Sources and the settings that reaching them takes (proxies, checks of dates).
sources() {
    if [ -n "${KITH_DEBIAN_MIRROR:-}" ]; then
        echo "deb $KITH_DEBIAN_MIRROR bookworm main"
        return
    fi
    # shellcheck disable=SC2016
    apt-get indextargets --no-release-info --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sort -u | grep '^deb [^ ]* bookworm[a-z-]* main$'
}
settings() { apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until)' || true; }

# The root of a bare Debian 12 in $work/root, or a line that says why not.
make_root() {
    [ "$(id -u)" = 0 ] || { echo "it needs root" && return 1; }
    command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not installed" && return 1; }
    settings >"$work/apt.conf"
    sources >"$work/sources.list" || { echo "apt has no sources of Debian 12 here; KITH_DEBIAN_MIRROR names one" && return 1; }
    timeout 300 mmdebstrap --variant=apt --include=make,git --aptopt="$work/apt.conf" --aptopt='Acquire::http::Timeout "20"' \
        --aptopt='Acquire::Retries "0"' bookworm "$work/root" "$work/sources.list" >"$work/made" 2>&1 || {
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

if why=$(make_root); then
    place="a bare Debian 12"
    run=in_root
    git clone -q "$here" "$work/root/srv/$name" || exit 1
else
    place="this machine ($why)"
    run=on_machine
    git clone -q "$here" "$work/$name" || exit 1
fi
said=
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
done
echo "$place${said} in a folder named '$name'"
