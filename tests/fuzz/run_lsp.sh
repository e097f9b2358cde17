#!/usr/bin/env bash
# Fuzzes amp lsp for SECONDS (60), starting from sessions about the jobs in tests/passes.
#   run_lsp.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/built.sh asan fuzz_lsp
corpus=build-asan/corpus-lsp
mkdir -p $corpus build-asan/found
tests/fuzz/lsp_corpus.py $corpus tests/passes/*.amp
build-asan/tests/fuzz_lsp -error_exitcode=1 -max_total_time="${1:-60}" -timeout=60 -rss_limit_mb=2048 \
  -max_len=32768 -dict=tests/fuzz/words.dict -artifact_prefix=build-asan/found/ -print_final_stats=1 $corpus
