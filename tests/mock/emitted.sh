#!/usr/bin/env bash
# An emitted trainer, built by nvcc with the line that ampc prints, makes the same calls as the JIT:
# both end with the same bytes. Its kernels run as their C twins. Skipped without nvcc.
#   emitted.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
mock=$(realpath "$3")
export AMPC_ATTENTION_F32=1 # a block of the mock has one thread: no tensor cores
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || exit 77
nvcc --version | grep -q 'release 13' || { echo "the mock is that of CUDA 13" && exit 77; }
cd "$work" || exit 1

on_mock() { LD_LIBRARY_PATH=$mock MOCK_CUDART_IMAGE=$work/job.image "$@"; }

compare() { # compare FILE STEPS BATCH: FILE.amp
  cp "$source_dir/$1.amp" job.amp
  local options=(--set "train.batch=$3" --set eval.steps=1 --set eval.batch=50) line
  passes "$1: emit" "$ampc" --target=sm_90 "${options[@]}" -o job.cu job.amp
  line=$("$ampc" --target=sm_90 "${options[@]}" --build-line -o job.cu job.amp)
  rm -f job
  passes "$1: nvcc" bash -c "$line -cudart shared"
  passes "$1: twins" on_mock "$ampc" --target=sm_90 "${options[@]}" --emit=cubin --force -o job.image job.amp
  passes "$1: emitted" on_mock ./job --steps "$2" --seed 3 --quiet --save emitted.st
  passes "$1: jit" on_mock "$amp" train --device cuda "${options[@]}" --steps "$2" --seed 3 --quiet \
    --save jit.st job.amp
  same "$1: the same bytes" emitted.st jit.st
  MOCK_CUDA_DEVICES=2 passes "$1: on another GPU" on_mock ./job --device cuda:1 --steps "$2" --seed 3 --quiet --save other.st
  same "$1: the same bytes there" emitted.st other.st
}

compare models/fashion_mnist/mlp 20 128
MOCK_BLAS_FAIL=2 refuses "a product that fails" 5 '[a-z]+[a-z_0-9]* \(job\.amp:[1-9][0-9]*\): .*cuBLASLt: failed, product of f16' \
  on_mock ./job --steps 1
MOCK_CUDA_DEVICES=2 MOCK_BLAS_FAIL=2 refuses "the GPU that is named" 5 'cuda:1 Mock 1: cuBLASLt: failed' on_mock ./job --steps 1 --device cuda:1
MOCK_CUDA_DEVICES=2 MOCK_CUDA_ARCH=90,75 refuses "a GPU of another kind" 5 \
  'no CUDA device runs code for sm_90: there is cuda:1 Mock 1 \(sm_75\)' on_mock ./job --steps 1 --device cuda:1
compare tests/mock/attention 3 8
compare models/fashion_mnist/fashion_mnist 3 16
MOCK_DNN_FAIL=20 refuses "a convolution that fails" 5 '[a-z]+[a-z_0-9]* \(job\.amp:[1-9][0-9]*\): .*cuDNN: ' on_mock ./job --steps 1
finish
