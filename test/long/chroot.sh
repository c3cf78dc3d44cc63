# shellcheck shell=bash
# Bare Debians and Ubuntus to try things in; sourced, not run. Sets: work (a folder of the test's own, removed at the end).
#
#     can_chroot                      prints why there can be no chroots here, and returns 1; says nothing otherwise
#     make_root NAME SUITE [OPTION…]  $work/NAME, a bare system with apt; OPTIONs are for mmdebstrap. Prints why not, and returns 1
#     in_root NAME COMMAND            runs a command of the shell there as root, in namespaces of its own: what it starts ends with
#                                     it, and nothing stays mounted
#     as_user NAME COMMAND            the same as an ordinary user, whose home is /srv/user
#     doing WORDS                     prints what is being done, and after how many seconds
#
# Debian comes from the mirrors of this machine's apt, or from KITH_DEBIAN_MIRROR; Ubuntu (jammy, noble) from KITH_UBUNTU_MIRROR or its
# own archive. Without OPTIONs but --include, a suite is made once and kept as SUITE.tar in KITH_ROOTS (build/roots) for a week: the
# scripts share it. KITH_CHROOTS names the folder that $work lies in.
work=$(mktemp -d -p "${KITH_CHROOTS:-${TMPDIR:-/tmp}}") || exit 1
roots=${KITH_ROOTS:-build/roots}
child=
finish() {
    [ -z "$child" ] || kill -KILL "$child" 2>/dev/null
    rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' INT TERM

doing() { echo "== $* (after $SECONDS s)"; }

can_chroot() {
    [ "$(id -u)" = 0 ] || { echo "it needs root" && return 1; }
    command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not installed (scripts/setup.sh bare)" && return 1; }
    unshare --mount --pid --fork true 2>/dev/null || { echo "no namespaces here" && return 1; }
}

# sources SUITE: lines of sources.list. Debian's are those of this machine's apt, with the suite's name in place of its own.
sources() {
    case $1 in
    jammy | noble)
        # Debian has no keys of Ubuntu.
        echo "deb [trusted=yes] ${KITH_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu} $1 main universe"
        return
        ;;
    esac
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

# debootstrap SUITE TARGET [OPTION…]: TARGET is a folder or a .tar.
debootstrap() {
    local suite=$1 target=$2
    shift 2
    # What reaching the mirrors takes (proxies, checks of dates).
    apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until)' >"$work/apt.conf" || true
    sources "$suite" >"$work/sources.list" || { echo "apt has no sources of $suite here; KITH_DEBIAN_MIRROR names one" && return 1; }
    timeout 1500 mmdebstrap --variant=apt --dpkgopt=force-unsafe-io --aptopt="$work/apt.conf" --aptopt='Acquire::http::Timeout "20"' \
        --aptopt='Acquire::Retries "1"' "$@" "$suite" "$target" "$work/sources.list" >"$work/made" 2>&1 ||
        { echo "mmdebstrap failed: $(grep -m 1 '^E:' "$work/made")" && return 1; }
}

make_root() { # NAME SUITE [OPTION…]
    local name=$1 suite=$2 packages='' option
    shift 2
    for option in "$@"; do
        case $option in
        --include=*) packages="$packages ${option#--include=}" ;;
        *)
            debootstrap "$suite" "$work/$name" "$@"
            return
            ;;
        esac
    done
    if [ -z "$(find "$roots/$suite.tar" -mtime -7 2>/dev/null)" ]; then
        debootstrap "$suite" "$work/$suite.tar" || return 1
        mkdir -p "$roots"
        # Whole or not at all: another script may read it.
        mv "$work/$suite.tar" "$roots/$suite.tar.$$"
        mv "$roots/$suite.tar.$$" "$roots/$suite.tar"
    fi
    mkdir "$work/$name" || return 1
    tar -xpf "$roots/$suite.tar" --numeric-owner --xattrs -C "$work/$name" || { echo "$roots/$suite.tar cannot be unpacked" && return 1; }
    [ -n "$packages" ] || return 0
    in_root "$name" "apt-get -qq update && apt-get -qq -y --no-install-recommends install ${packages//,/ }" >"$work/made" 2>&1 ||
        { echo "apt-get install failed in $suite: $(grep -m 1 '^E:' "$work/made")" && return 1; }
}

enter() { # NAME IDS HOME COMMAND
    local status=0
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc" && mkdir -p "$1/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm" &&
        exec env -i HOME="$3" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            chroot --userspec="$2" "$1" sh -ec "$4"' sh "$work/$1" "$2" "$3" "$4" </dev/null &
    child=$!
    # unshare passes no signals on, so a function that runs in the background ends it by itself.
    [ "$BASHPID" = $$ ] || trap 'kill -KILL "$child" 2>/dev/null; exit 143' TERM
    wait "$child" || status=$?
    child=
    return "$status"
}
in_root() { enter "$1" 0:0 /root "$2"; }
as_user() { enter "$1" 1000:1000 /srv/user "$2"; }
