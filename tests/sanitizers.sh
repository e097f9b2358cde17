#!/usr/bin/env bash
# The tests labelled asan, in a build with the address and undefined behaviour sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset asan -G Ninja --log-level=WARNING >/dev/null
cmake --build build-asan --target sanitized
# oneDNN keeps its buffers and what was loaded stays loaded: neither is a leak of ours.
export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0
# A report ends with a status that no test expects: a mistake in a job ends with 1.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99 UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}exitcode=99
ctest --test-dir build-asan -L asan -j "$(nproc)" --output-on-failure --no-tests=error
