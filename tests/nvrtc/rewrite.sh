#!/bin/sh
# Prints the budget that the present kernels need. Look at the difference before you commit it:
#   tests/nvrtc/rewrite.sh build/tests/nvrtc_check >/tmp/budget && mv /tmp/budget tests/nvrtc/budget.tsv
# usage: tests/nvrtc/rewrite.sh NVRTC_CHECK
set -eu
check=$1
cd "$(dirname "$0")/../.."
echo "# Columns: kind, architecture, registers per thread, bytes of static shared memory per block (including the toolkit's"
echo "# own), bytes that a thread spills (0 if the column is missing). Registers are multiples of eight, as a GPU allocates them."
echo "# On Blackwell, ptxas spills two to four numbers in some kernels of kind map (batch norms) and cross_entropy_rows, so that"
echo "# more blocks run at once."
grep -E '^(# `[*=]`|[*=])' tests/nvrtc/budget.tsv
for arch in 75 80 90 100 120; do
  models=$(ls models/*/*.amp | grep -Ev "/(bert|fortunes|generate|llama|gemma2|decoder|encoder|gpt_neox|modernbert)\.amp")
  models="$models $(ls tests/nvrtc/*.amp tests/simt/jobs/*.amp)"
  [ "$arch" = 75 ] && models=$(printf '%s\n' $models | grep -Ev 'gpt2/gpt2|jobs/(pinned|weights16)') # sm_75 has no bf16
  # shellcheck disable=SC2086 # split into words
  "$check" --rewrite - "sm_$arch" $models
done
like=$(sed -n 's/^=\t\(sm_[0-9]*\).*/\1/p' tests/nvrtc/budget.tsv | paste -sd '|')
grep -E "	($like)	[0-9]" tests/nvrtc/budget.tsv # own lines of these architectures
