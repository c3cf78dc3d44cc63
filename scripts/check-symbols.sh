#!/bin/sh
# Fail when code calls a layer that it may not (src/layers.txt), whichever header declared the function:
# check-symbols.sh [BUILD [TABLE]]
# check-layers.sh sees includes alone, and public headers are open to all: here every object file's undefined names
# are looked up in the object files that define them.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build} table=${2:-src/layers.txt}
[ -d "$build/src/CMakeFiles/kith_objects.dir" ] || { echo "no $build to check: run make first" >&2; exit 1; }
set -- "$build/src/CMakeFiles/kith_objects.dir"
set -- "$@" "$build/src/CMakeFiles/kith_serve.dir"
[ -d "$build/src/CMakeFiles/kith_cuda_objects.dir" ] && set -- "$@" "$build/src/CMakeFiles/kith_cuda_objects.dir"
# Objects of sources that are no longer there stay in a build folder: only those of the present ones count.
find "$@" -name '*.o' | sort | while read -r object; do
    source=${object#*/src/CMakeFiles/*.dir/}
    source=src/${source%.o}
    if [ -e "$source" ]; then printf '@ %s\n' "$source" && nm -g "$object"; fi
done | awk -v table="$table" '
    BEGIN {
        while ((getline line < table) > 0) {
            if (line ~ /^#/ || line ~ /^[ \t]*$/) continue
            n = split(line, word, " ")
            known[word[1]] = 1
            for (i = 2; i <= n; i++) may[word[1], word[i]] = 1
        }
        for (k in known) for (a in known) for (b in known)
            if (((a, k) in may) && ((k, b) in may)) may[a, b] = 1
    }
    function layer_of(path) {
        sub(/^src\//, "", path)
        # Code for a device belongs to the folder cuda of its layer, wherever it lies.
        if (path ~ /\.cuh?$/ && path !~ /\/cuda\//) { split(path, part, "/"); if ((part[1] "/cuda") in known) return part[1] "/cuda" }
        sub(/\.[a-z]+$/, "", path)
        if (path in known) return path
        while (sub(/\/[^\/]*$/, "", path)) if (path in known) return path
        return ""
    }
    $1 == "@" { source = $2; n_objects++; next }
    $NF !~ /^(ki|kith)_/ { next }
    $(NF - 1) ~ /^[TDRBVW]$/ && NF == 3 { defined_in[$NF] = source; next }
    $(NF - 1) == "U" { uses[source, $NF] = 1; from[++n] = source; name[n] = $NF }
    END {
        for (i = 1; i <= n; i++) {
            if (!(name[i] in defined_in)) continue
            a = layer_of(from[i]); b = layer_of(defined_in[name[i]])
            n_calls++
            if (a == b || ((a, b) in may)) continue
            printf "%s: %s may not call %s of %s\n", from[i], a, name[i], defined_in[name[i]]
            n_wrong++
        }
        if (n_objects < 50 || n_calls < 500) { printf "only %d objects and %d calls were seen\n", n_objects, n_calls; n_wrong++ }
        exit n_wrong > 0
    }
'
