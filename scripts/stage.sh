#!/bin/sh
# Build kith to be passed on, and lay it out with the libraries it needs: stage.sh OUT [CMAKE_FLAG…]
#
# OUT is a prefix that may be moved: bin/kith, lib/libkith.so, lib/kith (plugins), lib/kith/bundled (libraries, as Debian built them),
# share (recipes, completions, man page, licences), include. Left to the system are glibc, libstdc++ and libgcc_s (docs/adr/0130).
# The same commit on the same system gives the same bytes, whatever the folder. The build is in build/stage and is kept.
set -eu
cd "$(dirname "$0")/.."
fail() { echo "stage.sh: $*" >&2; exit 1; }
[ $# -gt 0 ] || fail "no folder: stage.sh OUT [CMAKE_FLAG…]"
for tool in cmake ldd strip dpkg-query; do
    command -v "$tool" >/dev/null || fail "$tool is missing: libraries are taken from a Debian system"
done
out=$1 build=build/stage
shift
mkdir -p "$(dirname "$out")"
# shellcheck source=scripts/epoch.sh
. scripts/epoch.sh

cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib -DKITH_RELOCATABLE=ON -DKITH_TESTS=OFF \
    -DKITH_LINKER=OFF -DKITH_CUDA=OFF "$@" >"$out.log" 2>&1 || { tail -n 20 "$out.log"; fail "cmake failed: $out.log"; }
cmake --build "$build" --target kith_product >>"$out.log" 2>&1 || { tail -n 20 "$out.log"; fail "the build failed: $out.log"; }
rm -rf "$out"
cmake --install "$build" --prefix "$out" --strip >>"$out.log" 2>&1 || { tail -n 20 "$out.log"; fail "the installation failed: $out.log"; }
# What a static link needs beside libkith.a is not here.
rm -rf "$out/lib/libkith.a" "$out/lib/cmake"
sed -i '/^Libs.private:/d' "$out/lib/pkgconfig/kith.pc"

# ---- libraries ----
doc=$out/share/doc/kith
mkdir -p "$out/lib/kith/bundled" "$doc/licences"
set -- "$out/bin/kith" "$(readlink -f "$out/lib/libkith.so")"
for plugin in "$out"/lib/kith/libkith-*.so; do
    [ -e "$plugin" ] || continue
    name=${plugin##*/libkith-}
    case $(awk -F '\t' -v name="${name%.so}" '$1 == name { print $2 }' scripts/plugins.tsv) in
    system | apart) ;;
    packed) set -- "$@" "$plugin" ;;
    *) fail "${plugin##*/} has no row in scripts/plugins.tsv" ;;
    esac
done
# A library's file is found under the name that the loader used, or where it really is, or below /usr.
package_of() {
    for path in "$1" "$(readlink -f "$1")" "$(readlink -f "$1" | sed 's|^/usr||')"; do
        dpkg-query -S "$path" 2>/dev/null | cut -d : -f 1 | head -n 1 | grep . && return
    done
    fail "$1 belongs to no package, so its licence is not known"
}
ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $1 "\t" $3 } $2 == "=>" && $3 == "not" { print $1 "\tmissing" }' | sort -u |
    grep -vE '^(libc|libm|libdl|libpthread|librt|libresolv|libutil|libanl|libmvec|ld-linux[-a-z0-9]*|libstdc\+\+|libgcc_s)\.so' >"$out.libraries"
: >"$doc/licences/libraries.tsv"
while IFS='	' read -r name path; do
    [ "$path" != missing ] || fail "$name is not found"
    case $name in libkith*) continue ;; esac
    package=$(package_of "$path")
    cp -L "$path" "$out/lib/kith/bundled/$name"
    chmod 644 "$out/lib/kith/bundled/$name"
    cp -L "/usr/share/doc/$package/copyright" "$doc/licences/$package.txt" || fail "$package has no copyright file"
    printf '%s\t%s\t%s\n' "$name" "$package" "$(dpkg-query -W -f '${Version}\n' "$package" | head -n 1)" >>"$doc/licences/libraries.tsv"
done <"$out.libraries"
# The texts that these files name.
grep -hoE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$doc"/licences/*.txt | sort -u | while read -r text; do
    if [ -f "$text" ]; then cp -L "$text" "$doc/licences/common-${text##*/}.txt"; fi
done
cp LICENSE "$doc/LICENSE"
find "$out" -type f -name '*.txt' -exec chmod 644 {} +
rm -f "$out.libraries"
find "$out" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
