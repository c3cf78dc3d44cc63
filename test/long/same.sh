#!/bin/bash
# Two builds of the last commit in two folders give the same bytes, of the program, the library, the tar and the wheel: same.sh
#
# One folder has a blank in its name and another depth than the other; compilers run without ccache, so that each really compiles.
# A finding is a file that differs; the last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
scripts/setup.sh dist python || { echo "the packages of make dist and make wheel are missing" && exit 77; }
work=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf "$work"' EXIT
git diff --quiet HEAD 2>/dev/null || echo "there are changes that are not committed: they are left out"
places=("$work/one" "$work/a second/place of it")
for place in "${places[@]}"; do
    git clone -q "$PWD" "$place" || exit 1
    # Other settings of whoever builds must not matter either.
    (cd "$place" && CCACHE_DISABLE=1 TZ=Asia/Tokyo LC_ALL=C.UTF-8 sh -c 'umask 027; scripts/wheel.sh && scripts/dist.sh') >"$work/log" 2>&1 || {
        tail -n 30 "$work/log"
        echo "the build in $place failed"
        exit 1
    }
done
n=0 differ=
while IFS= read -r file; do
    n=$((n + 1))
    cmp "${places[0]}/$file" "${places[1]}/$file" || differ="$differ $file"
done < <(cd "${places[0]}" && find build/dist build/wheel -maxdepth 1 -type f '(' -name '*.tar.xz' -o -name '*.whl' -o -name '*.spdx' ')' &&
    find build/dist/tar build/wheel/stage -type f)
[ "$n" -gt 100 ] || { echo "only $n files were compared" && exit 1; }
if grep -rlF "$work" "${places[0]}/build/dist/tar"; then
    echo "these hold the folder they were built in"
    exit 1
fi
[ -z "$differ" ] || { echo "$n files compared; different are:$differ" && exit 1; }
echo "$n files of two builds, the tar and the wheel among them: all the same"
