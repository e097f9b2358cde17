#!/usr/bin/env bash
# The build line makes a trainer from an emitted .cu. With a GPU it writes the bytes of the JIT's
# run; without one it reports that in one line. Skipped without nvcc.
#   emitted.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || exit 77
cd "$work" || exit 1
arch=sm_80
gpu=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
case $gpu in [0-9]*) arch=sm_$gpu ;; *) gpu= ;; esac

same_as_jit() { # same_as_jit PRECISION
  passes "emitted, $1" ./job --steps 20 --seed 3 --quiet --save emitted.st
  passes "jit, $1" "$amp" train --device cuda --set precision="$1" --steps 20 --seed 3 --quiet \
    --save jit.st job.amp
  same "the same bytes, $1" emitted.st jit.st
}

for precision in f32 tf32 f16 bf16; do
  cp "$source_dir/models/fashion_mnist/mlp.amp" job.amp
  rm -f job
  passes "emit, $precision" "$ampc" --target=$arch --set precision=$precision -o job.cu job.amp
  line=$("$ampc" --target=$arch --set precision=$precision --build-line -o job.cu job.amp)
  echo "$line"
  passes "nvcc, $precision" bash -c "$line"
  if [ -n "$gpu" ]; then
    same_as_jit $precision
  else
    refuses "without a GPU, $precision" 5 'no NVIDIA driver' ./job --steps 1
  fi
done
finish
