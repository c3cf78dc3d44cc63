#!/usr/bin/env bash
# make release: everything that is published, for the commit of a tag: release.sh [--check]
# Refuses while a place that only the publisher can fill in is empty, or the tree is not the commit of its tag; with --check
# that is all it does. It makes the files (build/dist, build/wheel, build/deb) and publishes nothing itself.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. contrib/release.conf

wrong=0
miss() {
    echo "release.sh: $1" >&2
    wrong=1
}

for name in MAINTAINER HOMEPAGE COPYRIGHT SECURITY; do
    [ -n "${!name}" ] || miss "$name is empty: fill in contrib/release.conf"
done
! grep -q "^url=''" contrib/install.sh || miss "url is empty: fill in contrib/install.sh (where the tar lies)"
awk '/^\[/ { is_urls = /^\[project\.urls\]/ } is_urls && /^[A-Za-z"].*=/ { found = 1 } END { exit !found }' python/pyproject.toml ||
    miss "[project.urls] is empty: fill in python/pyproject.toml"
[ "$wrong" = 0 ] || exit 1

version=$(sed -n 's/^#define KITH_VERSION "\(.*\)"/\1/p' include/kith/version.h)
if [ -n "$(git status --porcelain)" ] || [ "$(git describe --exact-match --tags HEAD 2>/dev/null)" != "v$version" ]; then
    miss "the tree is not the commit of the tag v$version without changes"
    exit 1
fi
[ "${1:-}" != --check ] || exit 0
make dist wheel
make deb DEB_FLAGS=--release
