#!/bin/sh
# Fail when a program compiled with the last release would not run with this library: check-abi.sh [OLD]
# OLD is a tree with the headers of another version; without it, those of the last release tag (v0.2.0 …) are compared,
# and if there is none, or its soname differs, nothing is promised and the script says so.
#
# The stable headers and cmake/kith.map are the whole interface (test/house/test_api.c holds the library to them), so two
# libraries of empty functions made from them are compared by abidiff: seconds instead of two builds. A field may be added
# at the end of a struct that begins with its size (KITH_OPTIONS), and functions may be added; nothing else may change.
set -eu
cd "$(dirname "$0")/.."
command -v abidiff >/dev/null 2>&1 || { echo "no abidiff here: scripts/setup.sh check" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

soversion() { sed -n 's/^#define KITH_VERSION "\([0-9]*\.[0-9]*\).*/\1/p' "$1/include/kith/version.h"; }

# stub TREE NAME: libNAME.so with every stable function of the tree's headers, doing nothing.
stub() {
    {
        for header in "$1"/include/kith/*.h; do echo "#include \"kith/${header##*/}\""; done
        scripts/list-api.sh "$1/include" | awk -F'\t' '$1 !~ /experimental/ {
            line = $2 " " $3 "("
            for (i = 4; i <= NF; i++) { sub(/\|/, " ", $i); line = line (i > 4 ? ", " : "") $i }
            print line ") { __builtin_trap(); }"
        }'
    } >"$work/$2.c"
    cc -g -O0 -w -fPIC -shared -I"$1/include" -Wl,-soname,libkith.so -Wl,--version-script="$1/cmake/kith.map" \
        "$work/$2.c" -o "$work/lib$2.so"
}

stub . new
tag=
if [ $# -gt 0 ]; then
    old=$1
else
    tag=$(git tag -l 'v[0-9]*' --merged HEAD --sort=-version:refname 2>/dev/null | head -n 1)
    [ -n "$tag" ] || { echo "no release tag yet: the interface compiles, and there is none to compare it with"; exit 0; }
    old=$work/old
    mkdir "$old"
    git archive "$tag" include cmake/kith.map | tar -x -C "$old"
fi
if [ "$(soversion "$old")" != "$(soversion .)" ]; then
    echo "${tag:-$old} has soname $(soversion "$old"), this is $(soversion .): nothing is promised between them"
    exit 0
fi
stub "$old" old
cat >"$work/growth" <<'END'
[suppress_type]
  type_kind = struct
  name_regexp = ^kith_(.*_options|transform|card_facts|map_drawing|device_batch)$
  has_data_member_inserted_at = end
END
abidiff --no-added-syms --suppressions "$work/growth" "$work/libold.so" "$work/libnew.so" || {
    echo "programs compiled with ${tag:-$old} would break: raise the minor version (include/kith/version.h)" >&2
    exit 1
}
