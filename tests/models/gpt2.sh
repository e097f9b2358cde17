#!/usr/bin/env bash
# GPT-2: its size, that both sizes compile with no data present, and that a small one reads llm.c's shards and raw tokens alike,
# refuses a token that it has no row for, and trains to the same bytes with and without recomputation.
#   gpt2.sh AMPC AMP
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
job=$(realpath models/gpt2/gpt2.amp)
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
cd "$d"

fail() { echo "FAILED: $1" && exit 1; }
total() { "$ampc" "$job" "$@" --emit=params | tail -1; }
[ "$(total)" = "total 124439808 parameters" ] || fail "$(total)"
xl=(-D LAYERS=48 -D HEADS=25 -D C=1600)
[ "$(total "${xl[@]}")" = "total 1557611200 parameters" ] || fail "$(total "${xl[@]}")"
"$ampc" "$job" "${xl[@]}" -o xl.cu

python3 - <<'PY'
import struct
tokens = [i * i % 61 for i in range(2000)]
for split in ("train", "val"):
    raw = struct.pack("<2000H", *tokens)
    open(f"raw_{split}_0.bin", "wb").write(raw)
    open(f"shard_{split}_0.bin", "wb").write(struct.pack("<256i", 20240520, 1, 2000, *[0] * 253) + raw)
    open(f"wrong_{split}_0.bin", "wb").write(struct.pack("<2000H", *tokens[:777], 61, *tokens[778:]))
PY
small=(-D LAYERS=2 -D HEADS=2 -D C=32 -D T=16 -D V=61 -D BATCH=4 -D ACCUMULATE=2 --set eval.steps=2 --steps 6 --device cpu --quiet)
for data in raw shard; do "$amp" train "$job" --data-dir "$d" -D DATA="$data"_ "${small[@]}" --save "$data" >"$data.log"; done
"$amp" train "$job" --data-dir "$d" -D DATA=raw_ "${small[@]}" -D RECOMPUTE=true --save again >again.log
cmp raw.log shard.log && cmp raw.log again.log || fail "losses differ"
cmp <(tail -c 60000 raw) <(tail -c 60000 again) || fail "recomputation changes the weights"
if "$amp" train "$job" --data-dir "$d" -D DATA=wrong_ "${small[@]}" --save no 2>err; then fail "a wrong token is taken"; fi
grep -q 'wrong_train_\*.bin: sample 48, element 9, is 61, expected 0 to 60 (rows of embedding' err || { cat err && exit 1; }
echo ok
