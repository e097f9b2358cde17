#!/usr/bin/env bash
# Fuzzes records and templates of chats for SECONDS (60), starting from those of tests/texts.
#   run_chats.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/built.sh asan fuzz_chats
corpus=build-asan/corpus-chats
mkdir -p $corpus build-asan/found
PYTHONPATH=tests/texts python3 - $corpus <<'END'
import json, sys
from chats_lib import RECORDS, WITH_SYSTEM, tokenizer
open("build-asan/chatml.json", "w", encoding="utf-8").write(tokenizer("chatml"))
for i, record in enumerate(RECORDS + WITH_SYSTEM):
    for template in ("", "mistral", "plain", "<|end|>{prompt}\r{answer}<|end|>"):
        with open(f"{sys.argv[1]}/{i}{template[:5]}", "w", encoding="utf-8") as f:
            f.write(template + "\n" + json.dumps({"messages": record}, ensure_ascii=False))
with open(sys.argv[1] + "/prompt", "w", encoding="utf-8") as f:
    f.write('plain\n{"prompt": "a\\u0000", "answer": "b", "id": [1, {}]}')
END
build-asan/tests/fuzz_chats -error_exitcode=1 -max_total_time="${1:-60}" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=2048 \
  -max_len=8192 -artifact_prefix=build-asan/found/ -print_final_stats=1 $corpus
