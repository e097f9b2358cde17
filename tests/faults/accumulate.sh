#!/usr/bin/env bash
# accumulate=4 at batch 16 compared with batch 64; the same bytes resumed, without fusion and
# emitted, with a short last step, batch norm, weight averages and overflows; a checkpoint of a run
# with another `accumulate`.
#   accumulate.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
small_data "$d"
train() { "$amp" train --device cpu --quiet "$@"; }

# ---- the result of the large batch -----------------------------------------------------------------------
cat >"$d/plain.amp" <<'AMP'
const K = 1
const BATCH = 64
data small() { return idx("train-images.gz").to(f32) / 255.0, idx("train-labels.gz").to(i64) }
module Net {
  fc1 = Linear(784, 32); fc2 = Linear(32, 10)
  def forward(x) { return fc2(relu(fc1(x.flatten(1)))) }
}
model net = Net()
optimizer opt = SGD(net, lr=linear_schedule(0.1, 0.0), momentum=0.9, clip_norm=1.0, accumulate=K)
train x, y in small() with batch=BATCH, epochs=3, shuffle=false { minimize cross_entropy(net(x), y) with opt }
AMP
passes "batch 64" train --save "$work/large" "$d/plain.amp"
passes "four of batch 16" train -D K=4 -D BATCH=16 --save "$work/small" "$d/plain.amp"
# 30 steps; the mean of 64 rounds differently from the mean of four means of 16, by some ulps of a
# gradient
python3 - "$work/large" "$work/small" >"$work/out" 2>"$work/err" <<'PY' || failed "the weights differ"
import json, struct, sys
from array import array
def tensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    meta = header.pop("__metadata__")
    cut = lambda e: data[slice(*e["data_offsets"])]
    return {k: array("f", cut(e)) for k, e in header.items()}, meta
(a, of_a), (b, of_b) = tensors(sys.argv[1]), tensors(sys.argv[2])
worst = max(abs(x - y) for k in a for x, y in zip(a[k], b[k]))
print("worst difference", worst)
assert a.keys() == b.keys() and worst < 2e-6, worst
assert of_a["ampc.step"] == of_b["ampc.step"] == of_a["ampc.body"] == "30" and of_b["ampc.body"] == "120"
assert of_a["ampc.optimizer.opt.taken"] == of_b["ampc.optimizer.opt.taken"] == "30"
PY
cat "$work/out"

# ---- a schedule gets the length of the run as data: no new compile ---------------------
rates() { # rates NAME EXPECTED COMMAND...: the learning rates of all steps must be EXPECTED
  local name=$1 want=$2 got
  shift 2
  got=$("$@" --json --quiet 2>"$work/err" | sed -n 's/.*"lr.opt": *\([0-9.e-]*\),.*/\1/p' | xargs printf '%.3f ')
  [ "$got" = "$want " ] && echo "ok: $name" || failed "$name: $got, expected $want"
}
cat >"$d/length.amp" <<'AMP'
data small() { return idx("train-images.gz").to(f32) / 255.0, idx("train-labels.gz").to(i64) }
model net = Sequential(Flatten(), Linear(784, 10))
optimizer opt = SGD(net, lr=linear_schedule(1.0, 0.0), accumulate=2)
train x, y in small() with batch=160, epochs=2 { minimize cross_entropy(net(x), y) with opt }
AMP
(cd "$d" && "$ampc" -o length.c length.amp && eval "$("$ampc" --build-line -o length.c length.amp)") || failed "length.c"
run() { (cd "$d" && "$@"); } # the program reads its data from its own folder
rates "epochs and accumulate" "1.000 0.750 0.500 0.250" run "$amp" train length.amp
rates "--set train.epochs" "1.000 0.500" run "$amp" train --set train.epochs=1 length.amp
rates "--steps" "1.000 0.500" run ./length --steps 2
rates "--steps beyond the job" "1.000 0.800 0.600 0.400 0.200" run ./length --steps 5
rates "--limit-batches" "1.000 0.500" run ./length --limit-batches 2
rates "--set opt.lr.steps" "1.000 0.900 0.800 0.700" run ./length --set opt.lr.steps=10
passes "two steps, then a stop" run ./length --quiet --steps 2 --set opt.lr.steps=4 --save "$work/two"
rates "resumed" "0.500 0.250" run "$amp" train --resume "$work/two" length.amp

# ---- the same bytes in all ways to run -------------------------------------------------------
cat >"$d/job.amp" <<'AMP'
data small(split: str) { return idx(split + "-images.gz").to(f32) / 255.0, idx(split + "-labels.gz").to(i64) }
module Net {
  conv = Conv2d(1, 4, 3, stride=2); norm = BatchNorm2d(4); fc = Linear(676, 10)
  def forward(x) { return fc(dropout(relu(norm(conv(x.unsqueeze(1)))), 0.1).flatten(1)) }
}
model net = Net()
optimizer opt = AdamW(net, lr=3e-3, clip_value=0.05, ema=0.9, clamp=[-0.5, 0.5], accumulate=3) {
  group(BatchNorm2d, clamp=[0.0, inf], clip_value=none)
}
precision f16 { scaler(init=16777216.0, max=16777216.0) }
train x, y in small("train") with batch=96, epochs=4, drop_last=false { minimize cross_entropy(net(x), y) with opt }
eval x, y in small("t10k") with batch=100 { metric acc = accuracy(net(x), y) }
AMP
job=$d/job.amp
passes "train" train --save "$work/a" "$job" # 7 batches in each epoch, the last one smaller: steps of 3, 3 and 1 batches
grep -q "skipped steps: [1-9][0-9]* of 12" "$work/out" || failed "no step overflows, or there are not 12"
cp "$work/out" "$work/results"
passes "without fusion" train -O0 --save "$work/b" "$job"
same "-O0, same checkpoint" "$work/a" "$work/b"
for n in 2 3 7; do
  passes "first $n steps" train --steps $n --save "$work/part" "$job"
  passes "the rest" train --resume "$work/part" --save "$work/joined" "$job"
  same "resumed after $n steps, same checkpoint" "$work/a" "$work/joined"
done
(cd "$d" && "$ampc" -o job.c job.amp) || failed "emit job.c"
line=$(cd "$d" && "$ampc" --build-line -o job.c job.amp)
passes "emitted program builds" bash -c "cd '$d' && $line"
passes "emitted program trains" bash -c "cd '$d' && ./job --quiet --save '$work/emitted'"
same "emitted program and JIT, same checkpoint" "$work/a" "$work/emitted"
passes "eval" "$amp" eval --device cpu --quiet --resume "$work/a" "$job"
grep -qF "$(grep "eval acc" "$work/results")" "$work/out" || failed "amp eval reads other averages"
printf ':train\n:save %s\n' "$work/repl" | "$amp" repl "$job" >"$work/out" 2>"$work/err" || failed "repl"
same "the prompt, same checkpoint" "$work/a" "$work/repl"

passes "a step of one batch" train --steps 1 --set opt.accumulate=1 --save "$work/one" "$job"
refuses "resumed within a step" 3 "was saved after batch 1 of an epoch, within a step of accumulate=3" \
  "$amp" train --device cpu --quiet --resume "$work/one" "$job"
finish
