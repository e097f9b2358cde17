#!/bin/bash
# scan.sh AMPC AMP: a loop at run time trains as the same one unrolled does, in f32 and in 16 bits; -O0, -O2, with poison and as an
# emitted program it writes the same checkpoint; and what is compiled does not grow with its length.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
job=$(cd "$(dirname "$0")" && pwd)/scan.amp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$job" scan.amp

losses() { "$amp" train --json --device cpu --log 1 "$@" scan.amp 2>/dev/null | grep -o '"loss": *[0-9.e-]*' | grep -o '[0-9.e-]*$'; }

for precision in f32 f16 bf16; do
  losses --set precision=$precision >loop
  losses --set precision=$precision -D UNROLLED=true >unrolled
  [ "$(wc -l <loop)" -ge 16 ]
  paste loop unrolled | awk -v worst=0 -v what=$precision -v bound="$([ $precision = f32 ] && echo 1e-5 || echo 2e-3)" '
    { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d }
    END { print what ": losses of " NR " steps, off by " worst " at most"; exit worst > bound }'
  "$amp" train --set precision=$precision --device cpu -O0 --save o0 scan.amp >/dev/null 2>&1
  "$amp" train --set precision=$precision --device cpu -O2 --save o2 scan.amp >/dev/null 2>&1
  "$ampc" --set precision=$precision --target=cpu --poison -o poison.c scan.amp
  eval "$("$ampc" --set precision=$precision --target=cpu --build-line -o poison.c scan.amp | tail -n 1)"
  ./poison --save poisoned >/dev/null 2>&1
  cmp o0 o2
  cmp poisoned o2
done

# Kernels of what stands behind the loop may differ: they are chosen by sizes.
lines() { "$ampc" --emit=c --target=cpu -D STEPS="$1" -o - scan.amp | wc -l; }
short=$(lines 10) long=$(lines 1000)
[ "$long" -le $((short * 11 / 10)) ] || { echo "1000 steps are $long lines, 10 are $short"; exit 1; }
echo "1000 steps: $long lines, 10 steps: $short"
