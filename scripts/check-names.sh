#!/bin/sh
# Fail when a layer above or below the objective names one of its methods or includes its header, or when anything but its own
# room names a kind of store: check-names.sh [ROOT]
#
# The names are those of src/objective/*/table.def. Looked at is code without comments (which may cite papers) in
# include/ and in src/ outside src/objective. A name is found as a whole string ("raw"), as the head of a parameter
# ("density.d0") and in identifiers (ki_reg_density, ki_density_start). Names that nobody else would use (horde,
# vthm) are found wherever they begin a word, in strings and identifiers alike. A header is a method's when it has the name of
# a row (objective/reg/horde.h): what others need to know is in the records (loss.h, miner.h, reg.h) and in objective.h.
set -eu
cd "${1:-$(dirname "$0")/..}"
names=$(sed -n 's/^X(\([a-z0-9_]*\),.*/\1/p' src/objective/*/table.def)
# Plain English, so that they may begin a word.
plain="all angular binomial circle contrastive density entropy hard histogram lifted margin match raw triplet"
# Identifiers that others have: ki_raw of the backend's unread numbers, ki_histogram of the report's charts.
shared="all histogram margin raw"
# Strings that others have: a choice "all" of several commands, the shape "circle" of pictures, the option "margin"
# that several losses share.
words="all circle margin"
# shellcheck disable=SC2016
find include src \( -name "*.[ch]" -o -name "*.cu" -o -name "*.cuh" -o -name "*.def" \) ! -path "src/objective/*" |
    sort | xargs awk -v names="$names" -v plain="$plain" -v shared="$shared" -v words="$words" '
    BEGIN {
        n_names = split(names, name)
        put(plain, is_plain)
        put(shared, is_shared)
        put(words, is_word)
    }
    function put(list, set,    i, n, part) {
        n = split(list, part)
        for (i = 1; i <= n; i++) set[part[i]] = 1
    }
    # The line without comments; in_comment goes on from line to line.
    function code_of(line,    out, at) {
        out = ""
        while (line != "") {
            if (in_comment) {
                at = index(line, "*/")
                if (!at) return out
                line = substr(line, at + 2)
                in_comment = 0
            } else {
                at = match(line, /\/\*|\/\//)
                if (!at) return out line
                out = out substr(line, 1, at - 1)
                if (substr(line, at, 2) == "//") return out
                line = substr(line, at + 2)
                in_comment = 1
            }
        }
        return out
    }
    FNR == 1 { in_comment = 0 }
    {
        code = code_of($0)
        if (code ~ /^[ \t]*#[ \t]*include/) {
            split(code, part, "\"")
            if (part[2] !~ /^objective\/(loss|proxy|miner|reg)\//) next
            header = part[2]
            sub(/.*\//, "", header)
            for (i = 1; i <= n_names; i++) {
                if (header != name[i] ".h" && header != name[i] ".cuh") continue
                printf "%s:%d: includes the header of the method %s\n", FILENAME, FNR, name[i]
                n_wrong++
            }
            next
        }
        for (i = 1; i <= n_names; i++) {
            if (!index(code, name[i])) continue
            before = "(^|[^A-Za-z0-9_])"
            after = "([^A-Za-z0-9]|$)"
            if (code ~ (before "ki_(cuda_)?(loss|miner|reg)_" name[i] after)) found = 1
            else if (!(name[i] in is_shared) && code ~ (before "ki_" name[i] after)) found = 1
            else if (!(name[i] in is_word) && code ~ ("\"" name[i] "\"")) found = 1
            else if (code ~ ("\"" name[i] "\\.")) found = 1
            else found = !(name[i] in is_plain) && code ~ (before name[i])
            if (!found) continue
            printf "%s:%d: names the method %s\n", FILENAME, FNR, name[i]
            n_wrong++
        }
    }
    END { exit n_wrong > 0 }'
# Who keeps an index is behind src/search/store_type.h: only the rooms of the stores, the plugin and the table of kinds name one.
stores=$(sed -n 's/^X(\([a-z0-9_]*\))$/\1/p' src/search/table.def | tr '\n' '|')
if grep -nErE "#include \"search/(${stores}postgres)/|(^|[^A-Za-z0-9_])ki_(${stores}pg)(_|[^A-Za-z0-9_])" include src |
    grep -vE "^src/(search/(${stores}postgres)/|plugin/postgres\\.c:)"; then
    echo "the lines above name a kind of store: use search/store_type.h" >&2
    exit 1
fi
