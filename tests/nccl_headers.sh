#!/bin/sh
# Compares nccl.def and nccl_api.h with the headers of NCCL in its Python wheels: of the first version for CUDA 13 and
# of the newest one. The configuration of a communicator differs between them. Skipped (77) if pip cannot download the
# wheels, or without the headers of CUDA.
tests=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in ==2.27.7 ''; do
  rm -rf "$work/wheel"
  python3 -m pip download --quiet --no-deps --only-binary=:all: -d "$work/wheel" "nvidia-nccl-cu13$version" ||
    { echo "skipped: no wheel of NCCL" && exit 77; }
  python3 -m zipfile -e "$work"/wheel/*.whl "$work/wheel" || exit 1
  sed -n 's/^#define NCCL_VERSION_CODE /NCCL /p' "$work/wheel/nvidia/nccl/include/nccl.h"
  NCCL_HEADERS=$work/wheel/nvidia/nccl/include "$tests/cuda_headers.sh" || exit $?
done
