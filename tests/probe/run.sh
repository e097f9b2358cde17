#!/usr/bin/env bash
# The output of amp probe, --probe-every, :probe and of the diagnosis after a non-finite loss, for
# jobs with planted faults.
#   run.sh AMP
set -euo pipefail
amp=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

job() { # job NAME PRECISION FORWARD
  cat >"$1.amp" <<AMP
data d() { return synthetic(64, [16]), synthetic(64, [], dtype=i64, low=0, high=4) }
module Net {
  fc1 = Linear(16, 32)
  fc2 = Linear(32, 4)
  def forward(x) {
    h = relu(fc1(x))
    $3
  }
}
model net = Net()
optimizer opt = SGD(net, lr=0.01)
precision $2
train x, y in d() with batch=16, epochs=100, log=1000 { minimize cross_entropy(net(x), y) with opt }
AMP
}

says() { # says NAME PATTERN: the last output must match PATTERN
  grep -Eq -- "$2" out || { echo "FAILED: $1: no \"$2\" in"; cat out; exit 1; }
  echo "ok: $1"
}

lost() { # lost NAME: the run must stop because its loss is not finite
  if "$amp" train --device cpu -q --steps 60 "$1.amp" >out 2>&1; then
    echo "FAILED: $1 does not stop"
    exit 1
  fi
}

# ---- where the first non-finite value appears ----
job over f16 'wide = h * 60000.0
    return fc2(wide)'
lost over
says "an overflow: layer and line" 'step 36 the first value .* is net mul `wide`, over.amp:7$'
says "an overflow: the range" 'most likely cause: range of the type'
says "an overflow: finite in f32" 'leaves the range of f16 .65504.; in f32 the same step is finite'
job nan f16 'return fc2(log(h - h - 1.0))'
lost nan
says "a NaN: layer and line" 'is net log, nan.amp:7$'
says "a NaN: the operation, not the scale" 'most likely cause: operation'
job nan32 f32 'return fc2(log(h - h - 1.0))'
lost nan32
says "a NaN without a scaler" 'in step 1 the first value .* is net log, nan32.amp:7$'
job scale 'f16 { scaler(static=16000000.0) }' 'return fc2(h)'
lost scale
says "a scale that is too high" 'the gradient leaves the range of its type at scale 1.6e\+07 but not at 1'

# ---- the output of probes ----
"$amp" probe --device cpu --steps 1 over.amp >out 2>err
says "the worst finding first" '^1\. net mul `wide` \(over.amp:7\), f16: [0-9]+ of 512 are infinite'
job good f16 'return fc2(dropout(h, 0.1))'
"$amp" probe --device cpu --steps 1 --path net.fc2 good.amp >out 2>err
says "--path: the named layer" '^net.fc2 linear'
! grep -q fc1 out || { echo "FAILED: --path shows other layers"; exit 1; }
"$amp" probe --device cpu --steps 3 --json --output probe.json good.amp >out 2>err
printf ':probe fc2.bias\n:grad fc2.bias\n' | "$amp" repl --device cpu good.amp >said 2>err
"$amp" probe --device cpu --steps 1 --json --output one.json good.amp >out 2>err
python3 - <<'PY'
import json, re
many, one = json.load(open("probe.json")), json.load(open("one.json"))
assert many["steps"] == 3 and one["steps"] == 1 and one["scale"] == 65536 and not many["findings"], many["findings"]
for at in many["values"]:
    counted = sum(n for _, n in at["exponents"]) + at["zeros"] + at["nan"] + at["infinite"]
    assert counted == at["elements"], at
    if at["exponents"]:
        low, high = at["exponents"][0][0], at["exponents"][-1][0]
        assert 2.0**low <= at["least"] < 2.0 ** (low + 1) and 2.0**high <= at["greatest"] < 2.0 ** (high + 1), at
by_name = {(v["kind"], v["name"]): v for v in one["values"]}
assert {"value", "weight", "gradient", "update", "scale"} == {kind for kind, _ in by_name}
h = by_name["value", "net relu `h`"]
assert h["line"] == 6 and h["type"] == "f16" and h["elements"] == 16 * 32 and not h["backward"], h
# an update of SGD is the learning rate times the gradient
gradient, update = (by_name[kind, "fc2.bias"] for kind in ("gradient", "update"))
assert abs(update["greatest"] / (0.01 * gradient["greatest"] / 65536) - 1) < 1e-3, (gradient, update)
said = open("said").read()
shown = [abs(float(x)) for x in re.search(r"^\[(.*)\] +f32\[4\]", said, re.M)[1].split(",")]
assert abs(max(shown) / (gradient["greatest"] / 65536) - 1) < 1e-3, (said, gradient)
print("ok: JSON, :grad and :probe agree")
PY

# ---- probes do not change a run ----
cat >all.amp <<'AMP'
data d() { return synthetic(40, [3, 6, 6]), synthetic(40, [], dtype=i64, low=0, high=4) }
module Net {
  conv = Conv2d(3, 4, 3)
  norm = BatchNorm2d(4)
  rnn = GRU(16, 8)
  head = Linear(8, 4)
  def forward(x) {
    y = relu(norm(conv(x)))
    s = rnn(y.flatten(2).transpose(0, 1))[0]
    return head(dropout(s[-1], 0.1))
  }
}
model net = Net()
optimizer opt = AdamW(net, lr=1e-3, accumulate=2) { group("**.bias", weight_decay=0.0) }
precision f16
train x, y in d() with batch=16, epochs=9, drop_last=false {
  p = net(x)
  minimize cross_entropy(p, y) with opt
  every 3 { metric sure = softmax(p, dim=1).amax(dim=1).mean() }
}
AMP
"$amp" train --device cpu -q --steps 7 --save plain.ckpt all.amp
"$amp" train --device cpu -q --steps 7 --save looked.ckpt --log-dir logs --probe-every 2 all.amp
cmp plain.ckpt looked.ckpt
python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("logs/probe.jsonl")]
assert [at["step"] for at in lines] == [2, 4, 6], lines
for at in lines:
    names = {v["name"] for v in at["values"] if v["elements"]}
    assert {"net.conv conv2d", "conv.weight", "rnn.weight_hh_l0"} <= names, names
print("ok: the same bytes with and without probes; steps 2, 4 and 6 were probed")
PY
