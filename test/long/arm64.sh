#!/bin/bash
# kith for 64-bit ARM, built on this machine by Debian's cross compiler (cmake/arm64.cmake) and run under qemu-user:
# arm64.sh [SUITE [REGEX]]   SUITE: bookworm, trixie … (the one of this machine); REGEX: the tests (readers of files, nearest neighbours,
# search, networks' golden values; a training step of every backbone takes qemu more than half an hour and is left out); then the demo.
#
# qemu is told to the kernel in a user namespace of its own (binfmt_misc; Linux 6.7 and newer), so the machine does not change. Where
# that is not possible, the machine must know qemu-aarch64 already. KITH_SHARED names a folder with weights, for GoogLeNet's
# golden values. A finding is a build, a test or a command of the demo that fails, or a demo whose network learns
# nothing. What is built is the last commit. The last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
# shellcheck source=test/long/chroot.sh
. test/long/chroot.sh
# shellcheck source=/dev/null
suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")}
tests=${2:-'^test_(npy|npy_rows|tensors|gather|convert|corpus|inflate|json|mat|yaml|knn|kmeans|pca|whiten|index|index_coded|index_corpus|index_damage|index_calibrate|index_moves|index_shared|coder|codes|duplicates|filter|items|notes|roots|scan|scan_kernel|search_rerank|adding_a_store|googlenet_golden|backbones|weights|import|recognise|op_golden|retrieval|verification|synth|image|transform)$'}
can_chroot || exit 77
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || { echo "it is a test of building on amd64 for arm64" && exit 77; }
began=$SECONDS

tools=crossbuild-essential-arm64,cmake,ninja-build,pkg-config,git,qemu-user-static
libraries=$(awk '$1 == "build" && $2 ~ /^lib.*-dev$/ && $2 != "libc6-dev" { printf ",%s:arm64", $2 }' cmake/packages.txt)
make_root cross "$suite" --architectures=amd64,arm64 --include="$tools$libraries" || exit 77
git clone -q "$here" "$work/cross/srv/kith" || exit 1

# In a namespace in which the kernel hands programs for ARM to qemu.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
in_arm() { # COMMAND
    # shellcheck disable=SC2016
    unshare --user --map-root-user --mount --pid --fork --kill-child sh -ec '
        mount -t proc proc "$1/proc" && mkdir -p "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm"
        if mount -t binfmt_misc none "$1/proc/sys/fs/binfmt_misc" 2>/dev/null; then
            printf %s ":qemu-aarch64:M::$3:$4:/usr/bin/qemu-aarch64-static:" >"$1/proc/sys/fs/binfmt_misc/register"
        fi
        exec env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin KITH_SHARED="$5" chroot "$1" sh -ec "$2"' \
        sh "$work/cross" "cd /srv/kith && $1" "$magic" "$mask" "${shared:-}" </dev/null &
    child=$!
    local status=0
    wait "$child" || status=$?
    child=
    return "$status"
}
shared=
if [ -d "${KITH_SHARED:-}/weights" ]; then
    mkdir -p "$work/cross/srv/shared"
    cp -r "$KITH_SHARED/weights" "$work/cross/srv/shared/" && shared=/srv/shared
fi

# Named build, so that the scripts find it where they look.
printf '%s' "$tests" >"$work/cross/srv/tests"
# shellcheck disable=SC2016
in_root cross 'cd /srv/kith && cmake --preset arm64 -B build && scripts/build-tests.sh build "$(cat /srv/tests)" &&
    cmake --build build --target kith_product pixels' || { echo "the build for ARM failed"; exit 1; }
built=$((SECONDS - began))
in_arm 'build/kith --version' || { echo "the kernel does not run programs for ARM: no binfmt_misc in user namespaces, and qemu-aarch64 is not known" && exit 77; }
at=$SECONDS
# shellcheck disable=SC2016
in_arm 'TIMEOUT=1800 scripts/test.sh build "$(cat /srv/tests)"' >"$work/log" 2>&1 || { cat "$work/log"; echo "tests failed under qemu"; exit 1; }
cat "$work/log"
counted=$(tail -n 1 "$work/log")
tested=$((SECONDS - at))
at=$SECONDS
# A twentieth of its classes, a tenth of its steps and a network an eighth as wide, on smaller images: qemu takes ten to a hundred times
# as long as a processor.
in_arm 'KITH_DEMO_CLASSES=36 KITH_DEMO_FEW=4 scripts/demo.sh build/demo --set data.train_classes=24 --set input.resize=squash32 \
    --set input.crop=28 --set model.settings.features=16 --set batch.classes=8 --set optim.steps=40 --set eval.every=40 \
    --set eval.seen=false' 2>&1 | tee "$work/log"
[ "${PIPESTATUS[0]}" = 0 ] || { echo "the demo failed"; exit 1; }
# On x86-64 the R@1 of this job is 14.2 % untrained and 34.6 % trained.
awk '/untrained network/ { before = $3 } /^ *trained network/ { after = $3 } END { exit !(after > before + 5 && before > 0) }' "$work/log" ||
    { echo "the demo's network has learnt nothing"; exit 1; }
grep -Eq '^ *1 +1\.0000 .*glyph00035/00007\.png$' "$work/log" || { echo "the query of the demo is not its own first hit"; exit 1; }
echo "arm64 under qemu ($suite): built in $built s; $counted ($tested s); demo, $(sed -n 's/^ *trained network *//p' "$work/log") ($((SECONDS - at)) s)"
