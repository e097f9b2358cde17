#!/usr/bin/env bash
# limits.sh AMPC: a program that exceeds a counter of the graph gets an error at the right place.
set -u
ampc=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
complain() {
  echo "FAILED: $1"
  bad=1
}

refused() { # refused JOB TEXT: the compiler must exit with status 1 and print TEXT
  "$ampc" --check --error-limit=1 "$1" >out 2>&1
  [ $? -eq 1 ] && grep -qF -- "$2" out || complain "the output for $1 is: $(head -n 3 out)"
}

echo 'infer f(x: f32[2]) { return cat([x for i in range(65536)], dim=0) }' >cat.amp
refused cat.amp 'cat.amp:1:29: error[E210]: cat takes at most 65535 tensors, got 65536'

seq -f 'infer g%.0f(x: f32[2]) { return x }' 1024 >blocks.amp
"$ampc" --check blocks.amp || complain "1024 blocks are refused"
echo 'infer last(x: f32[2]) { return x }' >>blocks.amp
refused blocks.amp 'blocks.amp:1025:1: error[E210]: the job has more than 1024 blocks'

echo 'infer f(x: f32[1, 1, 1, 1, 1, 1]) { return x.unsqueeze(0) }' >rank.amp
refused rank.amp 'tensors have at most 6 axes'

{
  echo 'infer f(x: f32[2]) {'
  seq -f '  autocast(f16) { x = x + %.0f }' 65536
  echo '  return x }'
} >regions.amp
refused regions.amp 'regions.amp:65537:3: error[E210]: the job has more than 65535 regions'

exit $bad
