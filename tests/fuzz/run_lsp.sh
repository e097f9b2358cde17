#!/usr/bin/env bash
# Fuzzes amp lsp for SECONDS (60), starting from sessions about the jobs in tests/passes.
#   run_lsp.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset fuzz -G Ninja --log-level=WARNING >/dev/null
cmake --build build-fuzz --target fuzz_lsp
corpus=build-fuzz/corpus-lsp
mkdir -p $corpus build-fuzz/found
tests/fuzz/lsp_corpus.py $corpus tests/passes/*.amp
build-fuzz/tests/fuzz_lsp -error_exitcode=1 -max_total_time="${1:-60}" -timeout=60 -rss_limit_mb=2048 \
  -max_len=32768 -dict=tests/fuzz/words.dict -artifact_prefix=build-fuzz/found/ -print_final_stats=1 $corpus
