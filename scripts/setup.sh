#!/bin/sh
# Install the Debian packages that are missing: setup.sh [GROUP…], groups as in cmake/packages.txt
# (default: build). Quick when nothing is missing; needs root or a sudo that asks no password.
set -eu
cd "$(dirname "$0")/.."

command -v dpkg-query >/dev/null 2>&1 || exit 0 # no Debian: CMake says what it does not find

wanted=$(for group in "${@:-build}"; do awk -v g="$group" '$1 == g { print $2 }' cmake/packages.txt; done)
# shellcheck disable=SC2086
present=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    awk '$1 == "installed" { print $2 }' || true)
missing=
for package in $wanted; do
    printf '%s\n' "$present" | grep -qx "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
else
    echo "kith needs packages: run  apt-get install --no-install-recommends$missing  as root" >&2
    exit 1
fi
echo "kith needs packages, installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive sh -c '
    apt-get -qq update && apt-get -qq -y --no-install-recommends install "$@"' sh $missing >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    echo "the packages could not be installed: run  apt-get install --no-install-recommends$missing  as root" >&2
    exit 1
}
