#!/bin/sh
# Build what the tests need whose names match, or, without REGEX, all tests: build-tests.sh BUILD [REGEX]. Every test has a
# target of its own name (test/CMakeLists.txt). The CUDA plugin is built only if it was asked for (KITH_CUDA=ON).
set -eu
build=$1
if [ -z "${2:-}" ]; then exec cmake --build "$build" --target kith_test_needs test/all examples/all python/all; fi
# First what CMake wrote: a test may be new.
cmake --build "$build" --target build.ninja >"$build/configure.log" || { cat "$build/configure.log"; exit 1; }
names=$(ctest --test-dir "$build" -N -R "$2" | sed -n 's/^ *Test *#[0-9]*: //p')
[ -n "$names" ] || { echo "no test matches '$2': ctest --test-dir $build -N lists them" >&2; exit 1; }
# shellcheck disable=SC2086
cmake --build "$build" --target $names
