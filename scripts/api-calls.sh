#!/bin/sh
# C code that calls every public function with one argument wrong, from the headers alone: api-calls.sh [INCLUDE]
# For test/api/test_arguments.c, which includes it: a function that is new in a header is called too. A row is
#     CALL(FUNCTION, ARGUMENT, "EXPRESSION's kind", expression)
# with NULL for one pointer, or -1 for one int64_t; the other pointers point to `scratch`, zeros.
set -eu
cd "$(dirname "$0")/.."
# shellcheck disable=SC2016
scripts/list-api.sh "$@" | awk -F'\t' '
    function is_pointer(type) { return type ~ /\*$/ }
    function is_callback(type) { return type ~ /_fn$/ }
    function good(type, name) {
        if (type == "kith_error *") return "&err"
        if (name == "user" || is_callback(type)) return "NULL"
        if (is_pointer(type)) return "(" type ")(void *)scratch"
        return "(" type ")0"
    }
    # The call with argument `wrong` (0: all of them) bad.
    function call(wrong,    i, part, text) {
        text = $3 "("
        for (i = 4; i <= NF; i++) {
            if ($i == "void") continue
            split($i, part, "|")
            if (part[1] == "kith_error *") value = wrong ? "&err" : "NULL"
            else if (i != wrong && wrong) value = good(part[1], part[2])
            else if (is_pointer(part[1]) || is_callback(part[1])) value = "NULL"
            else if (part[1] == "int64_t") value = "-1"
            else value = "(" part[1] ")0"
            text = text (i > 4 ? ", " : "") value
        }
        return text ")"
    }
    function emit(wrong, what, kind) {
        printf "CALL_%s(%s, %s, %s, %s)\n", $2 == "kith_status" ? "STATUS" : "OTHER", $3, what, kind, call(wrong)
    }
    {
        for (i = 4; i <= NF; i++) {
            if ($i == "void") continue
            split($i, part, "|")
            if (part[1] == "kith_error *" || part[2] == "user" || is_callback(part[1])) continue
            if (is_pointer(part[1])) emit(i, part[2], "NULL_POINTER")
            else if (part[1] == "int64_t") emit(i, part[2], "NEGATIVE")
        }
        if ($4 != "void") emit(0, all, "ALL_WRONG")
    }
' all=all_of_them
