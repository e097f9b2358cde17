#!/usr/bin/env bash
# Weights without f32 masters and moments in bf16: the same bytes with one thread, without fusion,
# resumed and in the emitted program; checkpoints of f32 and of bf16 weights load into each other. The same of moments in
# 8 bits.
#   weights16.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
small_data "$d"

job_of() { # job_of FILE OPTIMIZER PRECISION: writes a job with a convolution, a norm and two groups
  cat >"$d/$1.amp" <<AMP
data small(split: str) {
  return idx(split + "-images.gz").to(f32) / 255.0, idx(split + "-labels.gz").to(i64)
}
module Net {
  conv = Conv2d(1, 5, 3, stride=3); norm = LayerNorm(405); fc = Linear(405, 10)
  def forward(x) { return fc(dropout(norm(relu(conv(x.unsqueeze(1))).flatten(1)), 0.1)) }
}
model net = Net() { freeze("conv.bias") }
optimizer opt = $2 { group("**.bias", weight_decay=0.0) }
precision $3
train image, label in small("train") with batch=32, epochs=2 { minimize cross_entropy(net(image), label) with opt }
eval image, label in small("t10k") with batch=100 { metric acc = accuracy(net(image), label) }
AMP
  job=$d/$1.amp
}

train() { "$amp" train --device cpu --quiet --seed 7 "$@" "$job"; }

stays_the_same() { # stays_the_same NAME OPTIMIZER PRECISION
  job_of "$1" "$2" "$3"
  passes "$1" train --save "$work/a"
  passes "$1, one thread, no fusion" env OMP_NUM_THREADS=1 "$amp" train --device cpu --quiet --seed 7 -O0 \
    --save "$work/b" "$job"
  same "$1, one thread, no fusion: same checkpoint" "$work/a" "$work/b"
  passes "$1, first part" train --steps 13 --save "$work/half"
  passes "$1, the rest" train --resume "$work/half" --save "$work/b"
  same "$1, resumed: same checkpoint" "$work/a" "$work/b"
  if [ "$("$amp" eval --device cpu --resume "$work/a" "$job" 2>&1 | grep -c 'acc: *0\.[4-9]')" -ne 1 ]; then
    failed "$1 learns nothing"
  fi
}

in_program() { # in_program NAME: the emitted program of the job that `stays_the_same` has just trained
  (cd "$d" && "$ampc" -o job.c "$1.amp") || failed "emit job.c"
  line=$(cd "$d" && "$ampc" --build-line -o job.c "$1.amp")
  passes "$1, emitted program builds" bash -c "cd '$d' && $line"
  passes "$1, emitted program trains" bash -c "cd '$d' && ./job --seed 7 --quiet --save '$work/emitted'"
  same "$1, emitted program and JIT, same checkpoint" "$work/a" "$work/emitted"
  passes "$1, emitted program resumes the JIT's checkpoint" \
    bash -c "cd '$d' && ./job --quiet --resume '$work/half' --seed 7 --save '$work/crossed'"
  same "$1, resumed across, same checkpoint" "$work/a" "$work/crossed"
}

none='bf16 { params(bf16, masters=false); moments(bf16) }'
kahan='bf16 { params(bf16, masters=false, rounding="kahan"); moments(bf16) }'
stays_the_same stochastic 'AdamW(net, lr=3e-3, clip_norm=1.0, ema=0.9)' "$none"
stays_the_same lamb 'LAMB(net, lr=2e-2, weight_decay=0.01)' "$kahan"
stays_the_same moments 'RMSprop(net, lr=1e-3, momentum=0.9, centered=true, weight_decay=1e-3)' 'f32 { moments(bf16) }'
stays_the_same nadam 'NAdam(net, lr=3e-3, weight_decay=1e-3)' 'bf16 { params(bf16, masters=false); moments(u8) }'
stays_the_same codes 'AdamW(net, lr=3e-3, clip_norm=1.0, ema=0.9, amsgrad=true)' 'f16 { moments(u8) }'
in_program codes
stays_the_same kahan 'Adam(net, lr=3e-3, amsgrad=true, weight_decay=1e-3)' "$kahan"
in_program kahan

# ---- f32 weights to bf16 and back ------------------------------------------------------------------
rounded() { # rounded A B BITS NAME: all tensors of the weights file B are those of A, rounded to that many bits
  python3 - "$@" <<'PY' >"$work/out" 2>"$work/err" || failed "$4"
import array, json, struct, sys
def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items() if k != "__metadata__"}
a, b, most = read(sys.argv[1]), read(sys.argv[2]), int(sys.argv[3])
assert a.keys() == b.keys()
total = 0
for key in a:
    bits = 8 if key == "conv.bias" else most  # a frozen weight has no residue
    for x, y in zip(array.array("f", a[key]), array.array("f", b[key]), strict=True):
        total += x != y
        assert abs(x - y) <= 2.0 ** -bits * abs(x), key
    if bits == 8:  # bf16: the lower half of each number is 0
        assert not any(low for low in array.array("H", b[key])[::2]), key
assert total > 0, "nothing was rounded"
PY
}
job_of f32 'AdamW(net, lr=3e-3)' f32
passes "train in f32" train --save "$work/f32" --save-weights "$work/f32.weights"
for into in none kahan; do
  job_of into 'AdamW(net, lr=3e-3)' "${!into}"
  passes "resume f32 without masters, $into" train --resume "$work/f32" --save "$work/into.$into" \
    --save-weights "$work/$into.weights"
done
rounded "$work/f32.weights" "$work/none.weights" 8 "f32 weights are rounded to bf16"
rounded "$work/f32.weights" "$work/kahan.weights" 16 "f32 weights are rounded to two bf16 numbers"
job_of f32 'AdamW(net, lr=3e-3)' f32
passes "resume bf16 weights in f32" train --resume "$work/into.none" --save-weights "$work/back.weights"
same "back in f32, the same weights" "$work/none.weights" "$work/back.weights"

# ---- moments in 8 bits, f32 and bf16 ---------------------------------------------------------------
job_of codes 'AdamW(net, lr=3e-3)' 'f32 { moments(u8) }'
passes "resume f32 moments in 8 bits" train --resume "$work/f32" --save "$work/into.u8"
passes "8-bit moments, trained on" train --set train.epochs=3 --resume "$work/f32" --save "$work/u8"
job_of f32 'AdamW(net, lr=3e-3)' f32
passes "resume 8-bit moments in f32" train --resume "$work/into.u8" --save "$work/wide"
job_of codes 'AdamW(net, lr=3e-3)' 'f32 { moments(u8) }'
passes "and in 8 bits again" train --set train.epochs=3 --resume "$work/wide" --save "$work/again"
same "8-bit moments through an f32 job, the same bytes after another epoch" "$work/u8" "$work/again"
passes "amp weights reads the checkpoint" "$amp" weights --type bf16 "$work/into.none" "$work/bf16.weights"
finish
