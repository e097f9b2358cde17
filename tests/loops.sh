#!/usr/bin/env bash
# The loops with which compiler/cost/cpu.c measures multiply-adds keep their sums in registers: with vectors that are wider
# than a processor's, or with too many sums, gcc keeps them in memory, and the measured rate is a tenth of the real one.
#   loops.sh AMPC
set -euo pipefail
text=$(objdump -d --no-show-raw-insn "$1")
for loop in any_machine for_v3 for_v4; do
  code=$(awk "/<multiply_$loop>:/, /ret/" <<<"$text")
  [ "$(grep -cE 'v?f?mul|vfmadd|fmla' <<<"$code")" -ge 12 ] || { echo "loops.sh: multiply_$loop has no products" >&2 && exit 1; }
  ! grep -E '%[er]sp|%[er]bp|\[sp' <<<"$code" || { echo "loops.sh: multiply_$loop uses the stack" >&2 && exit 1; }
done
