#!/bin/sh
# Every benchmark, one after the other: the scripts in bench/ say what each measures.
set -eu
cd "$(dirname "$0")/.."
found=
for script in bench/*.sh; do
    [ -x "$script" ] || continue
    found=1
    echo "== $script"
    "$script"
done
[ -n "$found" ] || { echo "no benchmark in bench/ yet" >&2; exit 1; }
