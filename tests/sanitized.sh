#!/usr/bin/env bash
# Builds targets in build-asan: programs with sanitizers, and the fuzzers. Several tests may call it at the same time.
#   sanitized.sh TARGET...
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build-asan
exec 9>build-asan/.lock
flock 9
cmake --preset asan -G Ninja --log-level=WARNING >/dev/null
cmake --build build-asan --target "$@"
