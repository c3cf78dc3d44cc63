#!/bin/sh
# test_browser: the cases of run.mjs, if their tier is asked for (make test-browser). Otherwise they are counted as skipped,
# without Node: make test installs neither it nor Chromium.
set -eu
cd "$(dirname "$0")"
[ "${KITH_TIER:-}" != browser ] || exec node run.mjs
echo "skipped: make test-browser runs these"
echo "[  SKIPPED ] $(awk -f count.awk ./*.mjs) test(s)"
exit 77
