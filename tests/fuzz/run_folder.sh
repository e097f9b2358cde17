#!/usr/bin/env bash
# Fuzzes amp import of folders and GGUF files for SECONDS (60), starting from tests/folder/nets.
#   run_folder.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/built.sh asan fuzz_folder
corpus=build-asan/corpus-folder
mkdir -p $corpus build-asan/found
for net in tests/folder/nets/*; do
  cp "$net/config.json" "$corpus/${net##*/}.json"
done
PYTHONPATH=tests/folder python3 - $corpus <<'END'
import sys
import refused
for i, (data, _) in enumerate(refused.GGUFS):
    open(f"{sys.argv[1]}/{i}.gguf", "wb").write(data)
tokens = [refused.pair("tokenizer.ggml.model", refused.TEXT, "llama"), refused.pair("tokenizer.ggml.unknown_token_id", refused.U32, 0),
          refused.pair("tokenizer.ggml.tokens", refused.LIST, (refused.TEXT, ["a", "b", "ab"])),
          refused.pair("tokenizer.ggml.scores", refused.LIST, (refused.F32, [0.0, 0.0, 1.0]))]
open(f"{sys.argv[1]}/tokens.gguf", "wb").write(refused.arch(*tokens))
END
build-asan/tests/fuzz_folder -error_exitcode=1 -max_total_time="${1:-60}" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=2048 \
  -max_len=8192 -artifact_prefix=build-asan/found/ -print_final_stats=1 $corpus
