#!/usr/bin/env bash
# GPT-2: the parameter counts of two sizes, which compile without data. A small GPT-2 reads llm.c's
# shards and raw tokens with the same result, refuses a token out of range, and trains to the same
# bytes with and without recomputation. It continues a text in the same way with its own weights and
# with weights in Hugging Face's layout. The memory of a step is the number in the README.
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
planned() { "$ampc" "$job" --emit=memory "$@" | tail -1 | awk '{ gsub(",", "", $1); printf "%.1f GB\n", $1 / 1e9 }'; }
for recompute in false true; do
  gb=$(planned -D RECOMPUTE=$recompute)
  grep -q "| $gb |" "$(dirname "$job")/README.md" || fail "the README does not say $gb"
done

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
if "$amp" train "$job" --data-dir "$d" -D DATA=wrong_ "${small[@]}" --save no 2>err; then fail "a wrong token is accepted"; fi
grep -q 'wrong_train_\*.bin: sample 48, element 9, is 61, expected 0 to 60 (rows of embedding' err || { cat err && exit 1; }

python3 - raw model.safetensors <<'PY' # [out, in] -> [in, out], the layout of Hugging Face's Conv1D
import array, json, re, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack_from("<Q", data)[0]
header, out, body = json.loads(data[8 : 8 + n]), {}, b""
for name, t in header.items():
    if not re.fullmatch(r"(w|h|ln_f).*(weight|bias)", name):
        continue
    begin, end = t["data_offsets"]
    x = array.array("f", data[8 + n + begin : 8 + n + end])
    shape = t["shape"]
    if re.fullmatch(r"h.*c_.*weight", name):
        x = array.array("f", (v for i in range(shape[1]) for v in x[i :: shape[1]]))
        shape = shape[::-1]
    out[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + 4 * len(x)]}
    body += x.tobytes()
for layer in range(2): # the mask of causal attention
    out[f"h.{layer}.attn.bias"] = {"dtype": "F32", "shape": [1, 1, 1, 1], "data_offsets": [len(body), len(body) + 4]}
    body += bytes(4)
head = json.dumps(out).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(head)) + head + body)
open("prompt.bin", "wb").write(struct.pack("<3H", 3, 9, 16))
PY
text() { "$amp" infer -q --device cpu "${net[@]}" --generate 20 --temperature 0 --prompt-file prompt.bin "$(dirname "$job")/generate.amp" "$@"; }
net=(-D LAYERS=2 -D HEADS=2 -D C=32 -D T=16 -D V=61)
text --weights raw >own
text -D WEIGHTS="$d/model.safetensors" >theirs
[ "$(wc -w <own)" = 23 ] || fail "20 tokens after 3: $(cat own)"
cmp own theirs || fail "Hugging Face's layout gives another text"
echo ok
