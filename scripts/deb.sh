#!/bin/bash
# make deb: Debian packages of the working tree, in build/deb: deb.sh [--release] [--cuda] [--source] [--check]
#
#   --release  refuse while contrib/release.conf is not filled in, or the tree differs from the tag of its version
#   --cuda     also kith-cuda (needs nvcc and cuDNN)
#   --source   only the source package: build/deb/*.dsc, for another machine, chroot or architecture
#   --check    run tests while building; without it `make test` is trusted to have done it
#
# contrib/debian becomes debian/ of a copy of the sources, with the version of include/kith/version.h. A tree that is not the
# tag of its version gives a version that sorts before it: 0.2.0~git20261118.1a2b3c4d. Packages built for Debian 12 end in ~deb12.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# shellcheck source=/dev/null
. contrib/release.conf

release='' cuda='' only_source='' check=''
for option in "$@"; do
    case $option in
    --release) release=1 ;;
    --cuda) cuda=1 ;;
    --source) only_source=1 ;;
    --check) check=1 ;;
    *)
        echo "deb.sh: unknown option '$option'; there are --release, --cuda, --source and --check" >&2
        exit 2
        ;;
    esac
done
fail() { echo "deb.sh: $*" >&2 && exit 1; }
command -v dpkg-buildpackage >/dev/null || fail "dpkg-buildpackage was not found: make deb works on Debian and what is derived from it"

version=$(sed -n 's/^#define KITH_VERSION "\(.*\)"$/\1/p' include/kith/version.h)
soversion=${version%.*}
in_git() { [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; }
upstream=$version
if in_git; then
    seconds=$(git log -1 --format=%ct)
    dirty=
    [ -z "$(git status --porcelain)" ] || dirty=.changed
    if [ -n "$dirty" ] || [ "$(git describe --exact-match --tags HEAD 2>/dev/null)" != "v$version" ]; then
        [ -z "$release" ] || fail "the tree is not the commit of the tag v$version without changes"
        upstream=$version~git$(date -u -d "@$seconds" +%Y%m%d).$(git rev-parse --short=8 HEAD)$dirty
    fi
else
    seconds=$(stat -c %Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$seconds}"

for name in MAINTAINER HOMEPAGE COPYRIGHT; do
    [ -z "$release" ] || [ -n "${!name}" ] || fail "$name is empty: fill in contrib/release.conf before a release"
done
maintainer=${MAINTAINER:-"kith packager (not filled in) <packager@example.invalid>"}
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-unstable}")
# shellcheck source=/dev/null
debian=$(. /etc/os-release && echo "${ID}${VERSION_ID:-}" | sed 's/^debian/deb/')
revision=0kith1~$debian

out=$root/build/deb
source=$out/kith-$upstream
rm -rf "$out"
mkdir -p "$source"
if in_git; then
    git ls-files -z --cached --others --exclude-standard
else
    find . -path ./build -prune -o '(' -type f -o -type l ')' -printf '%P\0'
fi | while IFS= read -r -d '' file; do if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi; done |
    tar --null -T - -c | tar -x -C "$source"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$out" -cJf "$out/kith_$upstream.orig.tar.xz" \
    "kith-$upstream"

# Placeholders; a file whose name has the library in it gets the soversion.
cp -r contrib/debian "$source/debian"
cp 'contrib/kith-serve@.service' "$source/debian/kith.kith-serve@.service"
cd "$source/debian"
for file in libkith.*; do mv "$file" "libkith$soversion.${file#libkith.}"; done
filled() { printf '%s' "$1" | sed 's/[\\&|]/\\&/g'; }
grep -rlE '@(MAINTAINER|HOMEPAGE|COPYRIGHT|SOVERSION|UPSTREAM)@' . | while IFS= read -r file; do
    sed -i -e "s|@MAINTAINER@|$(filled "$maintainer")|" -e "s|@COPYRIGHT@|$(filled "${COPYRIGHT:-$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) the kith authors}")|" \
        -e "s|@SOVERSION@|$soversion|g" -e "s|@UPSTREAM@|$version|g" \
        -e "s|^@HOMEPAGE@\$|$(filled "${HOMEPAGE:+Homepage: $HOMEPAGE}")|" "$file"
done
cat >changelog <<END
kith ($upstream-$revision) $codename; urgency=medium

  * Version $version. What is new is in CHANGELOG.md.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END

cd "$source"
jobs=${KITH_JOBS:-$(nproc)}
options="parallel=$jobs"
[ -n "$check" ] || options="$options nocheck"
profiles=${cuda:+pkg.kith.cuda}
export DEB_BUILD_OPTIONS="$options${DEB_BUILD_OPTIONS:+ $DEB_BUILD_OPTIONS}"
export DEB_BUILD_PROFILES="${profiles}${DEB_BUILD_PROFILES:+ $DEB_BUILD_PROFILES}"
if [ -n "$only_source" ]; then
    dpkg-buildpackage -us -uc -S -d -nc >"$out/log" 2>&1 || { tail -n 40 "$out/log" >&2; fail "it failed; log: $out/log"; }
    ls "$out"/*.dsc
    exit 0
fi
missing=$(dpkg-checkbuilddeps 2>&1 | sed 's/^.*: //') || true
[ -z "$missing" ] || fail "packages are missing: run  scripts/setup.sh deb  or install: $missing"
dpkg-buildpackage -us -uc >"$out/log" 2>&1 || { tail -n 40 "$out/log" >&2; fail "it failed; log: $out/log"; }
cd "$out"
[ -n "$MAINTAINER" ] || echo "contrib/release.conf is not filled in: these packages are for trying only"
for file in *.deb; do
    case $file in *dbgsym*) ;; *) echo "build/deb/$file $(($(stat -c %s "$file") / 1024)) KiB" ;; esac
done
