#!/bin/bash
# The tar of make dist where people unpack it: bare Debian 12 and 13 and Ubuntu 22.04 and 24.04, as an ordinary user, in a folder with a
# blank in its name: dist.sh [SUITE…], of bookworm trixie jammy noble
#
# In each: install.sh, then draw a data set, train, index, search and serve, with nothing but xz beside the bare system's packages; kith
# pull over TLS from a hub on loopback, without libcurl and with it under each of its names; a HEIC before and after libheif is there; removal. Also: what each file asks of glibc, licences, the SPDX list. chroot.sh makes the
# systems. It needs root and mmdebstrap. A system that cannot be made is skipped with a line; the last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ $# -gt 0 ] || set -- bookworm trixie jammy noble
version=$(sed -n 's/^#define KITH_VERSION "\(.*\)"$/\1/p' include/kith/version.h)
out=build/dist tar=kith-$version-linux-$(uname -m).tar.xz
# What docs/install.md promises of a tar made on Debian 12.
promised="2.34 3.4.29"
# shellcheck source=test/long/chroot.sh
. test/long/chroot.sh
can_chroot || exit 77
scripts/setup.sh dist || { echo "the packages of make dist are missing" && exit 77; }
fail() {
    [ ! -f "$work/log" ] || tail -n 30 "$work/log"
    echo "$*"
    exit 1
}

doing "the tar"
if [ -z "${KITH_DIST_MADE:-}" ]; then scripts/dist.sh >"$work/log" 2>&1 || fail "make dist failed"; fi
mkdir "$work/un packed"
tar -xJf "$out/$tar" -C "$work/un packed" || fail "$tar cannot be unpacked"
if [ "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" = bookworm ]; then read -ra limits <<<"$promised"; else limits=(); fi
scripts/check-dist.sh "$work/un packed/kith-$version" "${limits[@]}" >"$work/log" 2>&1 || fail "the tar does not keep what is promised"
asks=$(tail -n 1 "$work/log" | awk '{ print "glibc " $1 ", GLIBCXX_" $2 }')
# The list inside has the bytes that are inside.
(cd "$work/un packed/kith-$version" && awk '/^FileName: / { file = substr($0, 11) } /^FileChecksum: SHA256: / { print $3 "  " file }' \
    "share/doc/kith/kith-$version.spdx" | sha256sum -c --quiet) >"$work/log" 2>&1 || fail "the SPDX list is not of these files"

cat >"$work/job.sh" <<'END'
set -eu
kith=$HOME/.local/bin/kith
sh "/srv/from here/install.sh"
cd "$HOME" && mkdir -p "my photos" && cd "my photos"
"$kith" --version
"$kith" synth glyphs --classes 40 --images 10
"$kith" train quickstart --out run --set data.root=glyphs --set input.resize=squash32 --set input.crop=28 --set input.mirror=false \
    --set optim.lr=5e-3 --set optim.steps=100 | tee trained
grep -q 'R@1' trained
"$kith" index glyphs -o glyphs.kith --model run
"$kith" search glyphs.kith glyphs/glyph00030/00003.png -k 3 --html hits.html | tee found
grep -q '1.0000.*glyphs/glyph00030/00003.png' found
# By the model that came with it.
"$kith" search glyphs glyphs/glyph00030/00003.png -k 3 >found 2>&1
grep -q 'kith: model: general (' found
grep -q '1.0000.*glyphs/glyph00030/00003.png' found
# From where it was unpacked, called by a relative path and by a link.
ln -s "$HOME/.local/bin/kith" link && ./link list recipes | grep -q quickstart
END
cat >"$work/serve.sh" <<'END'
cd "$HOME/my photos" && exec "$HOME/.local/bin/kith" serve glyphs.kith --port "$PORT"
END
cat >"$work/end.sh" <<'END'
set -eu
sh "/srv/from here/install.sh" --uninstall
left=$(find "$HOME/.local" ! -type d 2>/dev/null) || true
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
END
# asks PORT PATH: the answer of a server on loopback.
asks_port() {
    exec 9<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$2" "$1" >&9
    timeout 20 cat <&9
    exec 9>&-
}

# The hub, of python3 on this machine, with certificates that nobody else trusts.
hub=
if command -v openssl python3 >/dev/null; then
    mkdir "$work/certificates"
    (cd "$work/certificates" && "$OLDPWD/test/tools/certificates.sh") >"$work/log" 2>&1 || fail "no certificates"
    python3 test/tools/hub_both_ways.py --serve "$work/certificates/good.pem" "$work/certificates/good.key" >"$work/hub" &
    for ((i = 0; i < 100; i++)); do
        hub=$(cat "$work/hub") && [ -n "$hub" ] && break
        sleep 0.1
    done
    [ -n "$hub" ] || fail "the hub on loopback does not start"
fi
# try_pull SUITE: with each build of libcurl that the system's archive has, then without a reason to trust the hub.
try_pull() {
    local pull n=0 package
    cp "$work/certificates/ca.pem" "$work/$1/srv/ca.pem"
    # shellcheck disable=SC2016
    pull='cd "$HOME" && HF_ENDPOINT='$hub' HF_HOME=$(mktemp -d) .local/bin/kith pull kith-test/tiny'
    as_user "$1" "$pull" >"$work/log" 2>&1 && fail "$1: kith pull works without libcurl"
    grep -q 'libcurl cannot be loaded' "$work/log" || fail "$1: no line says what kith pull needs"
    for package in libcurl4 libcurl3-gnutls; do
        in_root "$1" "apt-get update && apt-get -y --no-install-recommends install $package" >"$work/log" 2>&1 || continue
        as_user "$1" "SSL_CERT_FILE=/srv/ca.pem; export SSL_CERT_FILE; $pull" >"$work/log" 2>&1 || fail "$1: kith pull failed with $package"
        as_user "$1" "$pull" >"$work/log" 2>&1 && fail "$1: $package: an unknown authority is trusted"
        grep -q 'certificate' "$work/log" || fail "$1: $package: no line says that the authority is unknown"
        in_root "$1" 'rm /usr/lib/*/libcurl*.so.4*' >"$work/log" 2>&1 || fail "$1: $package cannot be removed"
        n=$((n + 1))
    done
    pulled="pull with $n builds of libcurl"
}

n_done=0 n_skipped=0 said=
for suite in "$@"; do
    began=$SECONDS
    doing "$suite: a bare system"
    why=$(make_root "$suite" "$suite" --include=xz-utils) || { echo "$suite: skipped: $why" && n_skipped=$((n_skipped + 1)) && continue; }
    root=$work/$suite
    mkdir -p "$root/srv/from here" "$root/srv/user"
    cp "$out/$tar" "$out/$tar.sha256" "$out/install.sh" "$work/job.sh" "$work/serve.sh" "$work/end.sh" "$root/srv/from here/"
    cp test/corpus/image/ok_lossy_irot_90.heic test/corpus/image/ok_lossy_alpha.avif "$root/srv/from here/"
    chown 1000:1000 "$root/srv/user"
    doing "$suite: install, train, index, search"
    as_user "$suite" 'sh "/srv/from here/job.sh"' >"$work/log" 2>&1 || fail "$suite: a command failed"
    doing "$suite: serve"
    # The server: a page, and a search by an image, which its locked-in decoders read.
    port=$((20000 + RANDOM % 20000))
    as_user "$suite" "PORT=$port sh '/srv/from here/serve.sh'" >"$work/log" 2>&1 &
    server=$!
    for ((i = 0; i < 100; i++)); do
        grep -q "$port" "$work/log" && break
        sleep 0.2
    done
    asks_port "$port" / >"$work/page" 2>&1
    grep -q '200 OK' "$work/page" || fail "$suite: the page is not served: $(head -n 1 "$work/page")"
    asks_port "$port" /api/v1/items/6/thumb >"$work/page" 2>&1
    grep -qa 'image/jpeg' "$work/page" || fail "$suite: no picture is served: $(head -n 1 "$work/page")"
    kill "$server" && wait "$server" 2>/dev/null
    doing "$suite: kith pull"
    pulled="pull not tried"
    [ -z "$hub" ] || try_pull "$suite"
    doing "$suite: HEIC"
    # HEIC: a line that says what to install, then the image.
    # shellcheck disable=SC2016
    embed='cd "$HOME" && .local/bin/kith embed --backbone convnet4 "/srv/from here/ok_lossy_irot_90.heic" "/srv/from here/ok_lossy_alpha.avif" -o x.npy'
    as_user "$suite" "$embed" >"$work/log" 2>&1 && fail "$suite: a HEIC was read without libheif"
    grep -q 'a HEIC or AVIF image needs libheif 1.15 or newer (Debian, Ubuntu: libheif1)' "$work/log" || fail "$suite: no line says what a HEIC needs"
    heif="libheif not tried"
    if in_root "$suite" 'apt-get update && apt-get -y install libheif1 && { apt-get -y install libheif-plugin-libde265 libheif-plugin-dav1d || true; }' \
        >"$work/log" 2>&1; then
        heif="libheif $(in_root "$suite" "dpkg-query -W -f '\${Version}' libheif1")"
        if in_root "$suite" "dpkg --compare-versions \"\$(dpkg-query -W -f '\${Version}' libheif1)\" ge 1.15"; then
            as_user "$suite" "$embed" >"$work/log" 2>&1 || fail "$suite: a HEIC is not read with $heif"
        else
            as_user "$suite" "$embed" >"$work/log" 2>&1 && fail "$suite: a HEIC is read with $heif"
            grep -q 'needs libheif 1.15 or newer' "$work/log" || fail "$suite: no line says that $heif is too old"
            heif="$heif refused: too old"
        fi
    fi
    doing "$suite: removal"
    as_user "$suite" 'sh "/srv/from here/end.sh"' >"$work/log" 2>&1 || fail "$suite: the removal failed"
    rm -rf --one-file-system "$root"
    n_done=$((n_done + 1))
    said="$said, $suite ($pulled, $heif, $((SECONDS - began)) s)"
    echo "$suite: trained, indexed, searched, served, $pulled, HEIC ($heif), removed"
done
[ $n_done -gt 0 ] || { echo "no system could be made; the tar itself is sound ($asks)" && exit 77; }
echo "$tar ($(stat -c %s "$out/$tar") bytes, $asks): $n_done systems, $n_skipped skipped$said"
