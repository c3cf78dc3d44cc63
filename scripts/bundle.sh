#!/bin/sh
# Pack what a machine with a GPU needs to run kith without building it there.
#
#     scripts/bundle.sh [BUILD] [OUT]          (build/cuda, bundle)
#
# OUT/kith.tar.xz holds bin/ (kith, the cuda tests and whatever else is named in EXTRA), lib/ (every shared
# library they need but the C library's own and CUDA's) and run.sh. On the other machine:
#
#     sh bundle/unpack.sh /tmp/kith && /tmp/kith/run.sh kith list devices
#
# run.sh puts lib/ before the system's libraries and looks for cuDNN and cuBLAS where CUDA and PyTorch keep
# them. Build with `cmake --preset cuda && cmake --build build/cuda` first.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/cuda} out=${2:-bundle}
[ -x "$build/kith" ] || { echo "no $build/kith: build it first (cmake --preset cuda)" >&2; exit 1; }
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/bin" "$stage/lib" "$out"
cp "$build/kith" "$stage/bin"
plugin=$(find "$build" -path '*/kith/libkith-cuda.so' | head -1)
[ -n "$plugin" ] || { echo "no libkith-cuda.so in $build: build it first (cmake --preset cuda)" >&2; exit 1; }
mkdir "$stage/lib/kith"
cp "$plugin" "$stage/lib/kith"
# Tests are names of the programs tests_*: links stay links.
for test in "$build"/test/tests_*_cuda "$build"/test/test_*_cuda "$build"/cuda_* "$build"/bench/cuda_* ${EXTRA:-}; do
    if [ -f "$test" ] && [ -x "$test" ]; then cp -P "$test" "$stage/bin"; fi
done
find "$stage/bin" -type f -exec strip {} + 2>/dev/null || :

# The loader and the C library must be the other machine's; CUDA's libraries are there and are large.
skip='/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libutil|libnsl|libanl|libmvec)[-.]|libcuda|libcudart|libcublas|libcudnn|libnv'
for program in "$stage"/bin/* "$stage"/lib/kith/*; do
    LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64" ldd "$program" || :
done | awk '/=> \// { print $3 }' | sort -u | grep -Ev "$skip" | while read -r library; do
    cp -L "$library" "$stage/lib"
done
strip --strip-unneeded "$stage"/lib/*.so* "$stage"/lib/kith/* 2>/dev/null || :

cat >"$stage/run.sh" <<'RUN'
#!/bin/sh
# run.sh [--with "TOOL OPTIONS"] PROGRAM [ARGUMENTS]: a program of bin/ with the libraries it was packed with.
here=$(cd "$(dirname "$0")" && pwd)
cuda=
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/targets/x86_64-linux/lib \
    /usr/lib/x86_64-linux-gnu; do
    if ls "$folder"/libcudnn.so* >/dev/null 2>&1 || ls "$folder"/libcublasLt.so* >/dev/null 2>&1; then
        cuda=$cuda:$folder
    fi
done
# PyTorch's wheels bring their own: used where the system has none.
for folder in $(python3 -c '
import glob, site, sys
for root in site.getsitepackages():
    print("\n".join(sorted(glob.glob(root + "/nvidia/*/lib"))))' 2>/dev/null); do
    cuda=$cuda:$folder
done
LD_LIBRARY_PATH=$here/lib$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
tool=
if [ "$1" = --with ]; then
    tool=$2
    shift 2
fi
program=$1
shift
KITH_PROGRAM=$here/bin/kith
export KITH_PROGRAM
exec $tool "$here/bin/$program" "$@"
RUN
chmod +x "$stage/run.sh"
# Tests read their cases from where the source was when they were built.
sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt" >"$stage/source.txt"
tar -C "$stage" -cf - . | xz -3 --lzma2=preset=3,dict=64MiB >"$out/kith.tar.xz"
cat >"$out/unpack.sh" <<'UNPACK'
#!/bin/sh
# unpack.sh FOLDER: put the bundle there.
set -eu
mkdir -p "$1"
xz -dc "$(dirname "$0")/kith.tar.xz" | tar -C "$1" -xf -
UNPACK
ls "$stage/bin" "$stage/lib" >"$out/contents.txt"
size=$(wc -c <"$out/kith.tar.xz")
echo "$out/kith.tar.xz: $size bytes, $(find "$stage/bin" -type f | wc -l) programs, $(find "$stage/lib" -type f | wc -l) libraries"
