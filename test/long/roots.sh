# shellcheck shell=bash
# shellcheck disable=SC2154
# Bare systems for the tests of what is passed on; sourced by dist.sh and wheel.sh, not run. Wants $work, a folder that is removed.

# root_of SUITE: a bare system in $work/SUITE, or a line that says why not. It comes from the sources of this machine's apt, or from
# KITH_DEBIAN_MIRROR and KITH_UBUNTU_MIRROR; KITH_ROOTS names a folder of ready ones.
root_of() {
    local mirror=${KITH_DEBIAN_MIRROR:-} parts=main
    case $1 in jammy | noble) mirror=${KITH_UBUNTU_MIRROR:-} parts="main universe" ;; esac
    if [ -n "${KITH_ROOTS:-}" ] && [ -d "$KITH_ROOTS/$1" ]; then
        cp -a --reflink=auto "$KITH_ROOTS/$1" "$work/$1"
        return
    fi
    command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not installed" && return 1; }
    # shellcheck disable=SC2016
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
        awk -v suite="$1" '$2 == "bookworm" && (suite == "bookworm" || suite == "trixie") { print $1; exit }')
    [ -n "$mirror" ] || { echo "no archive has it here; KITH_DEBIAN_MIRROR and KITH_UBUNTU_MIRROR name one" && return 1; }
    apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until)' >"$work/apt.conf"
    timeout 400 mmdebstrap --variant=apt --include=xz-utils --aptopt="$work/apt.conf" --aptopt='Acquire::http::Timeout "20"' "$1" \
        "$work/$1" "deb [trusted=yes] $mirror $1 $parts" >"$work/made" 2>&1 || {
        echo "mmdebstrap failed: $(grep -m 1 '^E:' "$work/made")"
        return 1
    }
}

# in_root ROOT WHO COMMAND: in namespaces of its own, as an ordinary user or as root.
in_root() {
    local ids=1000:1000 home=/srv/user
    [ "$2" = user ] || ids=0:0 home=/root
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc" && mount -t tmpfs -o mode=1777 shm "$1/dev/shm" && exec env -i HOME="$3" PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
            chroot --userspec="$2" "$1" sh -c "$4"' sh "$1" "$ids" "$home" "$3"
}
