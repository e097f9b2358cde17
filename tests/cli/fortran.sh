#!/usr/bin/env bash
# The module of --emit=fortran: it is Fortran 2008, and callers in Fortran and in C get the same bits. Names that Fortran
# does not have are refused. examples/fortran is built by CMake and run.
#   fortran.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
fortran() { gfortran -std=f2008 -pedantic -Wall -Wextra -Werror -Wno-compare-reals "$@"; }
libraries="-L$(dirname "$ampc") -lampcrt -lz -ljansson -lxxhash -lpthread -ldl -lm"

# ---- a loop: the same samples in both languages give the same checkpoint ----
cp "$source_dir/examples/surrogate/surrogate.amp" .
passes "the library" "$ampc" --library --no-onednn -o surrogate.c surrogate.amp
passes "the module" "$ampc" -o surrogate.f90 surrogate.amp
passes "the module again" "$ampc" -o surrogate.f90 surrogate.amp
passes "the header" "$ampc" -o surrogate.h surrogate.amp
[ "$(wc -L <surrogate.f90)" -le 132 ] || failed "a line has more than 132 characters"
passes "the object" sh -c "$("$ampc" --library --no-onednn --build-line -o surrogate.c surrogate.amp)"
cat >call.f90 <<'F'
program call
  use, intrinsic :: iso_c_binding
  use surrogate
  implicit none
  integer, parameter :: n = surrogate_step_samples
  real(c_float) :: x(3, n), y(1, n), out(1, n)
  type(c_ptr) :: net, none
  type(surrogate_metrics) :: mean
  type(surrogate_state) :: state
  integer :: i
  if (surrogate_open("cpu", "gone.safetensors", rt=none) /= 3) stop 1
  if (index(surrogate_error(), "gone.safetensors") == 0) stop 2
  if (surrogate_precision() /= "bf16") stop 3
  if (surrogate_create("cpu  ", 1_c_int64_t, rt=net) /= 0) stop 4
  if (surrogate_set(net, "opt.eps", 1e-7_c_double) /= 0) stop 5
  if (surrogate_set(net, "opt.none", 0.1_c_double) /= 2) stop 6
  do i = 1, 20
    x = reshape([(mod(i * 7, 16) / 16.0, i = 1, 3 * n)], [3, n])
    y(1, :) = x(1, :) - x(3, :)
    if (surrogate_step(net, surrogate_step_samples, x, y) /= 0) stop 7
  end do
  if (surrogate_step(net, 3_c_int64_t, x, y) /= 2) stop 8
  if (surrogate_get_metrics(net, mean) /= 0 .or. .not. mean%loss > 0) stop 9
  if (surrogate_get_state(net, state) /= 0 .or. state%steps /= 20) stop 10
  if (surrogate_predict(net, x, out) /= 0) stop 11
  if (surrogate_save(net, "fortran.safetensors") /= 0) stop 12
  if (surrogate_save_weights(net, "weights.safetensors") /= 0) stop 13
  if (surrogate_load(net, "fortran.safetensors") /= 0) stop 14
  open (10, file="fortran.bits", access="stream", form="unformatted")
  write (10) out
  close (10)
  call surrogate_close(net)
end program
F
sed -i 's/do i = 1, 20/do k = 1, 20/; s/integer :: i$/integer :: i, k/' call.f90
cat >call.c <<'C'
#include <stdio.h>
#include "surrogate.h"
int main(void)
{
  enum { N = SURROGATE_STEP_SAMPLES };
  static float x[N][3], y[N], out[N];
  struct ampc_runtime *net;
  if (surrogate_create("cpu", 1, NULL, &net) || surrogate_set(net, "opt.eps", 1e-7)) return 1;
  for (int i = 0; i < N * 3; i++) x[0][i] = (float)((i + 1) * 7 % 16) / 16;
  for (int i = 0; i < N; i++) y[i] = x[i][0] - x[i][2];
  for (int i = 0; i < 20; i++)
    if (surrogate_step(net, N, *x, y)) return 2;
  if (surrogate_predict(net, *x, out) || surrogate_save(net, "c.safetensors")) return 3;
  FILE *f = fopen("c.bits", "wb");
  return !f || fwrite(out, sizeof out, 1, f) != 1 || fclose(f);
}
C
# shellcheck disable=SC2086 # words
passes "the caller in Fortran" fortran -o callf surrogate.f90 call.f90 surrogate.o $libraries
# shellcheck disable=SC2086
passes "the caller in C" cc -I. -o callc call.c surrogate.o $libraries
passes "Fortran" ./callf
passes "C" ./callc
same "the same checkpoint" fortran.safetensors c.safetensors
same "the same results" fortran.bits c.bits

# ---- every type, sizes of the call, classes ----
long=$(printf 'x%.0s' $(seq 50))
cat >"$long.amp" <<'AMP'
dim N(max=4)
model net = Linear(2, 2) { load("net.safetensors") }
infer open(double: f32[2, 3], int8: u8[2], k: i64[2], h: f16[2], b: bool[2], i: i32[]) {
  return double + 1.0, int8, k, h, b, i
}
infer sized(x: f32[N, 2]) -> f32[N, 2] { return net(x) }
AMP
printf 'weight F32 [2,2] 1 2 3 4\nbias F32 [2] 0.5 0\n' | "$source_dir/tests/cli/weights.py" net.safetensors
passes "the library of types" "$ampc" --library --no-onednn --dim N=2,4 -o types.c "$long.amp"
passes "its module" "$ampc" --dim N=2,4 -o types.f90 "$long.amp"
[ "$(wc -L <types.f90)" -le 132 ] || failed "a line of types.f90 has more than 132 characters"
passes "its object" sh -c "$("$ampc" --library --no-onednn --build-line -o types.c "$long.amp")"
cat >types_call.f90 <<F
program types_call
  use, intrinsic :: iso_c_binding
  use $long
  implicit none
  type(c_ptr) :: net
  real(c_float) :: d(3, 2) = reshape([1, 2, 3, 4, 5, 6], [3, 2]), od(3, 2), x(2, 2) = 1, y(2, 2)
  integer(c_int8_t) :: u(2) = [3_c_int8_t, -6_c_int8_t], ou(2), b(2) = [0_c_int8_t, 1_c_int8_t], ob(2)
  integer(c_int64_t) :: k(2) = [-5_c_int64_t, 2_c_int64_t**60], ok(2)
  integer(c_int16_t) :: h(2) = [15360_c_int16_t, -16384_c_int16_t], oh(2)
  integer(c_int32_t) :: i = -7, oi
  if (${long}_open("cpu", rt=net) /= 0) stop 1
  if (${long}_open_(net, d, u, k, h, b, i, od, ou, ok, oh, ob, oi) /= 0) stop 2
  if (any(od /= d + 1) .or. any(ou /= u) .or. any(ok /= k) .or. any(oh /= h) .or. any(ob /= b) .or. oi /= i) stop 3
  if (${long}_sized(net, 2_c_int64_t, x, y) /= 0) stop 4
  if (any(y(:, 1) /= [3.5, 7.0])) stop 5
  if (${long}_sized(net, 3_c_int64_t, x, y) /= 2) stop 6
  call ${long}_close(net)
end program
F
# shellcheck disable=SC2086
passes "types in Fortran" fortran -o types types.f90 types_call.f90 types.o $libraries
passes "types" ./types
cat >names.f90 <<'F'
program names
  use iris
  if (iris_class_name(0) /= "setosa" .or. iris_class_name(2) /= "virginica") stop 1
end program
F
iris=$source_dir/examples/iris/iris.amp
passes "the library of classes" sh -c "'$ampc' --library --no-onednn -o iris.c '$iris' && '$ampc' -o iris.f90 '$iris' &&
  $("$ampc" --library --no-onednn --build-line -o iris.c "$iris")"
# shellcheck disable=SC2086
passes "classes in Fortran" fortran -o names iris.f90 names.f90 iris.o $libraries
passes "classes" ./names

# ---- names that Fortran does not have ----
wrong() { # wrong NAME JOB PATTERN: a job of infer blocks
  echo "${*:4}" >"$2.amp"
  refuses "$1" 1 "error\[E803\].*$3" "$ampc" --emit=fortran "$2.amp"
}
wrong "two cases of one name" case '`case_Value` and `case_value` as one name' \
  'infer Value(x: f32[4]) { return x }; infer value(x: f32[4]) { return -x }'
wrong "two cases of an argument" two '`in_X` and `in_x` as one name' 'infer f(X: f32[4], x: f32[4]) { return x + X }'
wrong "a long name" long "has 65 characters" "infer ${long}xxxxxxxxxx(x: f32[4]) { return x }"
wrong "a very long argument" argument "has 153 characters" "infer f($long$long$long: f32[4]) { return $long$long$long }"
wrong "a name without a letter" _job 'begins with `_`' 'infer f(x: f32[4]) { return x }'
wrong "a name of iso_c_binding" c '`c_ptr` and `c_ptr` as one name' 'infer ptr(x: f32[4]) { return x }'
passes "nothing is written" "$ampc" --emit=header case.amp
echo edited >>surrogate.f90
refuses "an edited module" 3 'surrogate.f90 was edited' "$ampc" -o surrogate.f90 surrogate.amp

# ---- the example ----
passes "cmake" cmake -S "$source_dir/examples/fortran" -B example -Dampc_DIR="$(dirname "$ampc")"
passes "builds" cmake --build example
passes "runs" ./example/loop example.safetensors
grep -q '^step 2000: loss 0\.00' out && [ -s example.safetensors ] || failed "the example learns nothing"
finish
