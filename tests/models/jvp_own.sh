#!/bin/bash
# jvp_own.sh AMP: a job with derivatives through own ops trains like the same job without own ops.
set -euo pipefail
amp=$(realpath "$1")
job=$(cd "$(dirname "$0")" && pwd)/jvp_own.amp

losses() { "$amp" train --json --device cpu --log 1 "$@" "$job" 2>/dev/null | grep -o '"loss": *[0-9.e-]*' | grep -o '[0-9.e-]*$'; }

own=$(losses) language=$(losses -D OWN=false)
[ "$(wc -l <<<"$own")" -eq 8 ]
paste <(echo "$own") <(echo "$language") | awk -v worst=0 '
  { d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d }
  END { print "losses of " NR " steps, off by " worst " of themselves at most"; exit worst > 1e-5 }'
