#!/usr/bin/env bash
# The large CNN: compiled at full size for both targets, its number of parameters, two steps on the CPU.
#   large.sh AMPC AMP
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
job=models/mnist_cnn/mnist_cnn.amp
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $1" && exit 1; }
[ "$("$ampc" "$job" --emit=params | tail -n 1)" = "total 14740522 parameters" ] || fail "parameters"
"$ampc" "$job" -o "$folder/net.cu"
"$ampc" "$job" -o "$folder/net.c"
grep -q 'AMPC_CONV' "$folder/net.cu" || fail "no convolution in the CUDA text"
"$amp" train --device cpu "$job" --set train.batch=4 --set eval.steps=1 --steps 2 --log 1 2>&1 |
  tee "$folder/log"
grep -Eq 'step 2/2 loss [0-9]+\.[0-9]+ .* skipped 0' "$folder/log" || fail "two steps"
