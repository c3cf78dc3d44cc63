# The words people type; CMake does the work (CMakePresets.json). Missing Debian packages are
# installed first (scripts/setup.sh).
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
# make test T=recall runs the tests whose names match.
T ?=

.PHONY: all configure setup test demo bench install asan clang cuda format check clean

all: configure
	@cmake --build build --target kith_program kith_shared kith_static

setup:
	@scripts/setup.sh build

# Ninja calls cmake again by itself when a CMake file changed.
configure: setup
	@if [ -n "$(CMAKE_FLAGS)" ] || [ ! -e build/build.ninja ]; then cmake --preset release $(CMAKE_FLAGS); fi

test: configure
	@cmake --build build
	@scripts/test.sh build $(T)

demo: all
	@cmake --build build --target pixels
	@scripts/demo.sh

bench: all
	@scripts/bench.sh

install: all
	@cmake --install build --prefix "$(PREFIX)"
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

# Other builds beside the one in build/: sanitizers, the second compiler, the GPU.
asan: setup
	@cmake --preset asan && cmake --build build/asan
	@scripts/test.sh build/asan $(T)

clang:
	@scripts/setup.sh build check
	@cmake --preset clang && cmake --build build/clang

cuda: setup
	@cmake --preset cuda && cmake --build build/cuda

format:
	@scripts/setup.sh check
	@git ls-files -z '*.c' '*.h' | xargs -0 clang-format -i

check: configure
	@scripts/setup.sh check
	@scripts/check-format.sh
	@scripts/check-layers.sh
	@scripts/check-banned.sh
	@scripts/check-names.sh
	@scripts/check-tidy.sh
	@shellcheck scripts/*.sh .ci/run

clean:
	@rm -rf build
