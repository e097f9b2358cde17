#!/usr/bin/env bash
# A job reaches a test accuracy in one precision, without a NaN.
#   accuracy.sh AMP JOB PRECISION LEAST [OPTION...]
set -euo pipefail
amp=$(realpath "$1") job=$2 precision=$3 least=$4
shift 4
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$amp" train --device cpu "$@" --set precision="$precision" "$job" 2>&1 | tee "$log"
accuracy=$(sed -n 's/.*eval acc: *\([0-9.]*\).*/\1/p' "$log" | tail -n 1)
echo "$precision: accuracy ${accuracy:-none} (at least $least)"
if grep -qi '\bnan\b' "$log"; then
  echo "FAILED: a NaN was reported" && exit 1
fi
# only f16 has a scaler, which may skip steps; only then the number is printed
if [ "$precision" = f16 ] && ! grep -q 'skipped steps: [0-9]* of' "$log"; then
  echo "FAILED: the number of skipped steps is not printed" && exit 1
fi
if [ "$precision" != f16 ] && grep -q 'skipped' "$log"; then
  echo "FAILED: $precision has no scaler, and skipped steps are printed" && exit 1
fi
awk -v a="${accuracy:-0}" -v l="$least" 'BEGIN { exit !(a >= l) }'
