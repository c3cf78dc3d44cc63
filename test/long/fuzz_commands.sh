#!/bin/bash
# Whole commands on damaged files: fuzz_commands.sh [SECONDS [SEED [BUILD]]]
#
# A folder with a little of everything kith reads (tiny.sh) is made; then, again and again, one of its files is damaged
# (test/tools/mutate.c) and a command that reads it runs, with a minute of CPU time and 4 GB. Findings are signals, exit statuses
# above 2, runs that do not end, output that is no "kith: …" line where it fails, and sanitizers' reports where BUILD is
# built with them. A finding's file is kept beside the command in ${FOUND:-BUILD/found}. The same seed tries the same files.
# Prints the counts and exits 1 when there was a finding.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-60}
seed=${2:-1}
build=$(cd "${3:-$here/../../build}" && pwd)
KITH_PROGRAM=$build/kith
# shellcheck source=test/long/common.sh
. "$here/common.sh"
# shellcheck source=test/long/tiny.sh
. "$here/tiny.sh"
found=${FOUND:-$build/found}
export ASAN_OPTIONS=exitcode=99:detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:exitcode=99
# Sanitizers reserve terabytes of addresses; theirs is the limit on what is used.
if grep -qE '__(asan|tsan)_init' "$kith"; then
    ASAN_OPTIONS=$ASAN_OPTIONS:hard_rss_limit_mb=4096 limit=
    export TSAN_OPTIONS="${TSAN_OPTIONS-}:allocator_may_return_null=1:hard_rss_limit_mb=4096"
else
    limit=4194304
fi

# FILE|ARGUMENTS: what reads it. A * in the file is any of those.
readers() {
    cat <<'EOF'
tiny.yaml|train tiny.yaml --print-recipe
tiny.yaml|data tiny.yaml
tiny.yaml|objective tiny.yaml --plot plot.svg
tiny/glyph00003/00001.png|data tiny --check
tiny/glyph00003/00001.png|embed run tiny -o out.npy
all.csv|data all.csv
cars/cars_annos.mat|data cars
idx/train-images-idx3-ubyte.gz|data idx
idx/train-labels-idx1-ubyte|data idx
run/model.safetensors|embed run tiny/glyph00001 -o out.npy
run/model.safetensors|eval run --data tiny --bootstrap 10
run/recipe.yaml|report run -o page.html
run/result.json|report run -o page.html
run/run.json|report run -o page.html
run/log.jsonl|report run -o page.html
run/pairs.json|report run -o page.html
run/split.csv|report run -o page.html
run/test/*|report run -o page.html
half/checkpoints/*|train half --resume -q
half/best.safetensors|train half --resume -q
half/run.json|train half --resume -q
half/recipe.yaml|train half --resume -q
half/log.jsonl|train half --resume -q
half/split.csv|train half --resume -q
half/events*|train half --resume -q
e.npy|eval -e e.npy -y y.npy --bootstrap 10
y.npy|eval -e e.npy -y y.npy --bootstrap 10
e.npy|map e.npy -y y.npy --perplexity 4 --iterations 10 -o map.svg
all.paths.txt|map all.npy --images all.paths.txt --perplexity 4 --iterations 10 -o map.svg
e.npy|objective tiny.yaml --embedding e.npy --labels y.npy -o grads
y.npy|objective tiny.yaml --embedding e.npy --labels y.npy -o grads
a.json|eval --compare a.json b.json
b.json|eval --compare a.json b.json
list/tables.yaml|reproduce list/tables.yaml --table --out results --page page.md --notes notes.md --pictures pictures
list/plain.yaml|reproduce list/tables.yaml --minutes 1 --out results --runs runs --page page.md --notes notes.md --pictures pictures -q
results/plain-seed0.json|reproduce list/tables.yaml --table --out results --page page.md --notes notes.md --pictures pictures
notes.md|reproduce list/tables.yaml --table --out results --page page.md --notes notes.md --pictures pictures
EOF
}

tiny_make "$kith" "$work/tiny" || exit 1
(
    cd "$work/tiny" || exit 1
    "$kith" reproduce list/tables.yaml --out results --runs runs --page page.md --notes notes.md --pictures pictures \
        -s eval.select=last -s eval.watch_test=true -q >/dev/null
    rm -rf runs
) || exit 1
mapfile -t rows < <(readers)
n_runs=0 n_refused=0 n_findings=0
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
    row=${rows[$((n_runs % ${#rows[@]}))]}
    arguments=${row#*|}
    mutation=$((seed * 1000000 + n_runs))
    rm -rf "$work/run"
    cp -r "$work/tiny" "$work/run"
    # shellcheck disable=SC2206
    files=("$work/run/"${row%%|*})
    file=${files[$((mutation % ${#files[@]}))]}
    [ -e "$file" ] || touch "$file"
    "$build/test/mutate" $mutation "$file" "$work/damaged" && mv "$work/damaged" "$file"
    (
        cd "$work/run" || exit 1
        tiny_limits
        [ -z "$limit" ] || ulimit -v "$limit"
        # shellcheck disable=SC2086
        exec timeout -s KILL "$TINY_SECONDS" "$kith" $arguments
    ) >"$work/out" 2>"$work/err" </dev/null
    status=$?
    n_runs=$((n_runs + 1))
    why=
    [ $status -gt 2 ] && why="exit status $status"
    [ $status -ne 0 ] && n_refused=$((n_refused + 1))
    if [ $status -ne 0 ] && [ -z "$why" ] && ! tail -1 "$work/err" | grep -qE '^kith: |^[0-9]+/[0-9]+ .*: failed: '; then
        case $arguments in *--check*) ;; *) why="no line that says why" ;; esac
    fi
    if [ -n "$why" ]; then
        n_findings=$((n_findings + 1))
        mkdir -p "$found"
        cp "$file" "$found/$mutation-$(basename "$file")"
        echo "FINDING kith $arguments: $why; ${file#"$work/run/"} is kept as $found/$mutation-$(basename "$file")"
        tail -5 "$work/err" | sed 's/^/    /'
    fi
done
echo "fuzz_commands: $n_runs runs, $n_refused refused, $n_findings findings (seed $seed)"
[ "$n_findings" -eq 0 ]
