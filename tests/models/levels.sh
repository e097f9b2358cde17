#!/usr/bin/env bash
# No optimization changes a bit. The models whose data are in Debian, and jobs with norms, sums,
# axes of size 1, rows with gaps and checkpoint(), train a few small steps at -O0, -O1 and -O2. The checkpoints
# (weights, optimizer state, running statistics, scaler) and the results must be the same.
#   levels.sh AMP PRECISION
set -euo pipefail
amp=$(realpath "$1") precision=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
shopt -s nullglob
jobs=(models/{fashion_mnist,mnist_cnn}/*.amp) # whose data are in Debian
[ ${#jobs[@]} -ge 3 ] || { echo "FAILED: no models" && exit 1; }
status=0
for job in "${jobs[@]}" tests/simt/jobs/{names,norms,ones,pinned,pitch,recomputed,sums}.amp; do
  small=(--set train.batch=6)
  [[ $job == models/* ]] && small+=(--set eval.batch=8 --set eval.steps=1)
  for level in 0 1 2; do
    "$amp" train --device cpu -O$level --quiet --steps 4 --save "$folder/$level" \
      --set precision="$precision" "${small[@]}" "$job" >"$folder/$level.log" 2>&1 ||
      { cat "$folder/$level.log" && exit 1; }
  done
  for level in 1 2; do
    if cmp "$folder/0" "$folder/$level" && cmp "$folder/0.log" "$folder/$level.log"; then
      echo "ok: $job in $precision, -O0 and -O$level"
    else
      echo "FAILED: $job in $precision, -O0 and -O$level differ" && status=1
    fi
  done
done
exit $status
