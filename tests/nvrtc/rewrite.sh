#!/bin/sh
# Prints the budget as it would be for the kernels of today; look at the difference before it is kept:
#   tests/nvrtc/rewrite.sh build/tests/nvrtc_check >/tmp/budget && mv /tmp/budget tests/nvrtc/budget.tsv
# usage: tests/nvrtc/rewrite.sh NVRTC_CHECK
set -eu
check=$1
cd "$(dirname "$0")/../.."
echo "# What a kernel may need: made from, architecture, registers a thread, bytes of static shared memory a"
echo "# block (with what the toolkit adds). Registers are given in eights, as a GPU allots them."
grep '^# `\*`' tests/nvrtc/budget.tsv
grep '^\*' tests/nvrtc/budget.tsv
for arch in 75 80 90 100 120; do
  models=$(ls models/*/*.amp)
  [ "$arch" = 75 ] && models=$(echo "$models" | grep -v gpt2/gpt2) # it has no bf16
  # shellcheck disable=SC2086 # they are words
  "$check" --rewrite - "sm_$arch" $models tests/nvrtc/*.amp tests/simt/jobs/*.amp
done
