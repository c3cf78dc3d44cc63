#!/bin/sh
# Run clang-tidy (.clang-tidy) over the library, the program and the CUDA kernels as a build compiles them:
# [BUILD=build] check-tidy.sh [FILE…]
#
# Kernels are read as the emulator (test/emulate) compiles them, as C++: clang-tidy 14 cannot read the headers of a newer
# CUDA. The analyzer is off for them: it would follow the emulator's launches, for four minutes, and what it can find
# the emulator's runs under ASan find too. What calls cuDNN or cuBLAS is read where those are installed.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
[ -e "$build/compile_commands.json" ] || { echo "no $build/ to check: run make first" >&2; exit 1; }

# A file may be compiled in several ways; one is enough, and for the device's files it is the emulator's.
mkdir -p "$build/tidy"
awk '
    /^ *"directory":/ { directory = $0 }
    /^ *"command":/ { command = $0 }
    /^ *"file":/ {
        sub(/,$/, "")
        if (!($0 in chosen) || command ~ /-DKI_EMULATE/) chosen[$0] = "{" directory command $0 "}"
    }
    END {
        for (file in chosen) printf "%s%s\n", n++ ? "," : "[", chosen[file]
        print "]"
    }
' "$build/compile_commands.json" >"$build/tidy/compile_commands.json"

# Of the files that stand on the lines of its input, those that the build compiles, each ended by a NUL.
known() {
    while read -r file; do
        if grep -qF "$file\"" "$build/tidy/compile_commands.json"; then
            printf '%s\0' "$file"
        else
            echo "clang-tidy: $file is not compiled here, and not checked" >&2
        fi
    done
}

tidy() {
    xargs -0 -r -n 4 -P "$(nproc)" clang-tidy --quiet -p "$build/tidy" --extra-arg=-Wno-unknown-warning-option "$@" \
        2>/dev/null
}

if [ "$#" -gt 0 ]; then files=$(printf '%s\n' "$@"); else files=$(git ls-files 'src/*.c' 'src/*.cu'); fi
status=0
printf '%s\n' "$files" | sed '/\.cu$/d; /^$/d' | known | tidy || status=1
printf '%s\n' "$files" | sed -n '/\.cu$/p' | known | tidy '--checks=-clang-analyzer-*' || status=1
exit "$status"
