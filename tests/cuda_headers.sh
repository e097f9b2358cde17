#!/bin/sh
# driver.def, blas.def, nvrtc.def and cuda_api.h against NVIDIA's own headers, where they are: the same
# functions, parameters, structs and constants. Skips (77) without the headers or a C++ compiler.
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
names=$(grep -o 'CU[A-Za-z0-9_]* = [0-9]*' "$api/cuda_api.h" | sed 's/ = .*//')
[ -n "$names" ] || { echo "FAILED: no constants in cuda_api.h"; exit 1; }
{ # static assertions: what compiles is right
  echo '#include "cuda_headers.h"'
  for name in $names; do
    echo "static_assert((long)ours::$name == (long)::$name, \"$name\");"
  done
} | c++ -std=c++17 -fsyntax-only -Wall -Werror -x c++ -isystem "$found" -I "$tests/.." -I "$tests" - &&
  echo "cuda_api agrees with $found: $(cat "$api/driver.def" "$api/blas.def" "$tests/../compiler/nvrtc/nvrtc.def" | grep -c '^CUDA_API(') functions," \
    "$(echo "$names" | wc -l) constants"
