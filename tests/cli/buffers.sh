#!/usr/bin/env bash
# Buffers that a method assigns: a moving mean that a net subtracts, compared with PyTorch; the same
# bytes without fusion, emitted and resumed; skipped steps; steps of several bodies.
#   buffers.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
train() { timeout 60 "$amp" train -q --device cpu "$@"; }

cat >job.amp <<'JOB'
const K = 1
module Centre {
  fc = Linear(3, 2); mean = Buffer([3], init=zeros_()); peak = Buffer([2], init=constant_(-inf)); seen = Buffer([1, 3], init=zeros_())
  def moved(x) {
    if training { mean = 0.9 * mean + 0.1 * x.mean(0) }
    return x - mean
  }
  def forward(x) {
    y = fc(moved(x)) + 0.5 * fc(moved(x * 2.0))
    if training { no_grad { peak = maximum(peak, y.amax(0)); seen += x.abs().amax(0, keepdim=true) } }
    return y
  }
}
model net = Centre() { load("start.safetensors", missing=["mean", "peak", "seen"]) }
optimizer opt = SGD(net, lr=0.1, momentum=0.9, accumulate=K)
data rows() { return npy("x.npy"), npy("y.npy") }
precision f32
train x, y in rows() with batch=4, epochs=3, shuffle=false { minimize mse_loss(net(x).to(f32), y) with opt }
eval x, y in rows() with batch=4 { metric error = mse_loss(net(x).to(f32), y) }
JOB
python3 - <<'PY'
import struct
def npy(name, shape, data):
    head = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(data)}f", *data))
npy("x.npy", (16, 3), [((i * 37) % 101) / 50 - 0.5 for i in range(48)])
npy("y.npy", (16, 2), [((i * 53) % 97) / 97 - 0.5 for i in range(32)])
PY
printf 'fc.weight F32 [2,3] 0.5 -0.25 0.125 -0.5 0.25 1\nfc.bias F32 [2] 0.5 -1\n' | "$source_dir/tests/cli/weights.py" start.safetensors

# PyTorch's numbers in float64: model.mean = 0.9 * model.mean + 0.1 * x.mean(0) in forward, under
# no_grad, torch.optim.SGD(lr=0.1, momentum=0.9), 12 steps of 4 rows.
cat >want.txt <<'TXT'
mean 0.5586898887 0.8678074757 0.6057866258
peak 1.855310404 2.976297145
seen 10.1399999 11.76000014 12.77999997
fc.weight 0.2432814467 -0.128741003 0.09348681677 -0.3705645676 0.003449140071 0.3320385575
fc.bias 0.1475680447 -0.1874360625
TXT
compare() { # compare NAME FILE RELATIVE
  python3 - "$2" want.txt "$3" <<'PY' && echo "ok: $1" || failed "$1"
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
head = json.loads(b[8:8 + n])
for line in open(sys.argv[2]):
    name, *want = line.split()
    begin, end = head[name]["data_offsets"]
    got = struct.unpack(f"<{(end - begin) // 4}f", b[8 + n + begin:8 + n + end])
    assert len(got) == len(want), name
    for g, w in zip(got, map(float, want)):
        assert abs(g - w) <= float(sys.argv[3]) * max(1, abs(w)), (name, g, w)
PY
}
passes "a training" train --save a.safetensors job.amp
compare "as in PyTorch" a.safetensors 1e-5 # rounding of f32 in 12 steps
passes "without fusion" train -O0 --save b.safetensors job.amp
same "without fusion: the same bytes" a.safetensors b.safetensors
passes "a part" train --steps 5 --save part.safetensors job.amp
passes "resumed" train --resume part.safetensors --save b.safetensors job.amp
same "resumed: the same bytes" a.safetensors b.safetensors
emit() { # emit NAME ARGUMENTS...
  local name=$1
  shift
  "$ampc" --target=cpu "$@" -o $name.c job.amp && sh -c "$("$ampc" --build-line --target=cpu "$@" -o $name.c job.amp)" >out 2>err &&
    ./$name -q --save b.safetensors >out 2>err || failed "emitted $name"
}
emit plain
same "emitted: the same bytes" a.safetensors b.safetensors
passes "several bodies a step" train -D K=2 --save c.safetensors job.amp
emit bodies -D K=2
same "several bodies a step, emitted: the same bytes" c.safetensors b.safetensors
sed 's/^precision .*/precision f16 { scaler(init=256.0) }/' job.amp >half.amp
passes "f16" train --save h.safetensors half.amp
compare "f16: near PyTorch's f32" h.safetensors 2e-2 # 11 bits, weights of size 1

# All steps of this run overflow, so nothing is assigned.
sed 's/^precision .*/precision f16 { scaler(static=1e30) }/' job.amp >over.amp
for k in 1 2; do
  timeout 60 "$amp" train -q --device cpu -D K=$k --steps 3 --save o.safetensors over.amp >out 2>err
  printf 'mean 0 0 0\npeak -inf -inf\nseen 0 0 0\n' >want.txt
  python3 - <<'PY' && echo "ok: skipped steps of $k bodies assign nothing" || failed "skipped steps of $k bodies assign nothing"
import json, struct
b = open("o.safetensors", "rb").read()
n = struct.unpack("<Q", b[:8])[0]
head = json.loads(b[8:8 + n])
def values(name):
    begin, end = head[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", b[8 + n + begin:8 + n + end])
assert values("mean") == (0, 0, 0) and values("peak") == (-float("inf"),) * 2 and values("seen") == (0, 0, 0)
PY
done
[ $failures -eq 0 ]
