#!/usr/bin/env bash
# Fuzzes the readers of tokenizers, encoding and decoding for SECONDS (60), starting from the tokenizers and texts of
# tests/tokenizers/fixtures.
#   run_tokenizers.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/built.sh asan fuzz_tokenizers
corpus=build-asan/corpus-tokenizers
mkdir -p $corpus build-asan/found
python3 - $corpus <<'END'
import glob, json, os, sys
for path in glob.glob("tests/tokenizers/fixtures/*.json") + glob.glob("tests/tokenizers/fixtures/*.model"):
    name = os.path.basename(path)
    if name.endswith(".model"):
        open(os.path.join(sys.argv[1], name), "wb").write(open(path, "rb").read())
    elif not name.endswith("ids.json") and name != "texts.json":  # a small vocabulary, so that mutations hit the rest
        t = json.load(open(path, encoding="utf-8"))
        vocab = t["model"]["vocab"]
        used = {a["content"] for a in t["added_tokens"]}
        if isinstance(vocab, dict):
            t["model"]["vocab"] = {s: i for i, s in enumerate(s for s in vocab if len(s) < 2 or s in used)}
            t["model"].update({"merges": []} if "merges" in t["model"] else {})
        else:
            t["model"]["vocab"] = vocab[:40]
        ids = t["model"]["vocab"] if isinstance(vocab, dict) else {s: i for i, (s, _) in enumerate(vocab[:40])}
        new = [a for a in t["added_tokens"] if a["content"] not in ids]
        for a in t["added_tokens"]:
            a["id"] = ids[a["content"]] if a["content"] in ids else len(ids) + new.index(a)
        json.dump(t, open(os.path.join(sys.argv[1], name), "w", encoding="utf-8"), ensure_ascii=False, separators=(",", ":"))
for i, text in enumerate(json.load(open("tests/tokenizers/fixtures/texts.json", encoding="utf-8"))):
    open(os.path.join(sys.argv[1], f"text{i}"), "wb").write(bytes([i]) + text.encode())
END
build-asan/tests/fuzz_tokenizers -error_exitcode=1 -max_total_time="${1:-60}" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=2048 \
  -max_len=32768 -artifact_prefix=build-asan/found/ -print_final_stats=1 $corpus
