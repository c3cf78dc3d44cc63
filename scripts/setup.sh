#!/bin/sh
# Install the Debian packages that are missing: setup.sh [--check] [GROUP…], groups as in cmake/packages.txt
# (default: build). Quick when nothing is missing; needs root or a sudo that asks no password. With --check nothing is
# installed: if packages are missing, it prints the line to run and exits with status 1. The groups browser and
# onnx also fetch the npm packages of test/browser and test/onnx, at the versions of their lock files.
set -eu
cd "$(dirname "$0")/.."
only_check=
if [ "${1:-}" = --check ]; then
    only_check=1
    shift
fi
# shellcheck source=scripts/network.sh
. scripts/network.sh

# npm writes its own copy of the lock file last: if ours is newer, the packages belong to another one.
fetch_npm_packages() {
    lock=test/$1/package-lock.json
    [ -z "$(find "test/$1/node_modules/.package-lock.json" -newer "$lock" 2>/dev/null)" ] || return 0
    echo "kith needs npm packages, fetching those of $lock"
    registry_answers || {
        echo "npm's registry does not answer within $KITH_PATIENCE s: run  npm ci --ignore-scripts  in test/$1 later" >&2
        exit 1
    }
    # shellcheck disable=SC2086
    (cd "test/$1" && npm ci $npm_options --loglevel=error >/dev/null) || {
        echo "the npm packages could not be fetched: run  npm ci --ignore-scripts  in test/$1" >&2
        exit 1
    }
}

finish() {
    for group in "$@"; do
        if [ -f "test/$group/package-lock.json" ]; then fetch_npm_packages "$group"; fi
    done
    exit 0
}

command -v dpkg-query >/dev/null 2>&1 || exit 0 # no Debian: CMake says what it does not find

wanted=$(for group in "${@:-build}"; do awk -v g="$group" '$1 == g { print $2 }' cmake/packages.txt; done)
# shellcheck disable=SC2086
present=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    awk '$1 == "installed" { print $2 }' || true)
missing=
for package in $wanted; do
    # Builds of nodejs that are not Debian's bring npm along, and do not go together with Debian's npm.
    if [ "$package" = npm ] && command -v npm >/dev/null 2>&1; then continue; fi
    # The headers of any libcurl will do, and Debian's packages of them exclude each other.
    if [ "$package" = libcurl4-gnutls-dev ] && pkg-config --exists libcurl 2>/dev/null; then continue; fi
    printf '%s\n' "$present" | grep -qx "$package" || missing="$missing $package"
done
[ -n "$missing" ] || finish "$@"
if [ -n "$only_check" ]; then
    echo "kith needs packages that are not installed. Run this line as root (about a minute), then make again (about two minutes):" >&2
    echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
else
    echo "kith needs packages: run  apt-get install --no-install-recommends$missing  as root" >&2
    exit 1
fi
echo "kith needs packages, installing:$missing"
# shellcheck disable=SC2016
first=$(apt-get indextargets --no-release-info --format '$(REPO_URI)dists/$(RELEASE)/InRelease' 'Created-By: Packages' \
    2>/dev/null | head -n 1)
if [ -n "$first" ] && ! mirror_answers "$first"; then
    echo "$first does not answer within $KITH_PATIENCE s: run  apt-get install --no-install-recommends$missing  as root later" >&2
    exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2016,SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt_options="$apt_options" sh -c '
    apt-get -qq $apt_options update && apt-get -qq $apt_options -y --no-install-recommends install "$@"' \
    sh $missing >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    echo "the packages could not be installed: run  apt-get install --no-install-recommends$missing  as root" >&2
    exit 1
}
finish "$@"
