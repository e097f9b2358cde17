#!/usr/bin/env bash
# A demo reaches its test accuracy in one precision, in two minutes, without a NaN.
#   accuracy.sh AMP PRECISION [DEVICE JOB ACCURACY]
set -euo pipefail
amp=$(realpath "$1") precision=$2 device=${3:-cpu} least=${5:-0.87}
job=models/fashion_mnist/${4:-mlp}.amp
log=$(mktemp)
trap 'rm -f "$log"' EXIT
begin=$(date +%s)
"$amp" train --device "$device" --set precision="$precision" "$job" 2>&1 | tee "$log"
seconds=$(($(date +%s) - begin))
accuracy=$(sed -n 's/.*eval acc: *\([0-9.]*\).*/\1/p' "$log" | tail -n 1)
echo "$precision: accuracy ${accuracy:-none} after $seconds s"
if grep -qi '\bnan\b' "$log"; then
  echo "FAILED: a NaN was reported" && exit 1
fi
if ! grep -q 'skipped' "$log"; then
  echo "FAILED: the number of skipped steps is not printed" && exit 1
fi
awk -v a="${accuracy:-0}" -v s="$seconds" -v l="$least" 'BEGIN { exit !(a >= l && s <= 120) }'
