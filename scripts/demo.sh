#!/bin/sh
# What kith can do, in one run.
set -eu
cd "$(dirname "$0")/.."
build/kith --version
