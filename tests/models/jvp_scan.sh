#!/bin/bash
# jvp_scan.sh AMPC AMP: derivatives through and inside of loops at run time train as those of the same loops unrolled do; -O0,
# -O2 and, with poison, an emitted program write the same checkpoint.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
job=$(cd "$(dirname "$0")" && pwd)/jvp_scan.amp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$job" job.amp

losses() { "$amp" train --json --device cpu --log 1 "$@" job.amp 2>/dev/null | grep -o '"loss": *[0-9.e-]*' | grep -o '[0-9.e-]*$'; }

losses --save o2 >loop
losses -D UNROLLED=true >unrolled
[ "$(wc -l <loop)" -eq 8 ]
paste loop unrolled | awk -v worst=0 '
  { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d }
  END { print "losses of " NR " steps, off by " worst " at most"; exit worst > 1e-5 }'
"$amp" train --device cpu -O0 --save o0 job.amp >/dev/null 2>&1
"$ampc" --target=cpu --poison -o poison.c job.amp
eval "$("$ampc" --target=cpu --build-line -o poison.c job.amp | tail -n 1)"
./poison --save poisoned >/dev/null 2>&1
cmp o0 o2
cmp poisoned o2
