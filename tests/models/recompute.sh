#!/usr/bin/env bash
# Values that checkpoint() recomputes have the same bits as stored ones, and need less memory.
#   recompute.sh AMPC AMP
set -euo pipefail
ampc=$1 amp=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/again" "$work/kept"
cp "$here/recompute.amp" "$work/again/job.amp"
sed 's/^const AGAIN = true/const AGAIN = false/' "$here/recompute.amp" >"$work/kept/job.amp"
cmp -s "$work/again/job.amp" "$work/kept/job.amp" && { echo "the two jobs are equal" >&2 && exit 1; }

# bytes JOB: the bytes of memory that it needs, from the message of --memory-limit
bytes() {
  { "$ampc" --check --memory-limit=1KB "$1" 2>&1 || true; } | sed -n 's/.* needs \([0-9]*\) bytes .*/\1/p' | head -n 1
}
again=$(bytes "$work/again/job.amp") kept=$(bytes "$work/kept/job.amp")
echo "memory: recomputed $again bytes, kept $kept"
[ "$again" -lt "$kept" ] || { echo "recomputing saves no memory" >&2 && exit 1; }

for precision in f16 bf16 f32; do
  for level in 0 2; do
    for way in again kept; do
      "$amp" train --device cpu --quiet -O$level --set precision=$precision --save "$work/$way/$level.safetensors" \
        "$work/$way/job.amp" >"$work/$way/$level.log"
    done
    cmp "$work/again/$level.safetensors" "$work/kept/$level.safetensors"
  done
  cmp "$work/again/0.safetensors" "$work/again/2.safetensors"
  echo "$precision: the same bytes, at -O0 and -O2"
done
