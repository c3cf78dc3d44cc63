#!/bin/sh
# Which lines and branches of src/ and of the Python package the tests run: coverage.sh BUILD [REGEX], after a build with the
# preset coverage. Runs the tests whose names match, prints a row for every layer of src/layers.txt and one for python/kith,
# and writes the pages BUILD/html/index.html. Code that only a device can run is not compiled here and counts in no row.
set -eu
cd "$(dirname "$0")/.."
build=$1
find "$build" -name '*.gcda' -delete
status=0
# The package is measured by Debian's python3-coverage (scripts/setup.sh coverage).
python="$PWD/$build/python-coverage"
rm -rf "$python"
mkdir -p "$python"
if /usr/bin/python3 -c 'import coverage' 2>/dev/null; then export KITH_PYTHON_COVERAGE="$python/data"; fi
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

# Statements, those run, branches, those taken.
count_python() {
    [ -n "$(ls "$python")" ] || return 0
    cd "$python"
    /usr/bin/python3 -m coverage combine --quiet --data-file=data
    /usr/bin/python3 -m coverage json --quiet --data-file=data -o counts.json
    /usr/bin/python3 -c 'import json
t = json.load(open("counts.json"))["totals"]
print(t["num_statements"], t["covered_lines"], t["num_branches"], t["covered_branches"])'
}
python_counts=$(count_python)

awk -v src="$PWD/src/" -v python="$python_counts" -F '[:,]' '
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
    function add_python(    count) {
        if (split(python, count, " ") != 4) return
        lines["python"] = count[1]; lines_run["python"] = count[2]
        branches["python"] = count[3]; branches_run["python"] = count[4]
        lines["all"] += count[1]; lines_run["all"] += count[2]
        branches["all"] += count[3]; branches_run["all"] += count[4]
    }
    function share(part, whole) { return whole ? sprintf("%.1f %%", 100 * part / whole) : "-" }
    function row(name) {
        printf "%-16s %7d %8s %10d %8s\n", name, lines[name], share(lines_run[name], lines[name]), branches[name],
            share(branches_run[name], branches[name])
    }
    END {
        add_python()
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
