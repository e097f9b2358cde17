#!/bin/sh
# Prints the budget that the present kernels need. Look at the difference before you commit it:
#   tests/nvrtc/rewrite.sh build/tests/nvrtc_check >/tmp/budget && mv /tmp/budget tests/nvrtc/budget.tsv
# usage: tests/nvrtc/rewrite.sh NVRTC_CHECK
set -eu
check=$1
cd "$(dirname "$0")/../.."
echo "# What a kernel may use: kind, architecture, registers per thread, bytes of static shared memory per block"
echo "# (with those that the toolkit adds), bytes of spilled registers (0 if missing). Registers are multiples of eight, as a GPU"
echo "# allocates them. On Blackwell ptxas spills one to four numbers of batch norms and cross entropy, to fit more blocks."
grep '^# `\*`' tests/nvrtc/budget.tsv
grep '^\*' tests/nvrtc/budget.tsv
for arch in 75 80 90 100 120; do
  models=$(ls models/*/*.amp | grep -Ev "/(bert|fortunes|generate)\.amp") # one declares only; two reuse another model
  models="$models $(ls tests/nvrtc/*.amp tests/simt/jobs/*.amp)"
  [ "$arch" = 75 ] && models=$(printf '%s\n' $models | grep -Ev 'gpt2/gpt2|jobs/(pinned|weights16)') # sm_75 has no bf16
  # shellcheck disable=SC2086 # split into words
  "$check" --rewrite - "sm_$arch" $models
done
