#!/bin/sh
# Install kith from its tar, for one user and without root:
#
#     sh install.sh [TAR…]         unpack into ~/.local (PREFIX names another folder); an older kith there is replaced
#     sh install.sh --uninstall    remove what was installed, and nothing else
#
# Without TAR, the newest kith-*.tar.xz beside this script is taken. A SHA-256 beside the tar (TAR.sha256) is checked. What was installed
# is listed in PREFIX/share/kith/installed.
set -eu
url='' # TO FILL IN by whoever publishes a release: where the tar lies. Empty: nothing is downloaded.
prefix=${PREFIX:-$HOME/.local} list=share/kith/installed
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "install.sh: $*" >&2; exit 1; }

# Remove the files that a list names, then folders that are empty now.
remove() {
    while IFS= read -r file; do rm -f "$prefix/$file"; done <"$1"
    sed 's|/[^/]*$||' "$1" | sort -u | while IFS= read -r folder; do
        (cd "$prefix" && rmdir -p "$folder" 2>/dev/null) || true
    done
}
if [ "${1:-}" = --uninstall ]; then
    [ -f "$prefix/$list" ] || fail "no kith was installed in $prefix by this script (there is no $prefix/$list)"
    old=$(mktemp) && cp "$prefix/$list" "$old" && remove "$old" && rm -f "$old"
    echo "kith was removed from $prefix"
    exit 0
fi
if [ $# = 0 ]; then
    tar=$(find "$here" -maxdepth 1 -name 'kith-[0-9]*.tar.xz' | sort -V | tail -n 1)
    [ -n "$tar" ] || fail "there is no kith-*.tar.xz beside it: sh install.sh TAR${url:+ (from $url)}"
    set -- "$tar"
fi
{ mkdir -p "$prefix" && work=$(mktemp -d "$prefix/.kith-XXXXXX"); } || fail "$prefix cannot be written; PREFIX names another folder"
trap 'rm -rf "$work"' EXIT
mkdir "$work/new"
for tar in "$@"; do
    [ -f "$tar" ] || fail "there is no file $tar"
    if [ -f "$tar.sha256" ]; then
        [ "$(sha256sum <"$tar" | cut -d ' ' -f 1)" = "$(cut -d ' ' -f 1 "$tar.sha256")" ] || fail "$tar is damaged: its SHA-256 is another"
    fi
    tar -xJf "$tar" -C "$work/new" --strip-components=1 --no-same-owner || fail "$tar cannot be unpacked (it needs tar, xz and room)"
done
said=$("$work/new/bin/kith" --version 2>&1) || fail "kith does not run here: $said"
# All is there and runs: files take their places one by one, and those of an older kith that are not in the new one go.
(cd "$work/new" && find bin lib share include ! -type d && echo "$list") | sort >"$work/list"
if [ -f "$prefix/$list" ]; then sort "$prefix/$list" | comm -23 - "$work/list" >"$work/gone"; else : >"$work/gone"; fi
cp "$work/list" "$work/new/$list"
while IFS= read -r file; do
    { mkdir -p "$prefix/$(dirname "$file")" && mv -f "$work/new/$file" "$prefix/$file"; } || fail "$prefix/$file cannot be written"
done <"$work/list"
remove "$work/gone"
echo "$said is in $prefix: $(wc -l <"$work/list") files, listed in $prefix/$list"
case :$PATH: in *":$prefix/bin:"*) ;; *) echo "add it to your path: export PATH=\"$prefix/bin:\$PATH\"" ;; esac
