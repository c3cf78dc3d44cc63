#!/bin/sh
# Fail when a file includes a layer it may not (src/layers.txt), or a header inside a function: check-layers.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/..}"
# shellcheck disable=SC2016
find include src \( -name "*.[ch]" -o -name "*.cu" -o -name "*.cuh" -o -name "*.def" \) | sort | xargs awk '
    # The table, and from it everything each layer may reach.
    FILENAME == "src/layers.txt" {
        if (/^#/ || NF == 0) next
        known[$1] = 1
        for (i = 2; i <= NF; i++) may[$1, $i] = 1
        next
    }
    !is_closed {
        for (k in known) for (a in known) for (b in known)
            if (((a, k) in may) && ((k, b) in may)) may[a, b] = 1
        is_closed = 1
    }
    # The file itself without its ending ("cli/serve"), or the longest folder of the table that holds it ("backend/cpu"
    # before "backend"). A .cu or .cuh file belongs to the device part of its layer, wherever it lies.
    function layer_of(path,    is_kernel) {
        is_kernel = path ~ /\.cuh?$/
        sub(/\.[a-z]+$/, "", path)
        if (path in known) return path
        while (sub(/\/[^\/]*$/, "", path)) {
            if (is_kernel && ((path "/cuda") in known)) return path "/cuda"
            if (path in known) return path
        }
        return ""
    }
    function report(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; n_wrong++ }
    FNR == 1 {
        before = ""
        path = FILENAME
        is_public = sub(/^include\//, "", path)
        sub(/^src\//, "", path)
        layer = is_public ? "kith" : layer_of(path)
        if (layer == "") report("this folder is not in src/layers.txt")
    }
    # A header belongs to the file, not into a function (where lines are indented).
    /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]*\.h[>"]/ && before ~ /^[ \t]+[^ \t#*]/ { report("an include inside a function") }
    !/^[ \t]*$/ { before = $0 }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, part, "\"")
        if (part[2] ~ /^kith\// || (!is_public && part[2] !~ /\//)) next
        target = layer_of(part[2])
        if (target == layer && target != "" || ((layer, target) in may)) next
        if (layer != "") report((is_public ? "a public header" : layer) " may not include " part[2])
    }
    END { exit n_wrong > 0 }
' src/layers.txt
