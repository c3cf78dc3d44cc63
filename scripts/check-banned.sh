#!/bin/sh
# Fail on calls that have no place here: check-banned.sh [ROOT]
# Comments and strings are not looked at.
set -eu
cd "${1:-$(dirname "$0")/..}"
# shellcheck disable=SC2016
find include src \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) | sort | xargs awk '
    function words(list, why, set,    i, n, part) {
        n = split(list, part, " ")
        for (i = 1; i <= n; i++) set[part[i]] = why
    }
    BEGIN {
        words("strcpy strcat sprintf vsprintf gets strtok", "has no bound: use snprintf", everywhere)
        words("atoi atol atoll atof", "cannot fail: use base/text.h or kith/text.h", everywhere)
        words("alloca", "is unbounded stack: use base/alloc.h", everywhere)
        words("malloc calloc realloc free aligned_alloc posix_memalign strdup strndup asprintf vasprintf",
              "is not counted: use base/alloc.h", library)
        words("printf vprintf puts putchar perror stdout stderr", "prints: use base/log.h or the error", library)
        words("exit _exit quick_exit abort assert", "ends the process: return a status", library)
        words("rand srand random drand48", "is hidden state: use base/rng.h", library)
        words("setlocale", "changes the process", library)
        words("snprintf vsnprintf fprintf vfprintf strtod strtof strtold", "follows the locale: use base/text.h", library)
        words("mmap mmap64", "ends the process when the file shrinks: use io/file.h", library)
    }
    FNR == 1 { in_comment = 0; is_library = FILENAME !~ /^src\/cli\// }
    {
        line = $0
        gsub(/\\./, "", line)
        gsub(/"[^"]*"|\047[^\047]*\047/, "0", line)
        if (in_comment) { if (!sub(/^.*\*\//, "", line)) next; in_comment = 0 }
        sub(/\/\/.*/, "", line)
        while (match(line, /\/\*/)) {
            rest = substr(line, RSTART + 2)
            line = substr(line, 1, RSTART - 1)
            if ((end = index(rest, "*/")) > 0) line = line " " substr(rest, end + 2)
            else in_comment = 1
        }
        if (line ~ /^[ \t]*#[ \t]*include/) next
        n = split(line, word, /[^A-Za-z0-9_]+/)
        for (i = 1; i <= n; i++) {
            w = word[i]
            if (w == "" || !(w in everywhere) && !(is_library && w in library)) continue
            if (FILENAME == "src/base/alloc.c" && library[w] ~ /not counted|file shrinks/) continue
            if (FILENAME == "src/io/gather.c" && library[w] ~ /file shrinks/) continue
            # It maps a file in memory that is sealed against shrinking.
            if (FILENAME == "src/data/loader/shared.c" && library[w] ~ /file shrinks/) continue
            if (FILENAME == "src/base/text.c" && library[w] ~ /follows the locale/) continue
            # A field or a local of that name is no call; a stream is wrong however it is used.
            if (w != "stdout" && w != "stderr" && line !~ ("(^|[^A-Za-z0-9_.>])" w "[ \t]*\\(")) continue
            printf "%s:%d: %s %s\n", FILENAME, FNR, w, (w in everywhere) ? everywhere[w] : library[w]
            n_wrong++
        }
    }
    END { exit n_wrong > 0 }
'
# The project speaks of itself only: no path of the machine it was written on.
if git rev-parse --git-dir >/dev/null 2>&1 && git grep -nE '(^|[^A-Za-z0-9_.])/(work|home|root|Users)/' -- . ':!LICENSE' ':!scripts/check-banned.sh'; then
    echo "a path of one machine in a tracked file" >&2
    exit 1
fi
