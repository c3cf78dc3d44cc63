# The words people type; CMake does the work (CMakePresets.json). Missing Debian packages are installed first
# (scripts/setup.sh), but never by make alone, make install and make bench: these print the line to run.
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
# make deb DEB_FLAGS=--cuda: options of scripts/deb.sh.
DEB_FLAGS ?=
# make test T=recall builds and runs the tests whose names match.
T ?=

# make test-long P=fuzz runs one part of the long tests (scripts/test-long.sh lists them).
P ?=

# Ninja uses all cores by itself, and the steps here depend on their order.
.NOTPARALLEL:
.PHONY: all ready configure setup test test-browser test-onnx test-long test-device coverage demo bench docs install install-python dist wheel deb release setup-python asan tsan clang cuda format check clean

# The program, the libraries, and the plugins whose libraries are there: CUDA's as well, which takes nvcc minutes.
all: ready
	@cmake --build build --target kith_product

# Ninja calls cmake again by itself when a CMake file changed.
configure_build = if [ -n "$(CMAKE_FLAGS)" ] || [ ! -e build/build.ninja ]; then cmake --preset release $(CMAKE_FLAGS); fi

ready:
	@scripts/setup.sh --check build
	@cmake -P cmake/moved.cmake
	@$(configure_build)

# Packages, and builds that were made before the tree was moved.
setup:
	@scripts/setup.sh build
	@cmake -P cmake/moved.cmake

configure: setup
	@$(configure_build)

test: configure
	@scripts/build-tests.sh build '$(T)'
	@scripts/test.sh build '$(T)'

# Tiers that need what make test does not install: Chromium and Node.js; ONNX Runtime.
test-browser: configure
	@scripts/setup.sh browser
	@scripts/build-tests.sh build '^test_browser$$'
	@KITH_TIER=browser scripts/test.sh build '^test_browser$$'

test-onnx: configure
	@scripts/setup.sh onnx
	@scripts/build-tests.sh build '^test_onnx(_ops)?$$'
	@KITH_TIER=onnx scripts/test.sh build '^test_onnx(_ops)?$$'

# The other tiers (docs/testing.md): an hour of it, and what only a machine with a GPU can show.
test-long: configure
	@scripts/setup.sh check
	@cmake --build build
	@scripts/test-long.sh $(P)

test-device:
	@scripts/test-device.sh

# Which lines and branches the tests run, by layer; pages in build/coverage/html.
coverage: setup
	@scripts/setup.sh coverage python ranks postgres
	@cmake --preset coverage && scripts/build-tests.sh build/coverage '$(T)'
	@scripts/coverage.sh build/coverage '$(T)'

# Only what the demo runs is built.
demo: configure
	@cmake --build build --target kith_program pixels
	@scripts/demo.sh

bench: all
	@scripts/bench.sh

# The reference, from the headers, with the manual's pages: build/docs/html/index.html.
docs:
	@scripts/setup.sh docs
	@scripts/docs.sh build/docs

install: all
	@cmake --install build --prefix "$(PREFIX)"
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

# The same, and the package of Python, which finds what was installed by itself.
install-python: setup-python install
	@cmake --install build --prefix "$(PREFIX)" --component python

# A tar that runs from any folder, as any user, with licences and the list of what is inside: build/dist/kith-*.tar.xz. make dist WITH=cuda
# adds the CUDA plugin as a file of its own.
dist: setup
	@scripts/setup.sh dist postgres ranks
	@WITH='$(WITH)' scripts/dist.sh

# The package as one file for pip, with the library, the program and all that they need: build/wheel/*.whl.
wheel: setup
	@scripts/setup.sh dist python
	@scripts/wheel.sh

# Debian packages: build/deb/*.deb (docs/install.md).
deb:
	@scripts/setup.sh build ranks postgres deb
	@scripts/deb.sh $(DEB_FLAGS)

# All files of a release, of the commit of its tag, once what only the publisher knows is filled in.
release:
	@scripts/release.sh

# A build that was configured before the packages came looks for them again.
setup-python: setup
	@scripts/setup.sh python
	@mkdir -p build && cmake --preset release $(CMAKE_FLAGS) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build build --target kith_python

# Other builds beside the one in build/: sanitizers, the second compiler, the GPU.
asan: setup
	@cmake --preset asan && scripts/build-tests.sh build/asan '$(T)'
	@scripts/test.sh build/asan '$(T)'

# LLVM's OpenMP tells the sanitizer what its barriers order (Archer); gcc's does not, and every loop looks like a
# race. oneDNN and OpenBLAS are not instrumented: their calls into libc are passed over.
tsan: setup
	@scripts/setup.sh check
	@cmake --preset tsan && scripts/build-tests.sh build/tsan '$(T)'
	@TSAN_OPTIONS=ignore_noninstrumented_modules=1 TIMEOUT=1800 scripts/test.sh build/tsan '$(T)'

clang: setup
	@scripts/setup.sh check
	@cmake --preset clang && cmake --build build/clang

cuda: setup
	@cmake --preset cuda && cmake --build build/cuda

format:
	@scripts/setup.sh check
	@git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' | xargs -0 clang-format -i

check: configure
	@scripts/setup.sh check
	@scripts/check-format.sh
	@scripts/check-layers.sh
	@cmake --build build --target kith_product
	@scripts/check-symbols.sh
	@scripts/check-abi.sh
	@scripts/check-banned.sh
	@scripts/check-names.sh
	@scripts/check-definitions.sh
	@scripts/check-openings.sh
	@scripts/check-commits.sh
	@scripts/check-links.sh
	@scripts/check-tidy.sh
	@scripts/check-shell.sh

clean:
	@rm -rf build
