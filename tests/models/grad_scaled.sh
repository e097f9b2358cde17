#!/bin/bash
# grad_scaled.sh AMP: a penalty on gradients that are too small for f16 trains in f16 as in f32,
# because grad() uses the loss scale. With the scale 1 it does not. A scale that is too large skips
# steps and falls, also if the optimizer has a scale of its own.
set -euo pipefail
amp=$(realpath "$1")
job=$(cd "$(dirname "$0")" && pwd)/grad_scaled.amp

events() { "$amp" train --json --device cpu --log 1 "$@" "$job" 2>/dev/null; }
losses() { events "$@" | grep -o '"loss": *[0-9.e+-]*' | grep -o '[0-9.e+-]*$'; }
worst() {
  paste <(losses) <(losses --set precision=f16 "$@") | awk '
    { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
    END { print NR == 48 ? worst : "lacks losses" }'
}

scaled=$(worst --set scaler.init=16384) plain=$(worst --set scaler.init=1 --set scaler.interval=1000)
echo "losses of f16 are off by $scaled with the loss scale, by $plain with the scale 1"
awk -v s="$scaled" -v p="$plain" 'BEGIN { exit !(s < 0.01 && p > 0.03) }'
for own in false true; do
  skipped=$(events --set precision=f16 --set scaler.init=16777216 --set scaler.per_optimizer=$own | grep -o '"skipped":[0-9]*' | tail -1)
  echo "from the scale 2^24: $skipped"
  [ "${skipped#*:}" -gt 3 ] || exit 1
  [ "${skipped#*:}" -lt 20 ] || exit 1
done
