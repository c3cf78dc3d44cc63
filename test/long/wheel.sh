#!/bin/bash
# The wheel of make wheel where people install it: bare Debian 12 and 13 with Debian's python3, numpy and cffi, as an ordinary user:
# wheel.sh [SUITE…], of bookworm trixie
#
# In each (with libcurl, which kith pull takes from the system): pip install --no-index --no-deps into an environment that sees these packages alone, then the package's tests; where Debian's
# torch can be installed, both orders of import. Also: the tag is that of the highest glibc symbol inside, and every library inside has a
# licence. chroot.sh makes the systems. It needs root and mmdebstrap; the last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ $# -gt 0 ] || set -- bookworm trixie
# shellcheck source=test/long/chroot.sh
. test/long/chroot.sh
can_chroot || exit 77
fail() {
    [ ! -f "$work/log" ] || tail -n 40 "$work/log"
    echo "$*"
    exit 1
}
doing "the wheel"
if [ -z "${KITH_DIST_MADE:-}" ]; then make wheel >"$work/log" 2>&1 || fail "make wheel failed"; fi
wheel=$(find build/wheel -name 'kith_metric-*.whl')
[ -f "$wheel" ] || fail "there is no wheel in build/wheel"

# The tag by the files inside, not by what the script that made it thinks.
/usr/bin/python3 -m zipfile -e "$wheel" "$work/inside" || fail "$wheel cannot be unpacked"
find "$work/inside/kith" -type f '(' -name kith -o -name '*.so*' ')' -print0 | xargs -0 scripts/glibc.sh >"$work/versions" || fail "symbols"
tag=manylinux_$(tail -n 1 "$work/versions" | cut -f 1 | tr . _)_$(uname -m)
case $wheel in *"-py3-none-$tag.whl") ;; *) fail "$wheel is not tagged $tag" ;; esac
grep -qx "Tag: py3-none-$tag" "$work"/inside/*.dist-info/WHEEL || fail "the tag inside is not $tag"
[ "$(grep -h '^Requires-Dist' "$work"/inside/*.dist-info/METADATA | sort | tr '\n' ' ')" = "Requires-Dist: cffi Requires-Dist: numpy " ] ||
    fail "it depends on more than numpy and cffi"
chmod +x "$work/inside/kith/bin/kith"
scripts/check-dist.sh "$work/inside/kith" >"$work/log" 2>&1 || fail "the wheel does not keep what is promised"

cmp models/general.safetensors "$work/inside/kith/share/kith/models/general.safetensors" || fail "the model general is not inside"

cat >"$work/job.sh" <<'END'
set -eu
cd "$HOME"
# As scripts/test.sh does: threads that wait must not spin while others want the cores.
export OMP_WAIT_POLICY=passive
python3 -m venv --system-site-packages "an env"
"an env/bin/python3" -m pip install --quiet --no-index --no-deps /srv/wheel/*.whl
"an env/bin/kith" --version
failed=0 passed=0 skipped=0
for test in /srv/source/python/tests/test_*.py; do
    status=0 began=$(date +%s)
    timeout 600 "an env/bin/python3" /srv/source/python/tests/run.py "$test" >log 2>&1 || status=$?
    case $status in
    0) passed=$((passed + $(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' log))) ;;
    77) ;;
    *) cat log; echo "$test: status $status"; failed=$((failed + 1)) ;;
    esac
    n=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' log)
    skipped=$((skipped + ${n:-0}))
    [ $status != 77 ] || grep -q SKIPPED log || skipped=$((skipped + 1))
    echo "   ${test##*/}: status $status after $(($(date +%s) - began)) s"
done
[ $failed = 0 ]
echo "$passed passed, $failed failed, $skipped skipped"
END
cat >"$work/torch.sh" <<'END'
set -eu
cd "$HOME"
for order in "torch, kith" "kith, torch"; do
    "an env/bin/python3" -c "
import numpy as np
import $order
x = torch.randn(64, 16, requires_grad=True)
y = torch.arange(64) % 8
loss = kith.Loss('binomial', miner='vthm')(x, y)
loss.backward()
assert np.isfinite(x.grad.numpy()).all() and float(x.grad.abs().sum()) > 0
print(kith.evaluate(x.detach().numpy(), y.numpy(), k=[1]), (torch.randn(300, 300) @ torch.randn(300, 300)).shape)
model = kith.Model(backbone='convnet4', embedding=16, channels=1, height=28, width=28)
print('$order: fine')"
done
END
n_done=0 n_skipped=0 said=
for suite in "$@"; do
    began=$SECONDS
    doing "$suite: a bare system"
    why=$(make_root "$suite" "$suite") || { echo "$suite: skipped: $why" && n_skipped=$((n_skipped + 1)) && continue; }
    root=$work/$suite
    mkdir -p "$root/srv/wheel" "$root/srv/source" "$root/srv/user"
    cp "$wheel" "$root/srv/wheel/"
    cp "$work/job.sh" "$work/torch.sh" "$root/srv/"
    git ls-files -z | grep -zv "^research/" | xargs -0 tar -cf - | tar -xf - -C "$root/srv/source"
    chown 1000:1000 "$root/srv/user"
    doing "$suite: python3, numpy, cffi"
    in_root "$suite" 'command -v pip3 || { apt-get update && apt-get -y --no-install-recommends install python3-venv python3-pip python3-numpy python3-cffi libcurl4; }' \
        >"$work/log" 2>&1 || { echo "$suite: skipped: Debian's python3 cannot be installed" && n_skipped=$((n_skipped + 1)) && continue; }
    doing "$suite: the package's tests"
    as_user "$suite" 'sh /srv/job.sh' 2>&1 | tee "$work/log"
    [ "${PIPESTATUS[0]}" = 0 ] || fail "$suite: the package's tests failed"
    count=$(tail -n 1 "$work/log")
    torch="no torch"
    doing "$suite: torch"
    if in_root "$suite" 'python3 -c "import torch" || apt-get -y --no-install-recommends install python3-torch' >"$work/log" 2>&1; then
        doing "$suite: kith beside torch"
        as_user "$suite" 'sh /srv/torch.sh' >"$work/log" 2>&1 || fail "$suite: kith beside torch failed"
        torch="torch in either order"
    fi
    rm -rf --one-file-system "$root"
    n_done=$((n_done + 1))
    said="$said, $suite: $count, $torch ($((SECONDS - began)) s)"
    echo "$suite: $count, $torch"
done
[ $n_done -gt 0 ] || { echo "no system could be made; the wheel itself is sound ($tag)" && exit 77; }
echo "$(basename "$wheel") ($(stat -c %s "$wheel") bytes): $n_done systems, $n_skipped skipped$said"
