#!/usr/bin/env bash
# Everything that can be wrong with a machine that should train on CUDA: each case gives one clear message and its
# exit status, and the last checkpoint stays whole. NVIDIA's libraries are the mock's.
#   bad_input.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
mock=$(realpath "$3")

d=$work/data
small_data "$d"
small_job "$d/job.amp"
job=$d/job.amp

# train FOLDER OPTIONS...: trains with the libraries of that folder and an empty cache
train() {
  local folder=$1
  shift
  rm -rf "$work/cache" "$work/report"
  XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$folder MOCK_CUDA_REPORT=$work/report \
    timeout 500 "$amp" train --device cuda "$@" "$job"
}
given_back() { # everything allocated before the failure must be freed
  local held
  held=$(sed -n 's/^held //p' "$work/report")
  [ "$held" = 0 ] || failed "$1: $held objects were not freed"
}
empty_library() { # empty_library FILE: a library without functions
  echo 'int ampc_nothing;' | cc -shared -fPIC -x c - -o "$1"
}
# folder NAME FILE [WORD]: the mock's libraries, with FILE missing, broken or empty
folder() {
  mkdir -p "$work/$1"
  cp -P "$mock"/*.so* "$work/$1"
  rm -f "$work/$1/$2"
  case $3 in
  broken) echo nothing >"$work/$1/$2" ;;
  empty) empty_library "$work/$1/$2" ;;
  esac
}

passes "the job itself trains" train "$mock" --save "$work/good"
given_back "the job itself"

# ---- the driver ----------------------------------------------------------------------------------
folder no_driver libcuda.so.1 broken
refuses "no driver" 5 'no NVIDIA driver.*install the driver.*run on the cpu' train "$work/no_driver"
folder driver_lacks libcuda.so.1 empty
refuses "a driver without a function" 5 'too old: it has no cuInit' train "$work/driver_lacks"
MOCK_CUDA_DRIVER=11080 refuses "an old driver" 5 \
  'driver is too old.*supports CUDA 11\.8.*needs 12\.0' train "$mock"
MOCK_CUDA_INIT=34 refuses "the toolkit's stub" 5 "stub.*LD_LIBRARY_PATH" train "$mock"
MOCK_CUDA_INIT=803 refuses "driver and kernel differ" 5 'does not start.*nvidia-smi' train "$mock"
MOCK_CUDA_INIT=100 refuses "no GPU" 5 'sees no GPU.*CUDA_VISIBLE_DEVICES' train "$mock"
MOCK_CUDA_DEVICES=0 refuses "a list without GPUs" 5 'GPU|device' train "$mock"
MOCK_CUDA_ARCH=61 refuses "an old GPU" 5 'sm_61' train "$mock"

# ---- kernels -------------------------------------------------------------------------------------
folder no_nvrtc libnvrtc.so.12 broken # the version that a driver of CUDA 12 needs
MOCK_CUDA_DRIVER=12040 refuses "no NVRTC" 4 'libnvrtc\.so\.12 is not on this machine.*12\.4' \
  train "$work/no_nvrtc"
folder nvrtc_lacks libnvrtc.so.13 empty
refuses "a damaged NVRTC" 4 'libnvrtc\.so\.13 has no function.*damaged' train "$work/nvrtc_lacks"
MOCK_NVRTC_FAIL=1 refuses "NVRTC refuses" 4 'NVRTC refuses.*' train "$mock"
MOCK_NVRTC_ARCH=80 refuses "kernels for another GPU" 5 'sm_90.*another architecture' train "$mock"
given_back "kernels for another GPU"
# A GPU that is newer than NVRTC gets PTX. Then the driver must be as new as NVRTC.
MOCK_CUDA_ARCH=130 MOCK_CUDA_DRIVER=13000 refuses "an older driver than NVRTC" 5 \
  'driver is too old for this toolkit.*newer driver' train "$mock"
MOCK_CUDA_ARCH=130 passes "a newer GPU than NVRTC knows" train "$mock" --save "$work/by_ptx"
same "PTX gives the same" "$work/good" "$work/by_ptx"

sed 's/precision f16/precision bf16/' "$job" >"$d/bf16.amp"
job=$d/bf16.amp MOCK_CUDA_ARCH=75 refuses "bf16 on an old GPU" 1 \
  'E405.*bf16 needs sm_80 or later, the target is sm_75' train "$mock"

# ---- products, memory ----------------------------------------------------------------------------
folder blas_lacks libcublasLt.so.13 empty
refuses "a damaged cuBLASLt" 5 'libcublasLt\.so\.13 has no function.*damaged' train "$work/blas_lacks"
MOCK_BLAS_FAIL=2 refuses "a product that fails" 5 \
  '[a-z]+[a-z_0-9]* \(.*job\.amp:[1-9][0-9]*\): .*cuBLASLt: failed, product of f16 \[.*EXECUTION_FAILED' train "$mock"
given_back "a product that fails"
# ampc's own kernel computes what cuBLASLt refuses, all products or one: a note, and the same losses.
for how in MOCK_BLAS_REFUSE=2 MOCK_BLAS_UNFIT=100; do
  passes "$how" env $how XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$mock timeout 500 "$amp" train --device cuda \
    --save "$work/own" "$job"
  [ "$(grep -c '^note: product of f16 \[.*by our own kernel: cuBLASLt' "$work/err")" = 1 ] || failed "$how: not one note"
done
for n in 1 4 8; do
  MOCK_CUDA_OOM_AT=$n refuses "out of memory at allocation $n" 5 \
    'cannot allocate .*GB are free.*smaller batch' train "$mock"
  given_back "out of memory at allocation $n"
done
MOCK_CUDA_MEMORY=300000 refuses "too little memory" 5 'of 300 kB are free.*nvidia-smi' train "$mock"
MOCK_CUDA_SHARED=1 MOCK_CUDA_MEMORY=300000 refuses "too little of the processor's memory" 5 \
  'of 300 kB are free.*`free -h`.*shares with the processor' train "$mock"
for n in 1 2; do
  MOCK_CUDA_PIN_AT=$n refuses "no pinned memory $n" 5 'cannot pin.*ulimit' train "$mock"
  given_back "no pinned memory $n"
done

# ---- in the middle of a run ----------------------------------------------------------------------
for n in 1 30 200; do
  rm -f "$work/last"
  MOCK_CUDA_STICKY_AT=$n refuses "an illegal address in launch $n" 5 \
    'illegal memory access.*--resume' train "$mock" --save-every 5 --save "$work/last"
done
passes "the last checkpoint is whole" train "$mock" --resume "$work/last" --save "$work/resumed"
same "a run resumed from it gives the same" "$work/good" "$work/resumed"

sed 's/lr=0.1/lr=1e30/; s/precision f16/precision f32/' "$job" >"$d/wild.amp"
job=$d/wild.amp refuses "a loss that is not finite" 5 'finite' train "$mock"
given_back "a loss that is not finite"
cd "$d" || exit 1
lost_data one.idx 12 5
lost_job one.amp one.idx f16
job=one.amp passes "a scaler skips the step" train "$mock"
grep -q 'skipped steps: 1 of 12' "$work/out" || failed "a scaler skips the step: its count"
cd - >"$work/out" || exit 1

# ---- devices -------------------------------------------------------------------------------------
auto() { # auto FOLDER: the device that --device auto chooses
  rm -f "$work/report"
  XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$1 MOCK_CUDA_REPORT=$work/report \
    timeout 500 "$amp" train --save "$work/auto" "$job"
}
passes "auto, with a GPU" auto "$mock"
same "auto takes the GPU" "$work/good" "$work/auto"
passes "auto, without a driver" auto "$work/no_driver"
[ -e "$work/report" ] && failed "auto without a driver runs on a GPU"
passes "a checkpoint of the cpu resumes on the GPU" train "$mock" --resume "$work/auto" --steps 60

# ---- the cache -----------------------------------------------------------------------------------
again() { # keeps the cache
  XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$mock timeout 500 "$amp" train --device cuda "$@" "$job"
}
cached() { find "$work/cache" -name '*.cubin'; }
passes "a full cache" again --save "$work/warm"
same "the same from the cache" "$work/good" "$work/warm"
MOCK_NVRTC_FAIL=1 passes "nothing is compiled again" again
[ "$(cached | wc -l)" -gt 0 ] || failed "no cached kernels"
for file in $(cached); do
  chmod u+w "$file"
  printf 'x' | dd of="$file" bs=1 seek=2000 conv=notrunc status=none
done
passes "damaged kernels are compiled again" again --save "$work/repaired"
same "and give the same" "$work/good" "$work/repaired"
for file in $(cached); do : >"$file"; done
MOCK_NVRTC_FAIL=1 refuses "empty files are no kernels" 4 'NVRTC refuses' again

finish
