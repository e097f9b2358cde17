#!/usr/bin/env bash
# Runs the tests labelled asan in a build with the sanitizers for addresses and undefined behaviour.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/built.sh asan sanitized
# oneDNN keeps its buffers, and loaded libraries stay loaded. Neither is a leak of ampc.
export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0
# A report gives an exit status that no test expects. (A mistake in a job gives 1.)
# LeakSanitizer must not track thread-local variables: on some machines it crashes on those of unloaded kernels.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99:intercept_tls_get_addr=0 UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}exitcode=99
tests/kept.py --into .cache/tests/asan --share repeated build-asan -L asan -j "$(nproc)"
