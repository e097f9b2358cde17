#!/bin/sh
# The SIMT check of a model that reduced.txt makes small. Its kernels must compute the same ops as those of the full
# model. (Which ops share a kernel may depend on sizes.)
# usage: tests/simt/model.sh AMPC SIMT_CHECK models/NAME/FILE.amp [OPTION...]   options of simt_check, such as --ptx
set -u
ampc=$1
check=$2
model=$3
shift 3
here=$(dirname "$0")
options=$(sed -n "s|^$model@||p" "$here/reduced.txt")
[ -n "$options" ] || options='--set train.batch=3'

ops() { # ops [options]: the ops that emitted kernels compute
  "$ampc" "$@" --emit=cuda "$model" | # a long list continues in lines with a deeper indent
    awk '/^\/\/   [a-z]/ {on = $2 == "nodes"} !/^\/\/ / {on = 0} on' | grep -o '%[0-9]* [a-z0-9_]*' |
    cut -d' ' -f2 | sort -u
}
whole=$(ops)
# shellcheck disable=SC2086 # the options are words
small=$(ops $options)
if [ -z "$whole" ] || [ "$whole" != "$small" ]; then
  echo "FAILED: with $options the kernels compute other ops than those of $model"
  exit 1
fi
# shellcheck disable=SC2086
exec "$check" "$@" $options "$model"
