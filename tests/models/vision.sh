#!/usr/bin/env bash
# A small image model learns from folders of PNG files made from Fashion-MNIST.
#   vision.sh AMP JOB PRECISION LEAST [OPTION...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
amp=$(realpath "$1") job=$2 precision=$3 least=$4
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/pictures.py" "$work" 100 32
"$here/accuracy.sh" "$amp" "$job" "$precision" "$least" -D DIR="$work/" -D SIZE=32 --set train.batch=32 --set eval.batch=100 "$@"
