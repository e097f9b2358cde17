#!/usr/bin/env bash
# A check, and what `--tell` says about it: the check loads the jobs that tests/kept.py uses as its key, and no others.
# usage: tests/simt/told.sh SIMT_CHECK ARGUMENT...
set -euo pipefail
lines() { grep -E '^[0-9a-f]{32} ' | sort; }
told=$("$1" --tell "${@:2}" 2>/dev/null | lines)
out=$("$1" --tell-too "${@:2}") || { echo "$out"; exit 5; }
diff <(echo "$told") <(lines <<<"$out") || { echo "FAILED: --tell tells of other jobs than those that are checked"; exit 1; }
