# shellcheck shell=bash
# Bare Debians to try things in; sourced, not run. Sets: work (a folder of the test's own, removed at the end). Debian comes from
# the sources of this machine's apt, or from KITH_DEBIAN_MIRROR.
#
#     need_chroots                    ends the test with status 77 and a line where there can be none
#     make_root NAME SUITE [OPTION…]  $work/NAME, options for mmdebstrap; ends the test like that where Debian does not answer
#     in_root NAME COMMAND            runs a command of the shell there as root, in namespaces of its own: what it starts ends with
#                                     it, and nothing stays mounted
work=$(mktemp -d -p "${KITH_CHROOTS:-${TMPDIR:-/tmp}}") || exit 1
child=
finish() {
    [ -z "$child" ] || kill -KILL "$child" 2>/dev/null
    rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM

cannot() { echo "$*" && exit 77; }

need_chroots() {
    [ "$(id -u)" = 0 ] || cannot "it needs root"
    command -v mmdebstrap >/dev/null || cannot "mmdebstrap is not installed (scripts/setup.sh bare)"
    unshare --mount --pid --fork true 2>/dev/null || cannot "no namespaces here"
}

# sources SUITE: lines of sources.list, by the mirrors that this machine's apt has for its own Debian.
sources() {
    if [ -n "${KITH_DEBIAN_MIRROR:-}" ]; then
        echo "deb $KITH_DEBIAN_MIRROR $1 main"
        return
    fi
    # shellcheck disable=SC2016
    apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v own="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" -v release="$1" '
            $3 == "main" && (index($2, own "-") == 1 || $2 == own) { sub("^" own, release, $2); print "deb", $1, $2, $3 }' |
        sort -u | grep .
}

make_root() { # NAME SUITE [OPTION…]
    local name=$1 suite=$2
    shift 2
    apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until)' >"$work/apt.conf" || true
    sources "$suite" >"$work/sources.list" || cannot "apt has no sources of Debian ($suite) here; KITH_DEBIAN_MIRROR names one"
    timeout 1500 mmdebstrap --variant=apt --dpkgopt=force-unsafe-io --aptopt="$work/apt.conf" --aptopt='Acquire::http::Timeout "20"' \
        --aptopt='Acquire::Retries "1"' "$@" "$suite" "$work/$name" "$work/sources.list" >"$work/made" 2>&1 ||
        cannot "mmdebstrap failed: $(grep -m 1 '^E:' "$work/made")"
}

in_root() { # NAME COMMAND
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc" && mkdir -p "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm" &&
        exec env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            chroot "$1" sh -ec "$2"' sh "$work/$1" "$2" </dev/null &
    child=$!
    local status=0
    wait "$child" || status=$?
    child=
    return "$status"
}
