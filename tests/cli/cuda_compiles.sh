#!/usr/bin/env bash
# Every kernel of the emit tests and of an MLP compiles for old and new architectures with NVRTC.
# The whole emitted file compiles by the build line that ampc prints, without a warning, and no
# kernel spills registers. If jobs are given, only these are compiled, by their build lines, and the
# script prints how many kernels spill. They may spill, because nvcc passes other code to ptxas than
# NVRTC; tests/nvrtc checks that no kernel of NVRTC spills.
#   cuda_compiles.sh AMPC AMP [JOB ...]
. "$(dirname "$0")/../faults/lib.sh"
export PATH=$PATH:/usr/local/cuda/bin
jobs=("$source_dir"/tests/emit/{maps,rows,train,train_cuda}.amp "$source_dir"/models/fashion_mnist/mlp.amp)
cd "$work" || exit 1

have_nvrtc() { # compiles the first job: without the library there is nothing to test
  "$ampc" --emit=ptx -o a.ptx "${jobs[0]}" 2>err && return 0
  grep -q 'NVRTC is not on this machine' err && return 1
  return 0
}

compile_kernels() { # compile_kernels ARCH JOB
  local name="$(basename "$2" .amp) for $1"
  if "$ampc" --emit=cubin --target="$1" -o a.cubin "$2" 2>err && [ -s a.cubin ]; then
    echo "ok: $name"
  elif [ "$1" = sm_75 ] && grep -q 'E405' err; then
    echo "ok: $name has no bf16"
  else
    failed "$name: $(head -3 err)"
  fi
}

compile_whole() { # compile_whole JOB MAY_SPILL
  local name=$(basename "$1" .amp) line spills
  "$ampc" -o "$name.cu" "$1" 2>err || { failed "$name.cu: $(head -3 err)"; return; }
  line=$("$ampc" --build-line -o "$name.cu" "$1")
  if ! eval "$line -Werror all-warnings -Xptxas -v" >out 2>&1; then
    failed "$name.cu: $(grep -m1 error out)"
    return
  fi
  spills=$(grep -Ec '[1-9][0-9]* bytes spill stores' out)
  if [ "$spills" -gt 0 ] && [ "$2" = no ]; then
    failed "$name.cu: $spills kernels spill"
  else
    echo "ok: $name.cu, $spills kernels spill"
  fi
}

if [ $# -gt 2 ]; then
  command -v nvcc >/dev/null || { echo "skipped: no nvcc"; exit 77; }
  for job in "${@:3}"; do compile_whole "$(realpath "$source_dir/$job")" yes; done
  finish
fi
have_nvrtc || { echo "skipped: no NVRTC"; exit 77; }
for job in "${jobs[@]}"; do
  for arch in sm_75 sm_80 sm_90 sm_120; do compile_kernels "$arch" "$job"; done
done
if command -v nvcc >/dev/null; then
  for job in "${jobs[@]}"; do compile_whole "$job" no; done
fi
finish
