#!/usr/bin/env bash
# A step reads only values that were written for it. Memory is overwritten as soon as its value is
# dead; the models whose data are in Debian then train and evaluate to the same bits, with and
# without fusion.
#   poison.sh AMP PRECISION...
set -euo pipefail
amp=$(realpath "$1")
precisions=("${@:2}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $1" && exit 1; }
train() { # train NAME JOB OPTIONS...: writes the checkpoint NAME and the output NAME.out
  local name=$1 job=$2
  shift 2
  "$amp" train --device cpu --quiet --seed 3 --steps 3 --set eval.steps=1 "$@" \
    --save "$folder/$name" "$job" >"$folder/$name.out"
}
for job in models/{fashion_mnist,mnist_cnn}/*.amp; do # whose data are in Debian
  batch=16
  [ "$(basename "$job")" = mnist_cnn.amp ] && batch=4
  for precision in "${precisions[@]}"; do
    for level in -O0 -O2; do
      set -- --set train.batch=$batch --set eval.batch=$batch --set precision=$precision $level
      train plain "$job" "$@"
      train poisoned "$job" "$@" --poison --check-memory
      cmp "$folder/plain" "$folder/poisoned" || fail "$job $precision $level: other weights"
      cmp "$folder/plain.out" "$folder/poisoned.out" || fail "$job $precision $level: other results"
      grep -q '^eval' "$folder/plain.out" || fail "$job: no result"
      echo "ok: $job $precision $level"
    done
  done
done
