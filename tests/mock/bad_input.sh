#!/usr/bin/env bash
# What can be wrong with a machine that should train on CUDA: one clear message each, its exit
# status, and the last checkpoint whole. NVIDIA's libraries are the mock's.
#   bad_input.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
mock=$(realpath "$3")

d=$work/data
small_data "$d"
small_job "$d/job.amp"
job=$d/job.amp

# train FOLDER OPTIONS...: with the libraries of that folder and a cache of its own
train() {
  local folder=$1
  shift
  rm -rf "$work/cache"
  XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$folder timeout 120 "$amp" train --device cuda "$@" "$job"
}
empty_library() { # empty_library FILE: loads and has no function
  echo 'int ampc_nothing;' | cc -shared -fPIC -x c - -o "$1"
}
# folder NAME FILE [WORD]: the mock's libraries, one of them not as it should be: broken, or empty
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

# ---- the driver ----------------------------------------------------------------------------------
folder no_driver libcuda.so.1 broken
refuses "no driver" 5 'no NVIDIA driver.*install the driver.*--device cpu' train "$work/no_driver"
folder driver_lacks libcuda.so.1 empty
refuses "a driver without a function" 5 'too old: it has no cuInit' train "$work/driver_lacks"
refuses "an old driver" 5 'driver is too old.*supports CUDA 11\.8, ampc needs 12\.0' \
  env MOCK_CUDA_DRIVER=11080 bash -c "$(declare -f train); work='$work' amp='$amp' job='$job'; train '$mock'"
