#!/bin/sh
# Which lines and branches of src/ the tests run: coverage.sh BUILD [REGEX], after a build with the preset coverage.
# Runs the tests whose names match, prints a row for every layer of src/layers.txt and writes the pages
# BUILD/html/index.html. Code that only a device can run is not compiled here and counts in no row.
set -eu
cd "$(dirname "$0")/.."
build=$1
find "$build" -name '*.gcda' -delete
status=0
scripts/test.sh "$build" "${2:-.}" || status=1

lcov='lcov --quiet --rc lcov_branch_coverage=1'
# OpenMP's and the compiler's own functions have no lines of ours: a few objects hold nothing to read.
$lcov --capture --directory "$build" --output-file "$build/all.info" >"$build/lcov.log" 2>&1 || {
    tail -5 "$build/lcov.log" >&2
    exit 1
}
$lcov --extract "$build/all.info" "$PWD/src/*" --output-file "$build/src.info" >>"$build/lcov.log" 2>&1
genhtml --quiet --branch-coverage --rc lcov_branch_coverage=1 --prefix "$PWD/src" --legend --title kith \
    --output-directory "$build/html" "$build/src.info" >>"$build/lcov.log" 2>&1

awk -v src="$PWD/src/" -F '[:,]' '
    FILENAME == "src/layers.txt" { if (!/^#/ && NF) { split($0, word, " "); known[word[1]] = 1 }; next }
    # The longest folder of the table that holds the file.
    /^SF:/ {
        layer = substr($0, 4)
        sub("^" src, "", layer)
        while (sub(/\/[^\/]*$/, "", layer)) if (layer in known) break
    }
    /^LF:/ { lines[layer] += $2; lines["all"] += $2 }
    /^LH:/ { lines_run[layer] += $2; lines_run["all"] += $2 }
    /^BRF:/ { branches[layer] += $2; branches["all"] += $2 }
    /^BRH:/ { branches_run[layer] += $2; branches_run["all"] += $2 }
    function share(part, whole) { return whole ? sprintf("%.1f %%", 100 * part / whole) : "-" }
    function row(name) {
        printf "%-16s %7d %8s %10d %8s\n", name, lines[name], share(lines_run[name], lines[name]), branches[name],
            share(branches_run[name], branches[name])
    }
    END {
        printf "%-16s %7s %8s %10s %8s\n", "layer", "lines", "run", "branches", "taken"
        n = 0
        for (name in lines) if (name != "all") sorted[++n] = name
        for (i = 2; i <= n; i++) for (k = i; k > 1 && sorted[k] < sorted[k - 1]; k--) {
            name = sorted[k]; sorted[k] = sorted[k - 1]; sorted[k - 1] = name
        }
        for (i = 1; i <= n; i++) row(sorted[i])
        row("all")
    }' src/layers.txt "$build/src.info" | tee "$build/coverage.txt"
echo "pages: $build/html/index.html"
exit "$status"
