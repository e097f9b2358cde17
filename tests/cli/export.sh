#!/usr/bin/env bash
# amp export: command lines, what ONNX cannot express, overwriting, equal bytes. tests/onnx/ compares results.
#   export.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
out() { "$amp" export --force -o net.onnx "$@"; }

cat >job.amp <<'JOB'
const BATCH = 4
dim S(max=64)
module Net {
  table = Parameter([4, 3])
  x = Parameter([4])
  head = Linear(3, 2)
  def forward(y) { return head((y + x) @ table) }
}
model net = Net() { init("table", normal_()); init("x", normal_()) }
data points() { return csv("points.csv", ["a", "b", "c", "d"]), csv("points.csv", "k", dtype=i64, classes=["no", "y\"es"]) }
optimizer opt = SGD(net, lr=0.1)
train y, k in points() with batch=2, steps=2, save="c.safetensors" { minimize cross_entropy(net(y), k) with opt }
infer scores(x: f32[BATCH, 4]) -> float[BATCH, 2] { return net(x) }
infer last(x: f32[1, S, 4]) -> float[1, 2] { return net(x)[:, -1] }
infer noise(x: f32[4]) -> f32[4] { return x + rand(4) }
JOB
printf 'a,b,c,d,k\n1,2,3,4,no\n2,2,3,4,y"es\n3,2,3,4,no\n5,2,3,4,no\n' >points.csv
passes "training" "$amp" train -q --device cpu job.amp

# ---- command lines ------------------------------------------------------------------------------------
refuses "no output" 2 'expected -o FILE' "$amp" export --block scores job.amp
refuses "no block" 2 'block' out --resume c.safetensors job.amp
refuses "no weights" 2 'the weights are missing' out --block scores job.amp
refuses "no such file of weights" 3 'none.safetensors' out --block scores --resume none.safetensors job.amp
passes "a block" out --block scores --resume c.safetensors job.amp
grep -q '^net.onnx: [0-9]* operations, opset 18, any BATCH$' out || failed "the report names the size of the caller"
cp net.onnx first.onnx
passes "a block again, quietly" out -q --block scores --resume c.safetensors job.amp
[ ! -s out ] || failed "--quiet prints"
cmp -s net.onnx first.onnx || failed "two exports differ"
for text in '["no","y\"es"]' 'head.weight' 'x.f32' BATCH; do
  grep -qaF "$text" net.onnx || failed "the model has no $text"
done
passes "a dim and another precision" out --block last --set precision=bf16 --resume c.safetensors job.amp
grep -q 'opset 22, any S$' out || failed "the report names the dim and the opset of bf16"
passes "a given size" out --block last --dim S=8 --resume c.safetensors job.amp
grep -q 'opset 18$' out || failed "a size of the command line is fixed"
passes "random numbers" out --block noise --resume c.safetensors job.amp
grep -q '^warning: net.onnx draws other random numbers' err || failed "no warning about random numbers"

# ---- files --------------------------------------------------------------------------------------------
export_to() { "$amp" export --block scores --resume c.safetensors -o "$1" job.amp; }
passes "a model of amp export is replaced" export_to net.onnx
echo notes >notes.onnx
refuses "another file" 3 'is no ONNX model of amp export' export_to notes.onnx
refuses "an input" 2 'c.safetensors' out -o c.safetensors --block scores --resume c.safetensors job.amp
refuses "no folder" 3 'none/net.onnx' export_to none/net.onnx
python3 - <<'PY'
import json, struct
b = open("c.safetensors", "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
h["net.head.wait"] = h.pop("head.weight")
text = json.dumps({k: v for k, v in h.items() if k != "__metadata__"}).encode()
open("part.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + b[8 + n:])
PY
refuses "a missing weight" 3 'head.weight' out --block scores --resume part.safetensors job.amp

# ---- what ONNX cannot express: each block of wrong.amp, with its message --------------------------------
cat >wrong.amp <<'JOB'
dim S(max=64)
op twice(x: float[N]) -> (y: float[N]) {
  host = "for (int64_t i = 0; i < N; i++) y[i] = 2 * x[i];"
}
infer products(x: f32[4]) { return cumprod(x, 0) }                   # E801 no op for `cumprod`
infer windows(x: f32[1, 1, 5, 5]) { return adaptive_avg_pool2d(x, 3) } # E801 windows of several sizes
infer places(x: f32[1, 1, 4, 4]) { return max_pool2d(x, 2, return_indices=true)[1] } # E801 the indices of windows
infer slope(x: f32[4]) { return grad(sigmoid(x).sum(), x) }            # E801 no op for `sigmoid_backward`
infer own(x: f32[4]) { return twice(x) }                     # E801 no op for `twice`
infer half(x: f32[S]) { return x[: S // 2 + 1] }                     # E801 \(4 with S = 7\) is no product
infer pooled(x: f32[1, 1, S, 8]) { return max_pool2d(x, [S, 1]) }    # E801 its `kernel0` depends on a size
infer small(x: f32[S]) { return x.mean() if S > 4 else x.sum() }     # E802 with S = 3 the block has other operations
infer large(x: f32[S]) { return x.sum() if S < 50 else x.sum() + 1 } # E802 the block has
JOB
cat >tied.amp <<'JOB'
const BATCH = 4
module Sized { weight = Parameter([BATCH, 4]) }
model net = Sized() { init("weight", ones_()) }
infer tied(x: f32[BATCH, 4]) { return x * net.weight }
JOB
python3 - <<'PY'
import struct
text = b'{"weight":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}}'
open("sized.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(64))
PY
refuses "a weight of the batch" 1 '^tied.amp:2:.*E801.*the shape of weight depends on a size' out --resume sized.safetensors tied.amp
passes "a weight of a given batch" out -D BATCH=4 --resume sized.safetensors tied.amp
while read -r _ block rest; do
  line=$(grep -n "^infer ${block%%(*}(" wrong.amp | cut -d: -f1)
  read -r code text <<<"${rest##*# }"
  refuses "${block%%(*}" 1 "^wrong.amp:$line:[0-9]*: error\[$code\]: .*$text" out --block "${block%%(*}" wrong.amp
done < <(grep ^infer wrong.amp)
grep -q 'help: export it for one size: `--dim S=64`' err || failed "E802 without a cure: $(cat err)"
passes "the cure of E802" out --dim S=64 --block large wrong.amp

# ---- decoders: names, sizes, what is refused --------------------------------------------------------------
cat >text.amp <<'JOB'
dim S(max=64)
module Net {
  embed = Embedding(16, 8)
  past_1 = Parameter([8])
  lstm = LSTM(8, 8, batch_first=true)
  def forward(ids) {
    x = embed(ids).unsqueeze(1)
    x = scaled_dot_product_attention(x, x, x, is_causal=true).squeeze(1)
    return lstm(x + past_1)[0] @ embed.weight.t()
  }
}
model net = Net()
infer next(ids: i64[1, S]) -> f32[1, S, 16] { return net(ids) }
infer odd(position: i32[1, S]) -> f32[1, S, 16] { present_0 = net(position); return present_0 }
infer chain(ids: i64[1, S]) -> f32[1, S, 4] { return cumprod(one_hot(ids, 4).to(f32) + 1.0, 1) } # E801 no op for `cumprod`
infer ahead(ids: i64[1, S]) -> f32[1, S, 4] { return cumsum(one_hot(ids, 4).to(f32).flip(1), 1) } # E614 it is not known what it reads
infer fixed(ids: i64[1, 16]) -> f32[1, 16, 4] { return one_hot(ids, 4).to(f32) } # E614 takes a number of tokens that is not a `dim`
JOB
python3 - <<'PY'
import json, struct
sizes = {"embed.weight": [16, 8], "past_1": [8], "lstm.weight_ih_l0": [32, 8], "lstm.weight_hh_l0": [32, 8],
         "lstm.bias_ih_l0": [32], "lstm.bias_hh_l0": [32]}
header, at = {}, 0
for name, shape in sizes.items():
    n = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
    at += n
text = json.dumps(header).encode()
open("text.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(at))
PY
decoder() { out --weights text.safetensors --decode "$@" text.amp; }
refuses "a decoder and a block" 2 '--decode cannot be combined with --block' decoder next --block next
refuses "a decoder that the job lacks" 2 'text.amp has no infer block nix; it has next' decoder nix
passes "a decoder" decoder next
grep -q '^net.onnx: [0-9]* operations, opset 18, any T, 3 tensors of state for 64 tokens$' out || failed "the report: $(cat out)"
for text in ids position past_0 past_2 present_0 present_2 past_1.f32; do
  grep -qaF "$text" net.onnx || failed "the decoder has no $text"
done
passes "a shorter text in 16 bits" decoder next --dim S=32 --set precision=bf16
grep -q 'opset 22, any T, 3 tensors of state for 32 tokens$' out || failed "the report: $(cat out)"
passes "the shortest text" decoder next --dim S=2
grep -q 'any T, 3 tensors of state for 2 tokens$' out || failed "the report: $(cat out)"
passes "names that the decoder has, too" decoder odd
grep -qaF "position_" net.onnx || failed "the position has the name of the tokens"
for block in chain ahead fixed; do
  line=$(grep -n "^infer $block(" text.amp | cut -d: -f1)
  read -r code text <<<"$(sed -n "${line}s/.*# //p" text.amp)"
  refuses "the decoder of $block" 1 "^text.amp:$line:[0-9]*: error\[$code\]: .*$text" decoder $block
done

# the smallest S is 16, which is another number of the job, too
cat >equal.amp <<'JOB'
dim S(max=64, multiple=16)
infer equal(x: f32[S, 16]) { return x + outer(arange(x.size(0)).to(f32), arange(16).to(f32)) }
JOB
passes "a size that equals a number" out equal.amp
grep -q 'S = 16 is also another number of the job, so .* compared with S = ' err || failed "nothing says what was compared: $(cat err)"
[ "$failures" -eq 0 ]
