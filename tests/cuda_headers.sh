#!/bin/sh
# Compares driver.def, blas.def, cudnn.def, nccl.def, nvrtc.def, cuda_api.h, cudnn_api.h and nccl_api.h with NVIDIA's own
# headers: functions, parameters, structs and constants must be the same. Skipped (77) without the headers or a C++
# compiler; cuDNN's and NCCL's headers may be missing. NCCL_HEADERS=FOLDER has the nccl.h of another version, such as
# nvidia/nccl/include of the wheel nvidia-nccl-cu13.
tests=$(cd "$(dirname "$0")" && pwd)
api=$tests/../runtime/cuda
for folder in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include /usr/local/include /usr/include; do
  if [ -f "$folder/cuda.h" ] && [ -f "$folder/cublasLt.h" ] && [ -f "$folder/nvrtc.h" ]; then
    found=$folder
    break
  fi
done
[ -n "$found" ] || { echo "no CUDA headers here"; exit 77; }
command -v c++ > /dev/null || { echo "no C++ compiler here"; exit 77; }
constants() { grep -o 'CU[A-Za-z0-9_]* = [0-9]*' "$1" | sed 's/ = .*//'; }
names=$(constants "$api/cuda_api.h")
tables="$api/driver.def $api/blas.def $tests/../compiler/nvrtc/nvrtc.def"
[ -n "$names" ] || { echo "FAILED: no constants in cuda_api.h"; exit 1; }
if [ -f "$found/cudnn.h" ]; then
  more=-DHAS_CUDNN
  names="$names $(constants "$api/cudnn_api.h")"
  tables="$tables $api/cudnn.def"
else
  echo "no cudnn.h here: cudnn.def is not compared"
fi
nccl=${NCCL_HEADERS:-$found}
if [ -f "$nccl/nccl.h" ]; then
  more="$more -DHAS_NCCL -isystem $nccl"
  names="$names $(grep -o 'nccl[A-Z][A-Za-z0-9]* = [0-9]*' "$api/nccl_api.h" | sed 's/ = .*//')"
  tables="$tables $api/nccl.def"
else
  echo "no nccl.h here: nccl.def is not compared"
fi
{ # static assertions: whatever compiles is right
  echo '#include "cuda_headers.h"'
  for name in $names; do
    echo "static_assert((long)ours::$name == (long)::$name, \"$name\");"
  done
} | c++ -std=c++17 -fsyntax-only -Wall -Wno-deprecated-declarations -Werror $more -x c++ -isystem "$found" -I "$tests/.." -I "$tests" - &&
  echo "cuda_api agrees with $found: $(cat $tables | grep -c '^CUDA_API(') functions," \
    "$(echo $names | wc -w) constants"
