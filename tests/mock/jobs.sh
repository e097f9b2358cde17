#!/usr/bin/env bash
# amp selftest --device cuda job.amp: the comparison of whole jobs passes on the mock, which sums in another order
# than the CPU, with room to spare; and it finds errors that are planted in the kernels of the device. Every run has the
# jobs in f16, a night also in f32 and bf16.
#   jobs.sh AMP MOCK PRECISION...
set -euo pipefail
amp=$(realpath "$1") mock=$(realpath "$2")
models=$(realpath "$(dirname "$0")/../../models")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
mlp=$models/fashion_mnist/mlp.amp

# compare STATUS OPTION...: prints the largest error of the comparison of jobs, in units of the bound; with status 0 the
# root mean square of the errors of gradients, because the largest of many depends on the processor's order of sums
compare() {
  local want=$1 got=0
  shift
  LD_LIBRARY_PATH=$mock timeout 900 "$amp" selftest --device cuda --filter ceil --brief --verbose "$@" >"$work/out" 2>&1 || got=$?
  [ $got -eq "$want" ] || { cat "$work/out" && echo "FAILED: status $got of $*" && exit 1; }
  local of=.*
  [ "$want" -ne 0 ] || of='.*gradient of .*'
  sed -n "s/^\(ok\|FAILED\): minimize: $of(error \([^ ]*\) of the bound)\$/\2/p" "$work/out" |
    awk -v mean=$((want == 0)) '{ e = $1 == "inf" || $1 ~ /nan/ ? 1e9 : $1 + 0; if (e > worst) worst = e; sum += e * e }
      END { if (!NR) exit 1; print mean ? sqrt(sum / NR) : worst }'
}
check() { # check NAME CONDITION ERROR: the condition is one of awk, for the error x
  awk -v x="$3" "BEGIN { exit !($2) }" || { cat "$work/out" && echo "FAILED: $1: an error of $3 bounds" && exit 1; }
  echo "ok: $1: $3 of the bound"
}

# Independent errors of equal length reach sqrt(2) / 4 of the bound: Note [bounds of jobs].
check "mlp f16" "x < 0.5" "$(compare 0 "$mlp")"
small='[[1,32,3,1,1],[32,32,2,2,0],[32,64,3,1,1],[64,64,2,2,0],[64,1024,3,1,1]]'
for precision in "${@:3}"; do
  [ $precision = f16 ] || check "mlp $precision, another seed" "x < 0.5" "$(compare 0 --set precision=$precision --seed 2 "$mlp")"
  check "mnist_cnn $precision" "x < 0.5" "$(compare 0 --set precision=$precision --set train.batch=16 -D "BLOCKS=$small" "$models/mnist_cnn/mnist_cnn.amp")"
done

planted() { # planted NAME FROM TO
  check "$1" "x > 2" "$(compare 5 --mutate "$2=>$3" "$mlp")"
}
planted "gradients of a layer's input 1 % too large" "relu_backward_at[j] = to_f16(" "relu_backward_at[j] = to_f16(R(1.01) * "
planted "no gradient of a bias" "bias_grad_at[j] += " "bias_grad_at[j] += 0 * "
planted "backward drops other elements" "stream, i, VECTOR_WIDTH(8)" "stream, i + 8, VECTOR_WIDTH(8)"
planted "an update 1 % too long" "w -= step * " "w -= R(1.01) * step * "

amp_says() { # amp_says TEXT OPTION...: wrong usage
  local text=$1 got=0
  shift
  "$amp" selftest "$@" >"$work/out" 2>&1 || got=$?
  [ $got -eq 2 ] && grep -q "$text" "$work/out" || { cat "$work/out" && echo "FAILED: status $got of $*" && exit 1; }
}
amp_says "there is none" --filter ceil --set precision=f16
amp_says "there is none" --filter ceil -D N=1
