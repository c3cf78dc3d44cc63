#!/bin/bash
# The Debian packages as their users get them: built by `make deb` in a bare Debian, installed with apt in another one, tried
# (debian/tests), removed: deb.sh [SUITE]   SUITE: bookworm, trixie … (the one of this machine)
#
# What is built is the last commit; DEBS names a folder with packages that were built before. KITH_DEBIAN_MIRROR names a mirror.
# A finding is a build that fails, an error or a warning of lintian, a test of debian/tests that fails, or a file that is
# there after the packages were purged and was not before. The last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
# shellcheck source=test/long/chroot.sh
. test/long/chroot.sh
can_chroot || exit 77
# shellcheck source=/dev/null
suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")}
began=$SECONDS

# The packages, in $work/debs, and the tests, in $work/tests.
mkdir "$work/debs"
lint="lintian was not run"
if [ -n "${DEBS:-}" ]; then
    cp "$DEBS"/*.deb "$work/debs" || exit 1
else
    make_root build "$suite" --include=make,git || exit 77
    git diff --quiet HEAD 2>/dev/null || echo "there are changes that are not committed: they are left out"
    git clone -q "$here" "$work/build/srv/kith ü deb" || exit 1
    in_root build 'cd "/srv/kith ü deb" && make deb' || { echo "make deb failed in a bare Debian ($suite)"; exit 1; }
    in_root build 'apt-get -qq -y --no-install-recommends install lintian >/srv/log 2>&1 || { cat /srv/log; exit 1; }
        cd "/srv/kith ü deb/build/deb" && lintian --allow-root --fail-on error,warning *.changes' || { echo "lintian has findings"; exit 1; }
    lint="lintian clean"
    cp "$work/build/srv/kith ü deb/build/deb"/*.deb "$work/debs"
fi
rm -f "$work"/debs/*-dbgsym_*.deb "$work"/debs/kith-cuda_*.deb
built=$((SECONDS - began))
n_debs=$(find "$work/debs" -name '*.deb' | wc -l)

make_root bare "$suite" || exit 77
cp -r "$work/debs" contrib/debian/tests "$work/bare/srv/"
# Files that apt and dpkg themselves write while they install and remove, and the memory of ldconfig.
list() {
    (cd "$work/bare" && find . -xdev '(' -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./srv -o -path ./var/cache -o \
        -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg ')' -prune -o -print | LC_ALL=C sort) >"$work/$1"
}
packages=$(cd "$work/debs" && for file in *.deb; do echo "${file%%_*}"; done | tr '\n' ' ')
install="apt-get -qq -y install /srv/debs/*.deb >/srv/log 2>&1 || { cat /srv/log; exit 1; }"

in_root bare "apt-get -qq update; $install
    apt-get -qq -y --no-install-recommends install gcc libc6-dev pkg-config >/srv/log 2>&1 || { cat /srv/log; exit 1; }" || { echo "apt-get install ./*.deb failed"; exit 1; }
# What they depend on stays, so that the comparison sees these packages alone.
in_root bare "apt-mark manual \$(dpkg-query -W -f '\${Package} ') >/dev/null; dpkg --purge $packages >/dev/null" || exit 1
list before
in_root bare "$install" || exit 1
n_tests=0
for name in library program python; do
    # As a user who is not root.
    in_root bare "mkdir -m 777 /srv/try; cd /srv/try && setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/srv/try \
        AUTOPKGTEST_TMP=/srv/try /srv/tests/$name" || { echo "the test $name failed"; exit 1; }
    rm -rf "$work/bare/srv/try"
    n_tests=$((n_tests + 1))
done
# The plugin is found and loaded: nobody answers at that port, and the line is libpq's.
in_root bare "test -e /lib/systemd/system/kith-serve@.service; kith search postgresql://127.0.0.1:1/none --id 0 2>&1 || true" |
    tee "$work/postgres"
grep -qi 'refused' "$work/postgres" || { echo "the plugin for PostgreSQL does not work"; exit 1; }
in_root bare "dpkg --purge $packages >/srv/log 2>&1 || { cat /srv/log; exit 1; }" || exit 1
list after
left=$(comm -13 "$work/before" "$work/after"
    grep -i kith "$work/after"
    in_root bare "dpkg-query -W -f '\${Package} \${db:Status-Status}\n' $packages 2>/dev/null" | grep -v not-installed)
lost=$(comm -23 "$work/before" "$work/after")
if [ -n "$left$lost" ]; then
    printf 'left behind:\n%s\nlost:\n%s\n' "$left" "$lost"
    echo "the packages leave files behind, or take files away"
    exit 1
fi
echo "Debian ($suite): $n_debs packages built ($built s), $lint, installed, $n_tests tests passed as a user, purged: nothing left ($((SECONDS - began)) s)"
