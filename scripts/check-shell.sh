#!/bin/sh
# Fail when shellcheck finds something in a script of ours.
set -eu
cd "$(dirname "$0")/.."
shellcheck scripts/*.sh scripts/hooks/* research/*.sh research/general/*.sh test/long/*.sh test/browser/*.sh contrib/*.sh contrib/debian/cuda-depends \
    contrib/debian/tests/library contrib/debian/tests/program .ci/run
