#!/bin/sh
# Hold what is passed on to what is promised of it: check-dist.sh FOLDER [GLIBC GLIBCXX]
#
# FOLDER is an unpacked tar (or what scripts/stage.sh made). Fails when a library has no row in scripts/licences.tsv (LICENCES names
# another table) or no copyright file inside, is under the GPL alone, when a file asks for a newer glibc or libstdc++ than given, or when
# something that is neither inside nor glibc's, libstdc++'s or libgcc's own is linked (plugins may: scripts/plugins.tsv).
set -eu
cd "$(dirname "$0")/.."
folder=${1:?check-dist.sh FOLDER [GLIBC GLIBCXX]} licences=${LICENCES:-scripts/licences.tsv}
[ -x "$folder/bin/kith" ] || { echo "check-dist.sh: there is no $folder/bin/kith" >&2; exit 1; }
list=$folder/share/doc/kith/licences
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/faults"
fault() { echo "$*" >>"$work/faults"; }

find "$folder/bin" "$folder/lib" -type f '(' -name kith -o -name '*.so*' ')' | sort >"$work/files"
# An alternative without the GPL is enough; the exception of GCC's runtime libraries lets everybody pass them on.
is_gpl_alone() {
    echo "$1" | sed 's/ OR /\n/g' | awk '
        { n = split($0, part, / AND /); bad = 0
          for (i = 1; i <= n; i++) if (part[i] ~ /^\(?A?GPL-/ && part[i] !~ /WITH GCC-exception/) bad = 1
          if (!bad) good = 1 }
        END { exit good ? 1 : 0 }'
}
while read -r file; do
    base=${file##*/}
    case $base in kith | libkith*) name=libkith ;; *) name=${base%%.so*} ;; esac
    # A wheel's libraries have another name behind their own (python/make/bundle.py).
    name=${name%-kith}
    licence=$(awk -F '\t' -v name="$name" '$1 == name { print $2 }' "$licences")
    if [ -z "$licence" ]; then
        fault "$base: no licence in $licences"
    elif is_gpl_alone "$licence"; then
        fault "$base: under $licence alone"
    fi
    if [ "$name" != libkith ]; then
        package=$(awk -F '\t' -v name="$base" '$1 == name { print $2 }' "$list/libraries.tsv")
        if [ -z "$package" ] || [ ! -s "$list/$package.txt" ]; then fault "$base: no copyright file in $list"; fi
    fi
    case $base in libkith-*) continue ;; esac
    for needed in $(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }'); do
        case $needed in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux*.so* | libstdc++.so.6 | libgcc_s.so.1) ;;
        *) [ -e "$folder/lib/kith/bundled/$needed" ] || fault "$base: links $needed, which is not inside" ;;
        esac
    done
done <"$work/files"

tr '\n' '\0' <"$work/files" | xargs -0 scripts/glibc.sh >"$work/versions"
sed "s|$folder/||" "$work/versions"
if [ $# -ge 3 ]; then
    tail -n 1 "$work/versions" | awk -F '\t' -v c="$2" -v cxx="$3" '
        function above(a, b,   x, y, i) {
            split(a, x, "."); split(b, y, ".")
            for (i = 1; i <= 3; i++) if (x[i] + 0 != y[i] + 0) return x[i] + 0 > y[i] + 0
            return 0
        }
        above($1, c) { print "glibc " $1 " is asked for; promised is " c }
        above($2, cxx) { print "libstdc++ GLIBCXX_" $2 " is asked for; promised is " cxx }' >>"$work/faults"
fi
[ ! -s "$work/faults" ] || { cat "$work/faults" >&2; exit 1; }
