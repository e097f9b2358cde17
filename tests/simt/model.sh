#!/bin/sh
# The SIMT check of a model, made small as reduced.txt says; its kernels must be those of the model
# as it stands, by name.
# usage: tests/simt/model.sh AMPC SIMT_CHECK models/NAME/FILE.amp
set -u
ampc=$1
check=$2
model=$3
here=$(dirname "$0")
options=$(sed -n "s|^$model@||p" "$here/reduced.txt")
[ -n "$options" ] || options='--set train.batch=3'

kernels() { # kernels [options]: the names of those that are emitted
  "$ampc" "$@" --emit=cuda "$model" | sed -n 's/^__global__ void \([a-z0-9_]*\)(.*/\1/p' | sort
}
whole=$(kernels)
# shellcheck disable=SC2086 # the options are words
small=$(kernels $options)
if [ -z "$whole" ] || [ "$whole" != "$small" ]; then
  echo "FAILED: with $options the kernels are others than those of $model"
  exit 1
fi
# shellcheck disable=SC2086
exec "$check" $options "$model"
