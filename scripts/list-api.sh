#!/bin/sh
# The public functions, one to a line, from the headers alone: list-api.sh [INCLUDE]
#     HEADER<tab>RESULT<tab>NAME<tab>ARGUMENT<tab>ARGUMENT…      an argument is "TYPE|NAME"; none: "void"
# What is exported, documented and tested for NULL is held against this list.
set -eu
cd "${1:-$(dirname "$0")/../include}"
# shellcheck disable=SC2016
find kith -name '*.h' | LC_ALL=C sort | xargs awk '
    function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
    # "const char *const *paths" and "char ret_hex[65]" into type and name; an array is a pointer.
    function argument(text,    name, type) {
        text = trim(text)
        if (text == "void") return "void"
        if (sub(/\[[^]]*\]$/, "", text)) text = trim(text)
        match(text, /[A-Za-z0-9_]+$/)
        name = substr(text, RSTART)
        type = trim(substr(text, 1, RSTART - 1))
        if ($0 ~ name "\\[") type = type " *"
        return type "|" name
    }
    function show(text,    open, head, name, rest, n, part, i, line) {
        gsub(/[ \t]+/, " ", text)
        sub(/^ *KITH_API */, "", text)
        open = index(text, "(")
        head = trim(substr(text, 1, open - 1))
        rest = substr(text, open + 1)
        sub(/\) *;.*$/, "", rest)
        match(head, /[A-Za-z0-9_]+$/)
        name = substr(head, RSTART)
        $0 = rest
        line = FILENAME "\t" trim(substr(head, 1, RSTART - 1)) "\t" name
        n = split(rest, part, ",")
        for (i = 1; i <= n; i++) line = line "\t" argument(part[i])
        print line
    }
    { sub(/\r$/, "") }
    /^KITH_API/ { text = ""; is_open = 1 }
    is_open { text = text " " $0; if ($0 ~ /;/) { is_open = 0; show(text) } }
'
