#!/bin/sh
# Some kernels of the demo as CUDA C, with names in place of numbers. They should read like code written by hand.
# usage: tests/emit/demo.sh AMPC [--rewrite]
set -eu
ampc=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp)
trap 'rm -f "$work" "$work.cu"' EXIT
"$ampc" --emit=cuda models/fashion_mnist/fashion_mnist.amp >"$work.cu"
tests/canonical.py --shows features_0_1_channel_means_channel_squares features_1_batch_norm_relu_max_pool2d \
  features_2_1_batch_norm_relu <"$work.cu" >"$work"
if [ "${2-}" = --rewrite ]; then
  cp "$work" tests/emit/demo.expected
else
  diff -u --label tests/emit/demo.expected --label actual tests/emit/demo.expected "$work"
fi
