#!/usr/bin/env bash
# Fuzzes the front end for some seconds, starting from every .amp file of the repository.
#   run.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
cmake --preset fuzz -G Ninja --log-level=WARNING >/dev/null
cmake --build build-fuzz --target fuzz_frontend
corpus=build-fuzz/corpus
mkdir -p $corpus build-fuzz/found
find compiler models tests -name '*.amp' -print0 | while IFS= read -r -d '' file; do
  { printf 'A' && cat "$file"; } >"$corpus/$(echo "$file" | tr / _)"
done
# Messages of the compiler are not wanted (mask 2); findings are printed all the same.
build-fuzz/tests/fuzz_frontend -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
  -max_len=8192 -dict=tests/fuzz/words.dict -artifact_prefix=build-fuzz/found/ -close_fd_mask=2 \
  -print_final_stats=1 $corpus
