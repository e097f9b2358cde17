#!/usr/bin/env bash
# What a compile of the demo may cost: 20 ms (the best of ten, so that a busy machine does not
# decide), and no leak or bad access under valgrind.
#   figures.sh AMPC
set -euo pipefail
ampc=$(realpath "$1")
job=models/fashion_mnist/mlp.amp
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
best=999999
for _ in 1 2 3 4 5 6 7 8 9 10; do
  begin=$(date +%s%N)
  "$ampc" -o "$out/mlp.cu" "$job"
  took=$((($(date +%s%N) - begin) / 1000))
  [ $took -lt $best ] && best=$took
done
echo "ampc takes $best us"
[ $best -lt 20000 ]
for arguments in "-o $out/mlp.cu" "-o $out/mlp.c" "--emit=ast" "--emit=params" "--set precision=bad"; do
  status=0
  # shellcheck disable=SC2086
  valgrind -q --leak-check=full --show-leak-kinds=all --error-exitcode=99 \
    "$ampc" $arguments "$job" >"$out/stdout" 2>"$out/stderr" || status=$?
  echo "valgrind ampc $arguments: exit status $status"
  if [ $status -eq 99 ]; then
    cat "$out/stderr"
    exit 1
  fi
done
