#!/bin/sh
# Run the tests of a build and count them: test.sh BUILD [REGEX]. The last line is
# "N passed, N failed, N skipped"; the exit status is 0 only when none failed. TIMEOUT is the seconds one may take (600).
set -eu
here=$(dirname "$0")
build=$(cd "$1" && pwd)
# Several test programs share the cores: threads that wait must not spin.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
# OpenBLAS takes the kernels of this processor. Others than those give other last bits, which some tests of exact ties would notice.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

report=$build/tests.xml
rm -f "$report"
status=0
ctest --test-dir "$build" -R "${2:-.}" -j "$(nproc)" --timeout "${TIMEOUT:-600}" --output-on-failure --no-tests=error \
    --output-junit "$report" --test-output-size-passed 1000000 --test-output-size-failed 1000000 || status=1
[ -e "$report" ] || exit 1
awk -f "$here/count-tests.awk" "$report" || status=1
exit "$status"
