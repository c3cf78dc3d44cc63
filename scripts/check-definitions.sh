#!/bin/sh
# Fail when a type (ki_…, kith_…) or a constant (KI_…, KITH_…) of ours is defined in two files: check-definitions.sh [ROOT]
# A type is defined by a struct, enum or union with a body, or by a typedef of something else; "typedef struct x x;" is none.
# A constant is defined by an enum or by #define: include guards and macros with arguments count too.
set -eu
cd "${1:-$(dirname "$0")/..}"
# shellcheck disable=SC2016
find include src \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' \) | sort | xargs awk '
    # A file as one line of code, without comments, strings and directives.
    function flush_file() { if (file != "") look_at(code); code = ""; in_comment = 0; is_directive = 0 }
    function define(name) {
        if ((name, file) in seen) return
        seen[name, file] = 1
        if (name in first) {
            printf "%s: %s is also defined in %s\n", file, name, first[name]
            n_wrong++
        } else first[name] = file
    }
    # The enumerators between the braces of an enum: names in front, each up to the comma that is in no parentheses.
    function enumerators(body,    n, i, c, depth, is_name) {
        n = length(body)
        is_name = 1
        for (i = 1; i <= n; i++) {
            c = substr(body, i, 1)
            if (c == "(") depth++
            else if (c == ")") depth--
            else if (c == "," && depth == 0) is_name = 1
            else if (is_name && c !~ /[ \t]/) {
                is_name = 0
                if (match(substr(body, i), /^(KI|KITH)_[A-Z0-9a-z_]+/)) define(substr(body, i, RLENGTH))
            }
        }
    }
    function look_at(text,    rest, part, name, depth, i, n, c) {
        rest = text
        while (match(rest, /(^|[^A-Za-z0-9_])enum([ \t]+[A-Za-z0-9_]+)?[ \t]*\{[^}]*\}/)) {
            part = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH)
            gsub(/^[^{]*\{|\}$/, "", part)
            enumerators(part)
        }
        rest = text
        while (match(rest, /(^|[^A-Za-z0-9_])(struct|enum|union)[ \t]+(ki|kith)_[A-Za-z0-9_]+[ \t]*\{/)) {
            part = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH)
            sub(/[ \t]*\{$/, "", part)
            sub(/^.*[ \t]/, "", part)
            define(part)
        }
        rest = text
        while (match(rest, /(^|[^A-Za-z0-9_])typedef[ \t]/)) {
            rest = substr(rest, RSTART + RLENGTH)
            # To the semicolon that is in no braces.
            depth = 0
            n = length(rest)
            for (i = 1; i <= n; i++) {
                c = substr(rest, i, 1)
                if (c == "{") depth++
                else if (c == "}") depth--
                else if (c == ";" && depth == 0) break
            }
            part = substr(rest, 1, i - 1)
            rest = substr(rest, i)
            if (part ~ /^(struct|enum|union)[ \t]+[A-Za-z0-9_]+[ \t]+[A-Za-z0-9_]+[ \t]*$/) continue
            if (part ~ /\{/) sub(/^.*\}/, "", part)
            # A function type has its name before its arguments, a pointer to one in parentheses: (*name)(…).
            if (part ~ /^[^(]*\([ \t]*\*/) { sub(/^[^(]*\([ \t]*\*/, "", part); sub(/\).*$/, "", part) }
            else sub(/\(.*$/, "", part)
            sub(/\[.*$/, "", part)
            gsub(/[ \t)]+$/, "", part)
            sub(/^.*[^A-Za-z0-9_]/, "", part)
            if (part ~ /^(ki|kith)_/) define(part)
        }
    }
    FNR == 1 { flush_file(); file = FILENAME }
    {
        line = $0
        if (!in_comment && (is_directive || line ~ /^[ \t]*#/)) {
            if (!is_directive && match(line, /^[ \t]*#[ \t]*define[ \t]+(KI|KITH)_[A-Za-z0-9_]+/)) {
                name = substr(line, RSTART, RLENGTH)
                sub(/^.*[ \t]/, "", name)
                define(name)
            }
            is_directive = line ~ /\\$/
            next
        }
        gsub(/\\./, "", line)
        gsub(/"[^"]*"|\047[^\047]*\047/, "0", line)
        if (in_comment) { if (!sub(/^.*\*\//, "", line)) next; in_comment = 0 }
        sub(/\/\/.*/, "", line)
        while (match(line, /\/\*/)) {
            rest_of_line = substr(line, RSTART + 2)
            line = substr(line, 1, RSTART - 1)
            if ((end = index(rest_of_line, "*/")) > 0) line = line " " substr(rest_of_line, end + 2)
            else in_comment = 1
        }
        code = code " " line
    }
    END { flush_file(); exit n_wrong > 0 }
'
