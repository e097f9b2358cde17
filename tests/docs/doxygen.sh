#!/usr/bin/env bash
# Doxygen reads the installed headers, and a header that ampc emits, without a warning.
#   doxygen.sh AMPC
set -eu
ampc=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$ampc" -o "$work/surrogate.h" examples/surrogate/surrogate.amp
(cat docs/Doxyfile && echo "OUTPUT_DIRECTORY = $work" && echo "INPUT += $work/surrogate.h") >"$work/Doxyfile"
doxygen "$work/Doxyfile"
for name in ampc_loop_run_on surrogate_step; do
  grep -qr "$name" "$work/html" || { echo "no page has $name" && exit 1; }
done
