#!/usr/bin/env bash
# Which of several GPUs a program takes: the first one that is free and can run it, or the named one, among those that
# CUDA_VISIBLE_DEVICES lists; and the messages if there is none. NVIDIA's libraries are the mock's.
#   devices.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
mock=$(realpath "$3")
small_data "$work/data"
small_job "$work/data/job.amp"
job=$work/data/job.amp
export XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$mock MOCK_CUDA_DEVICES=2
unset CUDA_VISIBLE_DEVICES
amp() { # amp VERB DEVICE OPTIONS...
  local verb=$1 device=$2
  shift 2
  timeout 500 "$amp" "$verb" --device "$device" "$@" "$job"
}
# taken NAME GPU TARGET DEVICE: a product fails on GPU, and the program was compiled for TARGET
taken() {
  MOCK_BLAS_FAIL=1 refuses "$1" 5 "$2: cuBLASLt: failed" amp train "$4"
  grep -q "^memory of job.amp on $3:" "$work/err" || failed "$1: not for $3"
}
notes() { [ "$(grep -c '^note: cuda' "$work/err")" = "$1" ] || failed "$2: $(grep -c '^note: cuda' "$work/err") notes"; }

export MOCK_CUDA_ARCH=90,75
taken "the first" 'cuda:0 Mock' sm_90 cuda
taken "auto" 'cuda:0 Mock' sm_90 auto
taken "by number" 'cuda:0 Mock' sm_90 cuda:0
taken "another one, of another kind" 'cuda:1 Mock 1' sm_75 cuda:1
notes 0 "another one"
MOCK_CUDA_ARCH=61,75 taken "the first that is new enough" 'cuda:1 Mock 1' sm_75 cuda
MOCK_CUDA_ARCH=61,75 refuses "one that is too old" 5 \
  'no CUDA device runs code for sm_70 or newer: there is cuda:0 Mock \(sm_61\);' amp train cuda:0
refuses "one that is not there" 5 'cuda:2: there are 2 GPUs: cuda:0 Mock \(sm_90\), cuda:1 Mock 1 \(sm_75\)$' amp train cuda:2
MOCK_CUDA_DEVICES=1 refuses "one of one" 5 'cuda:1: there is 1 GPU: cuda:0 Mock \(sm_90\)$' amp train cuda:1
for name in cuda: cuda:x cuda:-1 cuda:1x cuda:12345 gpu; do
  refuses "no name: $name" 2 'expected cpu, cuda, cuda:K or auto' amp train "$name"
done

# ---- GPUs that other processes have ----------------------------------------------------------------
alone='another process has exclusive use of it, compute mode EXCLUSIVE_PROCESS'
MOCK_CUDA_MODE=3,0 MOCK_CUDA_BUSY=1 taken "the first is busy" 'cuda:1 Mock 1' sm_75 cuda
grep -q "^note: cuda:0 Mock is not used: $alone$" "$work/err" || failed "the first is busy: its note"
notes 1 "the first is busy"
MOCK_CUDA_MODE=3 MOCK_CUDA_BUSY=0 taken "nobody has it" 'cuda:0 Mock' sm_90 cuda
notes 0 "nobody has it"
MOCK_CUDA_MODE=0 MOCK_CUDA_BUSY=1 taken "it can be shared" 'cuda:0 Mock' sm_90 cuda
MOCK_CUDA_MODE=2,0 taken "the first is closed" 'cuda:1 Mock 1' sm_75 auto
grep -q "^note: cuda:0 Mock is not used: compute mode PROHIBITED$" "$work/err" || failed "the first is closed: its note"
MOCK_CUDA_MODE=3,0 MOCK_CUDA_BUSY=1 refuses "a busy one that is named" 5 \
  "this CUDA device is not free: cuda:0 Mock \(sm_90, $alone\);.*--device cuda:K" amp train cuda:0
MOCK_CUDA_MODE=3,2 MOCK_CUDA_BUSY=1,0 refuses "none is free" 5 \
  "no CUDA device is free: cuda:0 Mock \(sm_90, $alone\), cuda:1 Mock 1 \(sm_75, compute mode PROHIBITED\);" amp train cuda
MOCK_CUDA_MODE=2 passes "none is free, auto" amp train auto --steps 1
notes 2 "none is free, auto"
grep -q "^memory of job.amp on cpu:" "$work/err" || failed "none is free: auto takes the cpu"

# ---- visible GPUs -----------------------------------------------------------------------------------
CUDA_VISIBLE_DEVICES=1 taken "the visible one" 'cuda:0 Mock 1' sm_75 cuda
CUDA_VISIBLE_DEVICES=1,0 taken "in the order of the list" 'cuda:1 Mock' sm_90 cuda:1
CUDA_VISIBLE_DEVICES=1 refuses "a hidden one" 5 \
  'cuda:1: there is 1 GPU: cuda:0 Mock 1 \(sm_75\); the list is limited by CUDA_VISIBLE_DEVICES=1$' amp train cuda:1
CUDA_VISIBLE_DEVICES= refuses "all are hidden" 5 'sees no GPU.*CUDA_VISIBLE_DEVICES' amp train cuda

# ---- every command on a GPU ------------------------------------------------------------------------
export MOCK_CUDA_ARCH=90
passes "train" amp train cuda --save "$work/first"
passes "train on another" amp train cuda:1 --save "$work/second"
same "the same bytes on both" "$work/first" "$work/second"
passes "eval" amp eval cuda:1 --resume "$work/second"
passes "probe" amp probe cuda:1 --steps 1
echo ':train 2' | passes "repl" amp repl cuda:1
passes "selftest" timeout 500 "$amp" selftest --device cuda:1 --filter relu
passes "selftest of a decoder" timeout 500 "$amp" selftest --device cuda:1 --filter store
for verb in eval probe repl infer; do
  echo ':train 2' | MOCK_CUDA_MODE=0,2 refuses "$verb: it takes the one that is named" 5 'cuda:1 Mock 1 \(sm_90, compute mode PROHIBITED' \
    amp $verb cuda:1
done
MOCK_CUDA_MODE=0,2 refuses "selftest: it takes the one that is named" 5 'compute mode PROHIBITED' \
  "$amp" selftest --device cuda:1 --filter relu
finish
