#!/bin/bash
# kith pull beside Python's huggingface_hub, over http and over TLS: each must find what the other fetched (test/tools/hub_both_ways.py): hub.sh [SUITE]
#
# Debian has huggingface_hub since forky (14), which is SUITE's default; the program is that of the tar of make dist, so a system that is
# newer than the tar's is tried as well. It needs root, mmdebstrap and openssl. A finding is a check that fails; the last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
suite=${1:-forky}
# shellcheck source=test/long/chroot.sh
. test/long/chroot.sh
can_chroot || exit 77
command -v openssl >/dev/null || { echo "openssl is not installed" && exit 77; }
doing "the tar"
if [ -z "${KITH_DIST_MADE:-}" ]; then
    make dist >"$work/log" 2>&1 || { tail -n 30 "$work/log" && echo "make dist failed" && exit 1; }
fi
doing "$suite: a system with huggingface_hub"
make_root hub "$suite" --include=python3-huggingface-hub,libcurl4,xz-utils || exit 77
mkdir -p "$work/hub/srv/user/certificates"
tar -xJf "$(find build/dist -name 'kith-[0-9]*-linux-*.tar.xz')" -C "$work/hub/srv/user" || exit 1
(cd "$work/hub/srv/user/certificates" && "$OLDPWD/test/tools/certificates.sh") >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
cp test/tools/hub_both_ways.py "$work/hub/srv/"
chown -R 1000:1000 "$work/hub/srv/user"
# shellcheck disable=SC2016
check='cd "$HOME" && python3 /srv/hub_both_ways.py kith-*/bin/kith'
for way in '' '/srv/user/certificates/good.pem /srv/user/certificates/good.key'; do
    doing "$suite: http${way:+s}"
    as_user hub "export SSL_CERT_FILE=/srv/user/certificates/ca.pem; $check $way" 2>&1 | tee -a "$work/checks"
    [ "${PIPESTATUS[0]}" = 0 ] || { echo "kith and huggingface_hub do not find what the other fetched" && exit 1; }
done
# shellcheck disable=SC2016
echo "kith and $(grep -m 1 -o '^huggingface_hub [0-9.]*' "$work/checks") ($suite, $(in_root hub 'dpkg-query -W -f "\${Package} \${Version}" libcurl4t64'))," \
    "http and https: $(grep -c '^ok ' "$work/checks") checks passed, 0 failed ($SECONDS s)"
