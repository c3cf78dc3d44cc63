#!/usr/bin/env bash
# Do the tests notice when the code is wrong? Breaks a layer of src/ in one place at a time and counts.
#
#     scripts/mutate.sh LAYER [N] [SEED]     N mutants (200) of src/LAYER, drawn with SEED (1)
#     scripts/mutate.sh again LAYER          those the last run left unnoticed, against the tests of now
#
# test/tools/mutants.c makes the mutants. Each is built in a scratch copy of the tree (build/mutate) and the tests of
# test/LAYER run against it, quick ones first, until one fails, crashes or takes too long: then it was noticed. What does
# not compile is no mutant, and one whose object code is the same to the byte is no change; neither is counted.
# JOBS (1) mutants at a time: the first worker times the tests and begins, the others join when their copy is built.
# MOST_SECONDS (60): tests that take more of a core are left out; TESTS: test folders instead of LAYER; SCRATCH
# (build/mutate): for two runs at a time, one each; CONTINUE=1: go on where a run with the same seed stopped, or to a
# larger N. Times are a core's, not the clock's, so that a loaded machine gives the same verdicts.
# The table is SCRATCH/LAYER/results.tsv; the last lines on the terminal list the unnoticed and the score.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n '4,5p' "$0" >&2; exit 2; }
again=
[ "${1:-}" != again ] || { again=1; shift; }
[ $# -ge 1 ] || usage
layer=$1 wanted=${2:-200} seed=${3:-1}
[ -d "src/$layer" ] || { echo "no src/$layer: LAYER is a folder of src/" >&2; exit 2; }
jobs=${JOBS:-1} most=${MOST_SECONDS:-60} tests=${TESTS:-$layer}
root=$PWD
linker=
if ! command -v ld.lld >/dev/null && ! command -v ld.mold >/dev/null && command -v ld.gold >/dev/null; then linker=-DKITH_LINKER=gold; fi
mkdir -p "${SCRATCH:=build/mutate}"
scratch=$(cd "$SCRATCH" && pwd)
out=$scratch/$layer
# The copies are no repository, and threads that wait must not spin.
export GIT_CEILING_DIRECTORIES=$scratch OMP_WAIT_POLICY=passive
mkdir -p "$out"
cc -std=c11 -O1 -D_GNU_SOURCE test/tools/mutants.c -o "$scratch/mutants"

# The copy a worker breaks: files of ours, copied only when they differ, so that a second run builds little.
copy_tree() { # WORKER
    local tree=$scratch/worker$1/kith
    mkdir -p "$tree"
    git ls-files -co --exclude-standard | while read -r file; do [ ! -f "$file" ] || echo "$file"; done >"$tree.files"
    xargs -d '\n' sha256sum <"$tree.files" >"$tree.sums"
    { (cd "$tree" && sha256sum --quiet -c "$tree.sums" 2>/dev/null) || true; } | sed -n 's/: FAILED.*//p' |
        while read -r file; do mkdir -p "$tree/$(dirname "$file")" && cp "$file" "$tree/$file"; done
    (cd "$tree" && find . -path ./build -prune -o -type f -print) | sed 's,^\./,,' | sort >"$tree.there"
    sort "$tree.files" | comm -13 - "$tree.there" | while read -r gone; do rm -f "$tree/$gone"; done
    # A run that was cut off may have left objects of a mutant beside the right source.
    [ ! -e "$scratch/worker$1/broken" ] || touch "$tree/$(cat "$scratch/worker$1/broken")"
    # Tests look for shared material beside the checkout.
    [ ! -e "$root/../shared" ] || ln -sfn "$(cd "$root/../shared" && pwd)" "$scratch/worker$1/shared"
}

# Every test program of the layer that passes: milliseconds of a core, name, kith_program if it needs that; quickest
# first, those with a library of their own last, so that most mutants are built once.
find_tests() { # WORKER
    local tree=$scratch/worker$1/kith name names
    names=$(for folder in $tests; do (cd "$tree/test/$folder" && find . -name 'test_*.c'); done | sed 's,.*/,,; s,\.c$,,' | sort)
    # shellcheck disable=SC2086
    ninja -C "$tree/build" kith_program $names >"$out/build$1.log" 2>&1 || { tail -5 "$out/build$1.log" >&2; return 1; }
    for name in $names; do
        if run_test "$1" "$name" "$most"; then
            echo "$(awk '{ printf "%d", 1000 * ($1 + $2) }' "$scratch/worker$1/took") $name $(program_of "$tree" "$name")"
        else
            echo "left out: $name (fails, is skipped or takes more than $most s without a mutant)" >&2
        fi
    done | awk '{ print ($2 ~ /_cuda$/ ? 2 : $2 ~ /_f64$/), $0 }' | sort -n -k 1,1 -k 2,2 | cut -d ' ' -f 2-
}

# The target kith_program for a test that runs it, from its own file or a header beside it.
program_of() { # TREE TEST
    local file
    file=$(find "$1/test" -name "$2.c")
    ! grep -qs testing_program "$file" "$(dirname "$file")"/*.h || echo kith_program
}

# A mutant may spin, hang or ask for all the memory there is.
run_test() { # WORKER TEST SECONDS
    local build=$scratch/worker$1/kith/build status=0 TIMEFORMAT='%U %S'
    rm -rf "$scratch/worker$1/tmp" && mkdir -p "$scratch/worker$1/tmp"
    {
        time {
            (
                cd "$build/test"
                ulimit -v 12000000 -c 0 -t "$3"
                KITH_PROGRAM=$build/kith TMPDIR=$scratch/worker$1/tmp timeout -k 2 $((20 * $3)) "./$2"
            ) >"$out/test$1.log" 2>&1 </dev/null
        }
    } 2>"$scratch/worker$1/took" || status=$?
    return $status
}

# Was an object made since the stamp that differs from the one without a mutant? kith_emulated has kith_static's too.
has_changed() { # WORKER LIBRARY
    local build=$scratch/worker$1/kith/build folders object
    case $2 in kith64) folders=kith64.dir ;; kith_static) folders=kith_objects.dir ;; *) folders='kith_[eo][a-z_]*.dir' ;; esac
    while read -r object; do
        cmp -s "$build/$object" "$scratch/worker$1/objects/$object" || return 0
    done < <(cd "$build" && find . -path "*/$folders/*.o" -newer "$scratch/worker$1/stamp")
    return 1
}

# Put back source and objects with their old times, so that ninja sees nothing to do; what was linked from a mutant goes.
put_back() { # WORKER FILE
    local worker=$scratch/worker$1
    local build=$worker/kith/build
    cp -p "$worker/original" "$worker/kith/$2"
    (cd "$build" && find . -name '*.o' -newer "$worker/stamp") | while read -r object; do
        cp -p "$worker/objects/$object" "$build/$object"
    done
    find "$build" \( -name '*.a' -o -name '*.so*' -o -name 'test*_*' -o -name kith \) -type f -newer "$worker/stamp" \
        -not -name '*.o' -delete
    rm "$worker/broken"
}

# The program that holds a test: the tests of a folder share one.
holder_of() { # WORKER TEST
    basename "$(readlink -f "$scratch/worker$1/kith/build/test/$2")"
}

# By the command that ninja would run: asking ninja, which looks for new files each time, takes longer than linking.
link_again() { # WORKER TARGET
    local worker=$scratch/worker$1
    (cd "$worker/kith/build" && sh "$worker/link/$2") >"$worker/ninja.log" 2>&1
}

# Sets verdict and by. A test whose library has no changed object is not linked and run again.
try_mutant() { # WORKER FILE NUMBER
    local worker=$scratch/worker$1 seconds milliseconds name program library target
    local build=$worker/kith/build
    local -A is_changed=() is_linked=()
    cp -p "$worker/kith/$2" "$worker/original"
    echo "$2" >"$worker/broken"
    touch "$worker/stamp"
    sleep 0.02 # a file's time may be a tick behind
    (cd "$worker/kith" && "$scratch/mutants" apply "$2" "$3") >"$worker/mutated"
    cp "$worker/mutated" "$worker/kith/$2"
    verdict=equal by=-
    while read -r milliseconds name program; do
        case $name in *_f64) library=kith64 ;; *_cuda) library=kith_emulated ;; *) library=kith_static ;; esac
        if [ -z "${is_changed[$library]:-}" ]; then
            if ! ninja -C "$build" "$library" kith_static >"$worker/ninja.log" 2>&1; then # kith_emulated links both
                verdict=uncompiled
                break
            fi
            is_changed[$library]=no
            ! has_changed "$1" "$library" || is_changed[$library]=yes
        fi
        [ "${is_changed[$library]}" = yes ] || continue
        verdict=unnoticed
        for target in "$(holder_of "$1" "$name")" ${program:+"$program"}; do
            if [ -n "${is_linked[$target]:-}" ]; then continue; fi
            is_linked[$target]=yes
            if ! link_again "$1" "$target"; then
                verdict=uncompiled
                break 2
            fi
        done
        seconds=$((milliseconds / 200 + 5))
        if ! run_test "$1" "$name" "$seconds"; then
            verdict=noticed by=$name
            break
        fi
    done <"$out/tests.txt"
    put_back "$1" "$2"
}

counted() { grep -cE '	(noticed|unnoticed)	' "$out/results.tsv" || true; }

work() { # WORKER
    local index file number line kind change began took
    while :; do
        exec 9>"$out/lock"
        flock 9
        index=$(($(cat "$out/next") + 1))
        if [ "$(counted)" -ge "$wanted" ] || [ "$index" -gt "$(wc -l <"$out/order.tsv")" ]; then break; fi
        echo "$index" >"$out/next"
        flock -u 9
        if grep -q "^$index	" "$out/results.tsv"; then continue; fi
        IFS=$'\t' read -r file number line kind change < <(sed -n "${index}p" "$out/order.tsv")
        began=$(date +%s%N)
        try_mutant "$1" "$file" "$number"
        took=$((($(date +%s%N) - began) / 100000000))
        flock 9
        printf '%s\t%s\t%d.%d\t%s\t%s\t%s\t%s\t%s\t%s\n' "$index" "$verdict" $((took / 10)) $((took % 10)) "$by" \
            "$file" "$number" "$line" "$kind" "$change" >>"$out/results.tsv"
        flock -u 9
        [ "$verdict" != unnoticed ] || echo "unnoticed  $file:$line  $kind: $change"
    done
}

prepare() { # WORKER
    copy_tree "$1"
    local tree=$scratch/worker$1/kith
    # A mutant is linked once for each program it is run against; gold takes a third of ld's time, and lld less.
    [ -e "$tree/build/build.ninja" ] ||
        (cd "$tree" && cmake --preset release -DKITH_CUDA=OFF $linker) >"$out/configure$1.log" 2>&1 ||
        { tail -5 "$out/configure$1.log" >&2; return 1; }
    if [ -n "$going_on" ] || [ "$1" != 1 ]; then
        cut -d ' ' -f 2- "$out/tests.txt" | xargs ninja -C "$tree/build" >"$out/build$1.log" 2>&1
    else
        find_tests "$1" >"$out/tests.new"
        [ -s "$out/tests.new" ] || { echo "no test of test/$tests passes" >&2; return 1; }
        mv "$out/tests.new" "$out/tests.txt"
    fi
    # The tests in double and those on the emulated device have a libkith of their own.
    sed -n 's/.*_f64 .*/kith64/p; s/.*_cuda .*/kith_emulated/p' "$out/tests.txt" | sort -u |
        xargs ninja -C "$tree/build" kith_static >"$out/build$1.log" 2>&1
    rm -rf "$scratch/worker$1/objects" "$scratch/worker$1/link"
    mkdir -p "$scratch/worker$1/link"
    ninja -C "$tree/build" -t commands -s kith >"$scratch/worker$1/link/kith_program"
    cut -d ' ' -f 2 "$out/tests.txt" | while read -r name; do
        name=$(holder_of "$1" "$name")
        ninja -C "$tree/build" -t commands -s "test/$name" >"$scratch/worker$1/link/$name"
    done
    (cd "$tree/build" && find . -name '*.o' -print0 | tar --null -T - -cf -) |
        { mkdir -p "$scratch/worker$1/objects" && tar -C "$scratch/worker$1/objects" -xf -; }
}

going_on=
if [ -n "$again" ]; then
    awk -F '\t' -v OFS='\t' '$2 == "unnoticed" { print $5, $6, $7, $8, $9 }' "$out/results.tsv" >"$out/order.tsv"
    wanted=$(wc -l <"$out/order.tsv")
else
    find "src/$layer" -name '*.[ch]' | sort | xargs "$scratch/mutants" shuffle "$seed" >"$out/order.new"
    if [ -n "${CONTINUE:-}" ] && cmp -s "$out/order.new" "$out/order.tsv" && [ -s "$out/tests.txt" ]; then going_on=1; fi
    mv "$out/order.new" "$out/order.tsv"
fi
began=$(date +%s)
prepare 1
prepared=$(date +%s)
if [ -z "$going_on" ]; then
    [ ! -e "$out/results.tsv" ] || mv "$out/results.tsv" "$out/results.before.tsv"
    : >"$out/results.tsv"
fi
echo 0 >"$out/next"
pids=()
for worker in $(seq "$jobs"); do
    { [ "$worker" = 1 ] || prepare "$worker"; work "$worker"; } &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
if [ -n "$again" ]; then # the others keep their verdicts
    awk -F '\t' '$2 != "unnoticed"' "$out/results.before.tsv" >"$out/kept.tsv"
    awk -F '\t' -v OFS='\t' 'FNR == NR { if ($2 == "unnoticed") at[$5, $6] = $1; next } { $1 = at[$5, $6]; print }' \
        "$out/results.before.tsv" "$out/results.tsv" | cat - "$out/kept.tsv" >"$out/all.tsv"
    mv "$out/all.tsv" "$out/results.tsv"
    wanted=1000000000
fi
# The line of code of each unnoticed one, to be looked up among those judged equal.
sort -n "$out/results.tsv" | while IFS=$'\t' read -r index verdict seconds by file number line kind change; do
    code='' place=0
    if [ "$verdict" = unnoticed ]; then
        code=$(sed -n "${line}p" "$file" | sed 's/^ *//')
        place=$("$scratch/mutants" list "$file" | awk -F '\t' -v l="$line" -v n="$number" '$3 == l && $2 <= n' | wc -l)
    fi
    printf '%s\t' "$index" "$verdict" "$seconds" "$by" "$file" "$number" "$line" "$kind" "$change" "$place"
    printf '%s\n' "$code"
done | awk -F '\t' -v layer="$layer" -v wanted="$wanted" -v prepared=$((prepared - began)) '
    FILENAME != "-" { if (!/^#/) judged[$1, $2, $3, $4] = $5; next }
    n >= wanted { next }
    { seen[$2]++; seconds += $3; kind[$8, $2]++; kinds[$8] = 1; n += $2 ~ /noticed/ }
    $2 == "unnoticed" {
        why = judged[$5, $10, $8 ": " $9, $11]
        n_equal += why != ""
        list = list sprintf("  %s:%s  %s: %s%s\n", $5, $7, $8, $9, why == "" ? "" : "  (equal: " why ")")
    }
    END {
        if (n == 0) { print "no mutant was counted"; exit 1 }
        if (list != "") printf "\nunnoticed:\n%s\n", list
        for (k in kinds) printf "  %-10s %d of %d noticed\n", k, kind[k, "noticed"], kind[k, "noticed"] + kind[k, "unnoticed"]
        printf "mutants of src/%s: %d noticed of %d, %.1f %%; without %d judged equal (test/mutants-equal.tsv) %.1f %%\n", layer,
            seen["noticed"], n, 100 * seen["noticed"] / n, n_equal, (n > n_equal) ? 100 * seen["noticed"] / (n - n_equal) : 0
        printf "not counted: %d of equal object code, %d that do not compile; %.1f s a mutant, %d s to prepare\n",
            seen["equal"], seen["uncompiled"], seconds / n, prepared
    }' test/mutants-equal.tsv - | tee "$out/score.txt"
