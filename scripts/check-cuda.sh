#!/bin/sh
# What can only be seen on a device: tests, the loss curve beside the CPU's, equal bits, memory errors and races.
#
#     scripts/check-cuda.sh [OUT] [WHAT…]     WHAT: tests curve bits sanitizer (all of them)
#
# Programs are those of build/cuda, or of a bundle (scripts/bundle.sh) when RUN names its run.sh. CUB names a
# CUB-200-2011 folder and WEIGHTS a GoogLeNet file for the curve; without them it is drawn on glyphs. Whole logs
# go to OUT (default: a new folder in /tmp); a line per check to the terminal. Exit status 1 when one failed.
# Checks are called by the words of WHAT (SC2317), options are lists of words (SC2086).
# shellcheck disable=SC2317,SC2086,SC2181
set -u
cd "$(dirname "$0")/.." || exit 1
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] && shift
what=${*:-tests curve bits sanitizer}
mkdir -p "$out"
failed=0
# Tests of a bundle look for their cases where they were built: show them this checkout there.
if [ -n "${RUN:-}" ]; then
    source=$(cat "$(dirname "$RUN")/source.txt")
    if [ ! -e "$source" ]; then mkdir -p "$(dirname "$source")" && ln -s "$PWD" "$source"; fi
fi

path_of() { # PROGRAM: where it lies
    if [ -n "${RUN:-}" ]; then echo "$(dirname "$RUN")/bin/$1"; elif [ "$1" = kith ] || [ "$1" = cuda_race ]; then echo "build/cuda/$1"; else echo "build/cuda/test/$1"; fi
}
program() { # PROGRAM ARGUMENTS
    name=$1
    shift
    if [ -n "${RUN:-}" ]; then "$RUN" "$name" "$@"; else "$(path_of "$name")" "$@"; fi
}
say() { # OK|FAILED TEXT
    printf '%-7s %s\n' "$1" "$2" | tee -a "$out/summary.txt"
    if [ "$1" = FAILED ]; then failed=1; fi
}
all_tests() {
    for test in "$(dirname "$(path_of test_learner_cuda)")"/test_*_cuda; do
        if [ -x "$test" ]; then basename "$test"; fi
    done
}

tests() {
    for test in $(all_tests); do
        began=$(date +%s)
        program_with_limit "$test" >"$out/$test.log" 2>&1
        status=$?
        took=$(($(date +%s) - began))
        case $status in
        0) say OK "$test (${took} s)" ;;
        77) say SKIPPED "$test" ;;
        *) say FAILED "$test: status $status (${took} s): $(grep -m1 -E 'error|ERROR|wanted' "$out/$test.log" | cut -c1-160)" ;;
        esac
    done
}
program_with_limit() {
    if [ -n "${RUN:-}" ]; then timeout --foreground "${TEST_SECONDS:-120}" "$RUN" "$1"; else timeout --foreground "${TEST_SECONDS:-120}" "$(path_of "$1")"; fi
}

# Totals of a run's log: step, value.
totals() {
    sed -n 's/.*"kind": *"step".*"step": *\([0-9]*\).*"total": *\([-+0-9.eE]*\).*/\1 \2/p' "$1/log.jsonl"
}

# A recipe for runs to compare: real images and weights where they are, else glyphs. No miner: one that takes or leaves
# a pair by a comparison makes a step of a rounding error, and two float32 runs with RAW + VTHM are 1e-4 apart after
# 50 steps and 2e-2 after 190, where binomial stays within 4e-4.
write_recipe() { # FILE
    if [ -n "${CUB:-}" ] && [ -n "${WEIGHTS:-}" ]; then
        cat >"$1" <<RECIPE
data:  {dataset: cub, root: $CUB}
input: {resize: squash256, crop: 227, mirror: true}
model: {backbone: googlenet, weights: $WEIGHTS, embedding: 512}
batch: {classes: 8, images: 4}
objective: {loss: {name: binomial}}
optim: {name: adam, lr: 1e-5, multipliers: {embedding: 10}, steps: 200}
eval:  {every: 0, seen: false, untrained: false}
log_every: 1
RECIPE
    else
        [ -d "$out/glyphs" ] || program kith synth "$out/glyphs" --classes 60 --images 10 --size 64 >/dev/null
        cat >"$1" <<RECIPE
data:  {root: $out/glyphs}
input: {resize: squash64, crop: 56, channels: 1}
model: {backbone: convnet4, embedding: 64}
batch: {classes: 16, images: 4}
objective: {loss: {name: binomial}}
optim: {name: adam, lr: 1e-4, steps: 200}
eval:  {every: 0, seen: false, untrained: false}
log_every: 1
RECIPE
    fi
}

curve() {
    write_recipe "$out/curve.yaml"
    for device in cpu cuda; do
        rm -rf "$out/curve-$device"
        if ! program kith train "$out/curve.yaml" --out "$out/curve-$device" --device "$device" --no-report \
            >"$out/curve-$device.log" 2>&1; then
            say FAILED "200 steps on $device: $(tail -1 "$out/curve-$device.log" | cut -c1-200)"
            return
        fi
        totals "$out/curve-$device" >"$out/curve-$device.txt"
    done
    join "$out/curve-cpu.txt" "$out/curve-cuda.txt" | awk '
        { d = $3 - $2; if (d < 0) d = -d; r = d / ($2 > 0 ? $2 : -$2 + 1e-12); if (r > worst) { worst = r; at = $1 } n++ }
        END { printf "%d steps, float32: largest relative distance from the CPU %.2e at step %d; wanted 1e-3\n", n, worst, at
              exit !(n >= 200 && worst <= 1e-3) }' >"$out/curve.txt"
    if [ $? -eq 0 ]; then say OK "loss curve: $(cat "$out/curve.txt")"; else say FAILED "loss curve: $(cat "$out/curve.txt")"; fi
}

bits() {
    write_recipe "$out/bits.yaml"
    for precision in float32 bf16; do
        for round in 1 2; do
            run=$out/bits-$precision-$round
            rm -rf "$run"
            program kith train "$out/bits.yaml" --out "$run" --device cuda --precision $precision --no-report \
                --set deterministic=true --set optim.steps=60 >"$run.log" 2>&1 || {
                say FAILED "60 steps, $precision, deterministic: $(tail -1 "$run.log" | cut -c1-200)"
                continue 2
            }
            totals "$run" >"$run.txt"
        done
        a=$out/bits-$precision-1 b=$out/bits-$precision-2
        if cmp -s "$a.txt" "$b.txt" && cmp -s "$a/model.safetensors" "$b/model.safetensors"; then
            say OK "two runs of 60 steps, $precision, deterministic: the same losses and the same model"
        else
            say FAILED "two runs of 60 steps, $precision, deterministic, differ"
        fi
    done
}

own=" --kernel-name kns=_cu_"
sanitizer() {
    command -v compute-sanitizer >/dev/null || {
        say SKIPPED "compute-sanitizer is not here"
        return
    }
    for tool in ${TOOLS:-memcheck racecheck}; do
        options=
        if [ "$tool" = memcheck ]; then options=" --report-api-errors no"; fi # tests ask for more memory than there is
        if [ "$tool" = racecheck ]; then # one that is there must be found, by name too
            export KITH_FEW_CASES=4
            sanitize racecheck "$own" cuda_race >"$out/racecheck-cuda_race.log" 2>&1
            status=$?
            if [ $status -ne 9 ]; then
                say FAILED "racecheck does not find the race of cuda_race: status $status; wanted 9"
                continue
            fi
        fi
        for test in ${SANITIZED:-test_learner_cuda test_images_cuda test_contract_cuda}; do
            [ -x "$(path_of "$test")" ] || continue
            log=$out/$tool-$test.log
            # The libraries' convolutions would take most of the time: there, kernels whose names have a file of
            # ours in them.
            only=
            if [ "$tool $test" = "racecheck test_learner_cuda" ]; then only=$own; fi
            sanitize "$tool" "$options$only" "$test" >"$log" 2>&1
            status=$?
            case $status in
            0) say OK "$tool $test: $(grep -h 'SUMMARY' "$log" | tail -1 | sed 's/=* *//')" ;;
            124) say FAILED "$tool $test took more than ${SANITIZER_SECONDS:-150} s" ;;
            *) say FAILED "$tool $test: status $status: $(grep -hm1 -E 'Invalid|Race|Error|SUMMARY' "$log" | cut -c1-160)" ;;
            esac
        done
    done
}
sanitize() { # TOOL OPTIONS PROGRAM
    if [ -n "${RUN:-}" ]; then
        timeout --foreground "${SANITIZER_SECONDS:-150}" "$RUN" --with "compute-sanitizer --tool $1$2 --error-exitcode 9" "$3"
    else
        timeout --foreground "${SANITIZER_SECONDS:-150}" compute-sanitizer --tool "$1" $2 --error-exitcode 9 "$(path_of "$3")"
    fi
}

for check in $what; do "$check"; done
exit $failed
