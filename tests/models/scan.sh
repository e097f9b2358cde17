#!/bin/bash
# scan.sh AMPC AMP JOB PRECISION...: in each precision, the `scan` loops of JOB train like the same
# loops unrolled (-D UNROLLED=true). -O0, -O2 and an emitted program with poison write the same
# checkpoint. The code of a job with STEPS must not grow with STEPS.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2") job=$(realpath "$3")
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$job" job.amp

losses() { "$amp" train --json --device cpu --log 1 "$@" job.amp 2>/dev/null | grep -o '"loss": *[0-9.e-]*' | grep -o '[0-9.e-]*$'; }

for precision; do
  set_precision=(--set precision=$precision)
  losses "${set_precision[@]}" --save o2 >loop
  losses "${set_precision[@]}" -D UNROLLED=true >unrolled
  [ "$(wc -l <loop)" -ge 8 ] && [ "$(wc -l <loop)" -eq "$(wc -l <unrolled)" ]
  paste loop unrolled | awk -v worst=0 -v what=$precision -v bound="$([ $precision = f32 ] && echo 1e-5 || echo 2e-3)" '
    { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d }
    END { print what ": losses of " NR " steps, off by " worst " at most"; exit worst > bound }'
  "$amp" train "${set_precision[@]}" --device cpu -O0 --save o0 job.amp >/dev/null 2>&1
  "$ampc" "${set_precision[@]}" --target=cpu --poison -o poison.c job.amp
  eval "$("$ampc" "${set_precision[@]}" --target=cpu --build-line -o poison.c job.amp | tail -n 1)"
  ./poison --save poisoned >/dev/null 2>&1
  cmp o0 o2
  cmp poisoned o2
done

grep -q '^const STEPS' job.amp || exit 0
for steps in 1 7; do # one iteration; an odd number of them
  losses -D STEPS=$steps >loop
  losses -D STEPS=$steps -D UNROLLED=true >unrolled
  [ -s loop ] && paste loop unrolled | awk -v worst=0 -v what=$steps '
    { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d }
    END { print what " iterations: losses of " NR " steps, off by " worst " at most"; exit worst > 1e-5 }'
done
# Kernels behind the loop may differ, because they depend on sizes.
lines() { "$ampc" --emit=c --target=cpu -D STEPS="$1" -o - job.amp | wc -l; }
short=$(lines 10) long=$(lines 1000)
[ "$long" -le $((short * 11 / 10)) ] || { echo "1000 steps are $long lines, 10 are $short"; exit 1; }
echo "1000 steps: $long lines, 10 steps: $short"
