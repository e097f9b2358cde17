#!/usr/bin/env bash
# Frozen weights in int8 and nf4, with adapters. A step computes what it computes with the same values in f32, at every
# level of fusion. Memory from forward to backward does not hold the widened weights. Runs go on; checkpoints, merged
# weights, exports, emitted programs.
#   quantized.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
job() { # job CLAUSES [WIDTH]
  cat <<EOF
const WIDTH = ${2:-64}
data points() { return synthetic(256, [WIDTH]), synthetic(256, [], dtype=i64, low=0, high=4, seed=1) }
module Net {
  fc = [Linear(WIDTH, WIDTH) for i in range(4)]; head = Linear(WIDTH, 4)
  def forward(x) { for layer in fc { x = relu(layer(x)) }; return head(x) }
}
model net = Net() { $1 }
optimizer opt = AdamW(net, lr=1e-2)
precision f32
train x, y in points() with batch=32, epochs=2 { minimize cross_entropy(net(x), y) with opt }
infer f(x: f32[8, WIDTH]) { return net(x) }
EOF
}
expect() { # expect NAME WANT GOT
  if [ "$2" = "$3" ]; then echo "ok: $1"; else failed "$1: '$3' instead of '$2'"; fi
}
run() { "$amp" train -q --device cpu "$@"; }
answers() { "$amp" infer -q --device cpu --data 'synthetic(8, [64], seed=3)' "$@"; }
adapt='adapt(LoRA, "fc.*", rank=4, alpha=8)'
store='store(int8, ["fc.{0,1}.weight", "head.weight"]); store(nf4, "fc.{2,3}.weight")'

# without a file: the checkpoint has the values in f32, from which a job without `store` computes the same bits
job "$store; $adapt" >job.amp
passes "no step" run --steps 0 --save start.safetensors job.amp
job "load(\"start.safetensors\", unused=\"**.lora_*.weight\"); $adapt" >wide.amp
job "load(\"start.safetensors\", unused=\"**.lora_*.weight\"); $store; $adapt" >loaded.amp
for precision in f32 bf16; do
  set="--set precision=$precision"
  for level in 0 1 2; do passes "$precision, -O$level" run $set -O$level --save-weights $precision.$level.safetensors loaded.amp; done
  same "$precision: -O0 and -O2" $precision.0.safetensors $precision.2.safetensors
  same "$precision: -O1 and -O2" $precision.1.safetensors $precision.2.safetensors
done
# an op with three frozen operands, read by backward
cat >three.amp <<'EOF'
data points() { return synthetic(64, [8]), synthetic(64, [8]) }
module Net {
  a = Linear(8, 8); b = Linear(8, 8); out = Linear(8, 8)
  def forward(x) { w = where(a.weight > b.weight, a.weight, b.weight); return out(relu(x @ w)) @ w }
}
model net = Net() { freeze("{a,b}.*"); store(bf16, "a.weight"); store(nf4, "b.weight") }
optimizer opt = AdamW(net, lr=1e-2)
train x, y in points() with batch=16, epochs=2 { minimize mse_loss(net(x), y) with opt }
EOF
for level in 0 2; do passes "three operands, -O$level" run -O$level --save three.$level three.amp; done
same "three operands: -O0 and -O2" three.0 three.2
adapters() { # adapters FILE: the bytes of the trained tensors
  python3 - "$1" <<'PY'
import hashlib, json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
at = {k: v["data_offsets"] for k, v in json.loads(b[8:8 + n]).items() if "lora" in k}
print(len(at), hashlib.sha256(b"".join(b[8 + n + i:8 + n + k] for _, (i, k) in sorted(at.items()))).hexdigest())
PY
}
passes "f32 values" run --save-weights wide.safetensors wide.amp
expect "the same adapters" "$(adapters wide.safetensors)" "$(adapters f32.2.safetensors)"
passes "drawn, not loaded" run --save whole.safetensors job.amp
expect "the same again" "$(adapters wide.safetensors)" "$(adapters <(run --save-weights drawn.safetensors job.amp; cat drawn.safetensors))"
passes "first half" run --steps 5 --save half.safetensors job.amp
passes "second half" run --resume half.safetensors --save resumed.safetensors job.amp
same "a run that goes on" resumed.safetensors whole.safetensors
passes "other half" run --steps 5 --save half.safetensors loaded.amp
passes "whole with a base" run --save based.safetensors loaded.amp
passes "second half with a base" run --resume half.safetensors --save resumed.safetensors loaded.amp
same "a run with a base goes on" resumed.safetensors based.safetensors

# f32 copies of codes, and of bf16 weights, live shortly: work is that of f32 weights and one or two matrices
work_of() { "$ampc" --target=cpu --emit=memory "$1" | sed -n 's/,//g; s/^ *\([0-9]*\) *work:.*/\1/p'; }
matrix=$((512 * 512 * 4))
job "$adapt" 512 >plain.amp
for clause in 'store(bf16, "fc.*.weight")' 'store(int8, "fc.*.weight")' 'store(nf4, "fc.*.weight")'; do
  job "$clause; $adapt" 512 >wide512.amp
  extra=$((($(work_of wide512.amp) - $(work_of plain.amp)) * 10 / matrix))
  expect "$clause: at most two matrices more" yes "$([ $extra -le 20 ] && [ $extra -ge 5 ] && echo yes || echo "$extra tenths")"
done

# merged weights begin with those of the file
job '' >base.amp
passes "base" run --save-weights start.safetensors base.amp
sed 's/, unused="\*\*.lora_\*.weight"//' loaded.amp >tuned.amp
passes "adapters of a base" run --steps 0 --save c.safetensors tuned.amp
passes "merge" "$amp" weights --merge tuned.amp c.safetensors merged.safetensors
passes "answers of the base" answers --weights start.safetensors --output base.npy base.amp
passes "answers of the merged weights" answers --weights merged.safetensors --output merged.npy base.amp
same "new adapters add 0 to the weights of the file" base.npy merged.npy
passes "answers of the job" answers --weights c.safetensors --output ours.npy tuned.amp
cmp -s base.npy ours.npy && failed "quantizing changed nothing"
passes "export" "$amp" export --weights c.safetensors -o net.onnx tuned.amp

passes "emitted" "$ampc" --target=cpu -o job.c tuned.amp
sh -c "$("$ampc" --target=cpu --build-line -o job.c tuned.amp)" || failed "the build line"
passes "emitted: runs" ./job -q --save emitted.safetensors
passes "run by amp" run --save ours.safetensors tuned.amp
same "emitted and amp write the same" emitted.safetensors ours.safetensors
[ $failures -eq 0 ]
