#!/usr/bin/env bash
# Builds targets of a preset in build-PRESET, for tests of another build. Several tests may call it at the same time.
#   built.sh PRESET TARGET...
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "build-$1"
exec 9>"build-$1/.lock"
flock 9
cmake --preset "$1" -G Ninja --log-level=WARNING >/dev/null
cmake --build "build-$1" --target "${@:2}"
