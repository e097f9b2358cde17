#!/usr/bin/env bash
# The emitted .cu is compiled by the line that --build-line prints. Skips where there is no nvcc.
#   emitted.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || exit 77
cd "$work" || exit 1
for precision in f32 tf32 f16 bf16; do
  cp "$source_dir/models/fashion_mnist/mlp.amp" job.amp
  passes "emit, $precision" "$ampc" --set precision=$precision -o job.cu job.amp
  line=$("$ampc" --set precision=$precision --build-line -o job.cu job.amp)
  echo "$line"
  rm -f job.o job
  passes "nvcc, $precision" bash -c "$line"
done
finish
