#!/usr/bin/env bash
# `adapt` of a model: what trains, which weights files have, runs that go on, other base weights,
# merged weights, an adapter of the job's own, emitted programs. tests/torch/lora.py compares with
# PEFT.
#   adapters.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
job() { # job CLAUSES
  cat <<EOF
data points() { return synthetic(256, [16]), synthetic(256, [], dtype=i64, low=0, high=4, seed=1) }
module Net {
  fc1 = Linear(16, 32); fc2 = Linear(32, 32); fc3 = Linear(32, 32); tied = Linear(32, 32); norm = BatchNorm1d(32); head = Linear(32, 4)
  tied.weight = fc3.weight
  def forward(x) { return head(tied(norm(relu(fc3(relu(fc2(relu(fc1(x))))))))) }
}
module Bottleneck(layer, width: int) {
  down = Linear(layer.out_features, width); up = Linear(width, layer.out_features)
  def forward(x) { y = layer(x); return y + up(relu(down(y))) }
}
model net = Net() { $1 }
optimizer opt = AdamW(net, lr=1e-2)
train x, y in points() with batch=32, epochs=2 { minimize cross_entropy(net(x), y) with opt }
infer f(x: f32[64, 16]) { return net(x) }
EOF
}
names() { # names FILE: the tensors, without moments
  python3 - "$1" <<'PY'
import json, struct, sys
f = open(sys.argv[1], "rb")
h = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
print(*(f"{k}:{h[k]['dtype']}" for k in sorted(h) if not k.startswith(("optimizer.", "__"))))
PY
}
expect() { # expect NAME WANT GOT
  if [ "$2" = "$3" ]; then echo "ok: $1"; else failed "$1: '$3' instead of '$2'"; fi
}
run() { "$amp" train -q --device cpu "$@"; }
answers() { "$amp" infer -q --device cpu --data 'synthetic(64, [16], seed=3)' "$@"; }

job '' >base.amp
passes "base" run --save-weights base.safetensors base.amp
base='load("base.safetensors");'
job "$base store(bf16, \"fc1\"); adapt(LoRA, \"fc{1,2}\", rank=4, alpha=8, dropout=0.1); unfreeze(\"head\")" >job.amp
for level in 0 2; do passes "-O$level" run -O$level --save c$level.safetensors job.amp; done
same "-O0 and -O2" c0.safetensors c2.safetensors
trained="fc1.lora_A.weight:F32 fc1.lora_B.weight:F32 fc2.lora_A.weight:F32 fc2.lora_B.weight:F32 head.bias:F32 head.weight:F32"
running="norm.num_batches_tracked:I64 norm.running_mean:F32 norm.running_var:F32"
expect "checkpoint" "$trained $running" "$(names c2.safetensors)"

passes "first half" run --steps 5 --save half.safetensors job.amp
passes "second half" run --resume half.safetensors --save whole.safetensors job.amp
same "a run that goes on" whole.safetensors c2.safetensors

mkdir lora
passes "PEFT's files" run --save-weights lora/adapter_model.safetensors job.amp
expect "PEFT's names" "$(sed 's/[^ ]*:/base_model.model.&/g' <<<"$trained $running")" "$(names lora/adapter_model.safetensors)"
expect "PEFT's config" '4 8 ["fc1", "fc2"] ["head"]' "$(python3 -c 'import json
c = json.load(open("lora/adapter_config.json"))
print(c["r"], c["lora_alpha"], *(json.dumps(c[k]) for k in ("target_modules", "modules_to_save")))')"
sed 's/unfreeze/load("lora\/adapter_model.safetensors", adapter=true); unfreeze/' job.amp >loaded.amp
passes "answers" answers --weights lora/adapter_model.safetensors --output a.npy job.amp
passes "answers of the loaded adapter" answers --output b.npy loaded.amp
answers --output base.npy job.amp
cmp -s a.npy base.npy && failed "the adapter changes nothing"

# merged weights: results agree but for roundings
passes "merge" "$amp" weights --type f32 --merge job.amp c2.safetensors merged.safetensors
expect "merged names" 0 "$(names merged.safetensors | grep -c lora)"
passes "answers of merged weights" answers --weights merged.safetensors --output merged.npy base.amp
passes "answers of the checkpoint" answers --weights c2.safetensors --output c2.npy job.amp
expect "they agree" close "$(python3 - <<'PY'
import struct
a, b = ([v for v, in struct.iter_unpack("<f", open(f, "rb").read()[128:])] for f in ("merged.npy", "c2.npy"))
far = max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, a))
print("close" if len(a) == len(b) >= 256 and 0 < far < 1e-5 else far)
PY
)"
sed 's/fc{1,2}/fc3/' job.amp >tied.amp
passes "a tied layer" run --save tied.safetensors tied.amp
refuses "merging into a tied weight" 2 'fc3.weight: the weight is tied' "$amp" weights --merge tied.amp tied.safetensors m.safetensors
refuses "a job without LoRA" 2 'whose adapters are all LoRA' "$amp" weights --merge base.amp c2.safetensors m.safetensors

# the frozen weights are others
mv base.safetensors kept.safetensors
run --seed 7 --save-weights base.safetensors base.amp
refuses "resume beside other weights" 3 'trained with other frozen weights' run --resume half.safetensors job.amp
refuses "infer beside other weights" 3 'trained with other frozen weights' answers --weights c2.safetensors job.amp
rm base.safetensors
refuses "resume without them" 3 'base.safetensors' run --resume half.safetensors job.amp
mv kept.safetensors base.safetensors

# another scaling is refused; a copy has the values and the adapters of its model
sed 's/alpha=8/alpha=80/' job.amp >alpha.amp
refuses "another alpha" 3 '"lora_alpha": 8, that of alpha.amp 80' answers --weights c2.safetensors alpha.amp
refuses "another alpha to resume" 3 '"lora_alpha": 8' run --resume half.safetensors alpha.amp
sed 's/alpha=8/alpha=80/' loaded.amp >alpha.amp
refuses "another alpha to load" 3 '"lora_alpha": 8' answers --output b.npy alpha.amp
sed 's/lora.adapter_model.safetensors/c2.safetensors/; s/infer f/model twin = copy(net)\ninfer f/; s/return net/return twin/' loaded.amp >twin.amp
passes "a checkpoint as adapter; a copy" answers --output twin.npy twin.amp
same "the copy computes the same" twin.npy c2.npy
sed 's/fc1 = Linear(16, 32)/fc1 = weight_norm(Linear(16, 32))/; s/load([^)]*);//' job.amp >norm.amp
passes "a layer that computes its weight" run --save norm.safetensors norm.amp
refuses "its merge" 2 'fc1: the layer computes its weight' "$amp" weights --merge norm.amp norm.safetensors m.safetensors

# an adapter of the job's own
job "$base unfreeze(\"head\"); adapt(Bottleneck, \"fc2\", width=3)" >own.amp
passes "own adapter" run --save-weights own.safetensors own.amp
expect "its names" "fc2.down.bias:F32 fc2.down.weight:F32 fc2.up.bias:F32 fc2.up.weight:F32 ${trained#*fc2.lora_B.weight:F32 } $running" \
  "$(names own.safetensors)"

# a base that no file has is in the checkpoint, in 16 bits
job 'store(bf16, "**"); adapt(LoRA, Linear, rank=2)' >random.amp
passes "without a file" run --save random.safetensors random.amp
expect "its frozen weights" fc1.weight:BF16 "$(names random.safetensors | grep -o 'fc1.weight:[A-Z0-9]*')"

passes "emitted" "$ampc" --target=cpu -o job.c job.amp
sh -c "$("$ampc" --target=cpu --build-line -o job.c job.amp)" || failed "the build line"
passes "emitted: resumes" ./job -q --resume half.safetensors --save emitted.safetensors
same "emitted and amp go on alike" emitted.safetensors c2.safetensors
[ $failures -eq 0 ]
