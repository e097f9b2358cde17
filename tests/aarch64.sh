#!/usr/bin/env bash
# Runs tests of the build for 64-bit Arm, in qemu-user. The scripts of these tests start the files in
# build-aarch64/emulated: programs in the emulator, and the cross compiler as `cc`.
#   aarch64.sh TARGET CTEST_OPTION...
set -euo pipefail
cd "$(dirname "$0")/.."
tests/built.sh aarch64 "$1"
tests/kept.py --into .cache/tests/aarch64 --share repeated build-aarch64 -j "$(nproc)" "${@:2}"
