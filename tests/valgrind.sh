#!/usr/bin/env bash
# Measures the instructions of a compile of the demo, and checks that it leaks nothing and reads no invalid memory. A
# release build takes 25 million instructions. The limit is four times that, which work quadratic in the size of the
# graph exceeds. bench/compile.py measures times, because they depend on the load of the machine.
#   valgrind.sh AMPC
set -euo pipefail
ampc=$(realpath "$1")
job=models/fashion_mnist/mlp.amp
limit=100000000
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
valgrind --tool=callgrind --callgrind-out-file=/dev/null "$ampc" -o "$out/mlp.cu" "$job" 2>"$out/count"
count=$(sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' "$out/count")
echo "ampc takes $count instructions, at most $limit"
[ "$count" -le "$limit" ]
want=0
for arguments in "-o $out/mlp.cu" "-o $out/mlp.c" "--emit=ast" "--emit=params" "--set precision=bad"; do
  status=0
  [ "$arguments" = "--set precision=bad" ] && want=1
  # shellcheck disable=SC2086
  valgrind -q --leak-check=full --show-leak-kinds=all --error-exitcode=99 \
    "$ampc" $arguments "$job" >"$out/stdout" 2>"$out/stderr" || status=$?
  echo "valgrind ampc $arguments: exit status $status"
  if [ $status -ne $want ]; then
    cat "$out/stderr"
    exit 1
  fi
done
