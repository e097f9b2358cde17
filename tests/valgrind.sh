#!/usr/bin/env bash
# What a compile of the demo costs, in instructions, and that it leaks nothing and reads nothing bad.
# A release build takes 60 million; the limit is three times that: work that grows with the square
# of the graph exceeds it. Times are in bench/compile.py: they depend on who else is at work.
#   valgrind.sh AMPC
set -euo pipefail
ampc=$(realpath "$1")
job=models/fashion_mnist/mlp.amp
limit=200000000
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
