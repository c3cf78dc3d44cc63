#!/bin/sh
# What each file asks of the system's C and C++ libraries: glibc.sh FILE…
# One line for each: the highest version of glibc's symbols, of libstdc++'s (- where it links none), the file. The last line has the
# highest of all.
set -eu
command -v objdump >/dev/null || { echo "glibc.sh: objdump is missing (binutils)" >&2; exit 1; }
for file in "$@"; do
    objdump -T "$file" >/dev/null 2>&1 || { echo "glibc.sh: $file is no program and no library" >&2; exit 1; }
done
for file in "$@"; do
    objdump -T "$file" | grep -F '*UND*' | grep -oE '\((GLIBC|GLIBCXX)_[0-9.]+\)|(GLIBC|GLIBCXX)_[0-9.]+' | tr -d '()' | sort -uV |
        awk -F _ -v file="$file" '{ most[$1] = $2 } END {
            printf "%s\t%s\t%s\n", "GLIBC" in most ? most["GLIBC"] : "-", "GLIBCXX" in most ? most["GLIBCXX"] : "-", file }'
done | awk -F '\t' '
    function above(a, b,   x, y, i) {
        split(a, x, "."); split(b, y, ".")
        for (i = 1; i <= 3; i++) if (x[i] + 0 != y[i] + 0) return x[i] + 0 > y[i] + 0
        return 0
    }
    { print; if ($1 != "-" && above($1, c)) c = $1; if ($2 != "-" && above($2, cxx)) cxx = $2 }
    END { printf "%s\t%s\tall\n", c == "" ? "-" : c, cxx == "" ? "-" : cxx }'
