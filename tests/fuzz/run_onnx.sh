#!/usr/bin/env bash
# Fuzzes amp import for SECONDS (60), starting from the models in tests/onnx/nets.
#   run_onnx.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/built.sh asan fuzz_onnx
corpus=build-asan/corpus-onnx
mkdir -p $corpus build-asan/found
cp tests/onnx/nets/*.onnx $corpus
build-asan/tests/fuzz_onnx -error_exitcode=1 -max_total_time="${1:-60}" -timeout=20 -rss_limit_mb=2048 \
  -max_len=65536 -artifact_prefix=build-asan/found/ -print_final_stats=1 $corpus
