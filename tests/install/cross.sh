#!/usr/bin/env bash
# A job is emitted here and built for a board, and the board's program runs in qemu: by the build line, and by
# ampc_add_job under a toolchain file.
#   cross.sh AMPC AMP BUILD_FOLDER
build=$(realpath "$3")
. "$(dirname "$0")/../faults/lib.sh"
arm=$source_dir/build-aarch64
(cd "$source_dir" && tests/built.sh aarch64 sanitized ampc_shared pages) >"$work/out" 2>&1 || failed "the build for 64-bit Arm"
cmake --install "$build" --prefix "$work/pc" >"$work/out" 2>"$work/err" || failed "cmake --install"
cd "$work" || exit 1
small_data data
small_job data/job.amp
passes "ampc" pc/bin/ampc -o job.c data/job.amp
line() { pc/bin/ampc --build-line --cross aarch64 -o job.c "$@" data/job.amp; }
refuses "a level of x86-64" 2 '--march=x86-64-v3 is not for --cross aarch64; omit it for armv8-a' line --march=x86-64-v3
refuses "the level of this machine" 2 'omit it for armv8-a' line --march=native
refuses "no archive" 3 '--fsys-tarfile ampc_[0-9.]*_arm64\.deb \| tar' line

# ---- the package for arm64; the message above says how to take the archive from it ----
passes "cpack" cpack --config "$arm/CPackConfig.cmake" -B packages
deb=$(echo packages/ampc_*_arm64.deb)
passes "the package" dpkg -x "$deb" arm
cure=$(line 2>&1 | sed -n "s|.*: \(dpkg .*\)|\1|p")
passes "the cure" sh -c "cd packages && $cure"
passes "the program is built" sh -c "$(line)"
passes "it trains" qemu-aarch64 ./job -q --device cpu --steps 2 --data-dir data
passes "the program for a level is built" sh -c "$(line --march=armv8.2-a+fp16)"
passes "it trains" qemu-aarch64 ./job -q --device cpu --steps 2 --data-dir data
passes "ampc without oneDNN" pc/bin/ampc --no-onednn -o own.c data/job.amp
passes "a static program without oneDNN" sh -c "$(pc/bin/ampc --no-onednn --build-line --static --cross aarch64 -o own.c data/job.amp)"
passes "it trains" qemu-aarch64 ./own -q --seed 1 --steps 3 --data-dir data --save there
passes "amp trains" "$amp" train -q --device cpu --no-onednn --seed 1 --steps 3 --save here data/job.amp
same "the same bits on both processors" there here

# ---- a project ----
cat >board.cmake <<'CMAKE'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
CMAKE
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(own C)
find_package(ampc 0.1 REQUIRED)
ampc_add_job(train data/job.amp OPTIONS --set opt.lr=0.05)
CMAKE
for prefix in pc arm/usr; do # beside the ampc of this machine; alone, and that ampc in PATH
  folder=built-${prefix%%/*}
  passes "find_package, $prefix" env PATH="$work/pc/bin:$PATH" cmake -B "$folder" -DCMAKE_TOOLCHAIN_FILE=board.cmake -DCMAKE_PREFIX_PATH="$work/$prefix"
  passes "the project is built" cmake --build "$folder"
  passes "its program trains" qemu-aarch64 "$folder/train" -q --device cpu --steps 2 --data-dir data
done
fails() { # fails NAME PATTERN CMAKE_OPTION...
  cmake -B wrong -DCMAKE_TOOLCHAIN_FILE=board.cmake "${@:3}" >out 2>&1 && failed "$1"
  grep -q -e "$2" out || failed "$1: $(cat out)"
  rm -rf wrong
}
fails "the package for this machine" 'lib/aarch64-linux-gnu/cmake/ampc' -Dampc_DIR="$build"
fails "no ampc for this machine" '-DAMPC_PROGRAM=FILE' -DCMAKE_PREFIX_PATH="$work/arm/usr"
finish
