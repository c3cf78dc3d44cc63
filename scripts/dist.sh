#!/bin/sh
# Pack kith to run from any folder, as any user: dist.sh [OUT], by default build/dist
#
# OUT/kith-VERSION-linux-ARCH.tar.xz holds the program, the libraries, plugins, recipes, completions, the man page, headers and licences
# (docs/install.md). Beside it lie its SHA-256, the list of what is inside (kith-VERSION.spdx) and install.sh. WITH=cuda also makes
# kith-cuda-VERSION-linux-ARCH.tar.xz: the plugin, which is unpacked over the first. docs/adr/0130 says what is inside and why.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=scripts/epoch.sh
. scripts/epoch.sh
out=${1:-build/dist}
version=$(sed -n 's/^#define KITH_VERSION "\(.*\)"$/\1/p' include/kith/version.h)
system=linux-$(uname -m)
most_bytes=$((45 * 1000 * 1000))
mkdir -p "$out"
case " ${WITH:-} " in *" cuda "*) set -- -DKITH_CUDA=ON ;; *) set -- -DKITH_CUDA=OFF ;; esac
scripts/stage.sh "$out/stage" "$@"

# pack NAME FOLDER: FOLDER/kith-VERSION as NAME.tar.xz, with its SHA-256 beside it; nothing of the machine in it.
pack() {
    find "$2" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    tar -C "$2" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
        --mode=u=rwX,go=rX -cf - "kith-$version" | xz -T2 --block-size=32MiB --x86 --lzma2=preset=6,dict=32MiB >"$out/$1.tar.xz.new"
    mv "$out/$1.tar.xz.new" "$out/$1.tar.xz"
    (cd "$out" && sha256sum "$1.tar.xz" >"$1.tar.xz.sha256")
    echo "$out/$1.tar.xz: $(stat -c %s "$out/$1.tar.xz") bytes"
}

rm -rf "$out/tar" "$out/apart"
mkdir -p "$out/tar" "$out/apart/kith-$version/lib/kith"
cp -a "$out/stage" "$out/tar/kith-$version"
top=$out/tar/kith-$version
# Plugins that are files of their own.
awk -F '\t' '$2 == "apart" { print $1 }' scripts/plugins.tsv | while read -r name; do
    [ ! -e "$top/lib/kith/libkith-$name.so" ] || mv "$top/lib/kith/libkith-$name.so" "$out/apart/kith-$version/lib/kith/"
done
scripts/check-dist.sh "$top" >"$out/versions.tsv"
read -r glibc glibcxx all <<END
$(tail -n 1 "$out/versions.tsv")
END
[ "$all" = all ]
sed -e "s/@VERSION@/$version/g" -e "s/@GLIBC@/$glibc/g" -e "s/@GLIBCXX@/$glibcxx/g" contrib/README.dist >"$top/README"
cp "$top/README" "$top/share/doc/kith/README"
scripts/spdx.sh "$top" kith "$version" >"$out/kith-$version.spdx"
cp "$out/kith-$version.spdx" "$top/share/doc/kith/"
pack "kith-$version-$system" "$out/tar"
[ "$(stat -c %s "$out/kith-$version-$system.tar.xz")" -le "$most_bytes" ] || {
    echo "dist.sh: the tar has more than $most_bytes bytes" >&2
    exit 1
}
for plugin in "$out/apart/kith-$version"/lib/kith/libkith-*.so; do
    [ -e "$plugin" ] || continue
    name=${plugin##*/libkith-}
    pack "kith-${name%.so}-$version-$system" "$out/apart"
done
cp contrib/install.sh "$out/install.sh"
echo "it needs glibc $glibc and a libstdc++ with GLIBCXX_$glibcxx ($out/versions.tsv has each file)"
