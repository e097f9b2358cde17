#!/usr/bin/env bash
# Parameters that several optimizers share. An optimizer between two others with rate 0 gives the
# result that it gives alone, except for the order of the sum of a norm. The bytes are the same
# without fusion, resumed and emitted, with groups, weight averages, 16-bit copies and overflows. A
# step that overflows for one optimizer is still a step of the others.
#   shared.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/job
mkdir -p "$d"
train() { "$amp" train --device cpu --quiet "$@"; }

cat >"$d/alone.amp" <<'AMP'
module Net {
  conv = Conv2d(2, 3, 3, bias=false); norm = GroupNorm(1, 3); fc = Linear(12, 4); table = Embedding(2, 4)
  def forward(x) { return fc(tanh(norm(conv(x))).flatten(1)) + table((x[:, 0, 0, 0] > 0).to(i64)) }
}
data d() { return synthetic(40, [2, 4, 4]), synthetic(40, [4]) }
precision f16 { scaler(init=16777216.0, max=16777216.0, interval=3) }
model a = Net()
model b = Net()
model c = Net()
model e = Net()
#first
optimizer opt_a = SGD(a, lr=0.1, momentum=0.9, nesterov=true, weight_decay=0.01) { group("**.bias", momentum=0.5) }
optimizer opt_b = Adam(b, lr=step_schedule(0.01, every=2, gamma=0.5), amsgrad=true, clip_value=0.01)
optimizer opt_c = LAMB([c.fc, c.table, c.conv, c.norm], lr=0.01, ema=0.9)
optimizer opt_e = RMSprop(e, lr=0.01, centered=true, momentum=0.5)
#last
def total(x, t) { return mse_loss(a(x), t) + mse_loss(b(x), t) + mse_loss(c(x), t) + mse_loss(e(x), t) }
train x, t in d() with batch=8, epochs=3 {
  minimize total(x, t) with opt_a, opt_b, opt_c, opt_e
}
eval x, t in d() with batch=8 { metric error = total(x, t) }
AMP
sed -e 's/^#first/optimizer still = SGD([a, c.conv, e.table, b.fc.weight], lr=0.0, clip_norm=1.0)/' \
  -e 's/^#last/optimizer idle = SGD([b, c, e.norm, a.fc], lr=0.0, momentum=0.9)/' \
  -e 's/with opt_a, opt_b, opt_c, opt_e/with still, opt_a, opt_b, idle, opt_c, opt_e/' "$d/alone.amp" >"$d/shared.amp"
job=$d/shared.amp

passes "optimizers alone" train --save "$work/alone" "$d/alone.amp"
grep -q "skipped steps: [1-9]" "$work/out" || failed "no step overflows"
passes "beside others" train --save "$work/shared" "$job"

# tensors FILE [WORDS]: prints one line for each tensor, with a checksum of its bytes; leaves out
# names that contain a WORD
tensors() {
  python3 - "$@" <<'PY'
import json, struct, sys, zlib
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
for name, row in sorted(json.loads(data[8:8 + size]).items()):
    if name != "__metadata__" and not any(word in name for word in sys.argv[2:]):
        begin, end = (8 + size + at for at in row["data_offsets"])
        print(name, row["shape"], zlib.crc32(data[begin:end]))
PY
}
tensors "$work/alone" >"$work/alone.txt"
tensors "$work/shared" .still. .idle. >"$work/shared.txt"
same "weights, moments and averages are those of optimizers alone" "$work/alone.txt" "$work/shared.txt"
got=$(tensors "$work/shared" | grep -c "optimizer.idle.moment1/")
[ "$got" = 16 ] && echo "ok: idle has moments of its own" || failed "idle has $got moments, expected 16"

passes "without fusion" train -O0 --save "$work/o0" "$job"
same "-O0, same checkpoint" "$work/shared" "$work/o0"
passes "first part" train --steps 9 --save "$work/part" "$job"
passes "the rest" train --resume "$work/part" --save "$work/joined" "$job"
same "resumed, same checkpoint" "$work/shared" "$work/joined"
(cd "$d" && "$ampc" -o shared.c shared.amp) || failed "emit shared.c"
line=$(cd "$d" && "$ampc" --build-line -o shared.c shared.amp)
passes "emitted program builds" bash -c "cd '$d' && $line"
passes "emitted program trains" bash -c "cd '$d' && ./shared --quiet --save '$work/emitted'"
same "emitted program, same checkpoint" "$work/shared" "$work/emitted"

# ---- a gradient that overflows in one loss -----------------------------------------------------------
cat >"$d/one.amp" <<'AMP'
data d() { return synthetic(64, [4]) }
precision f16 { scaler(init=1024.0) }
model net = Linear(4, 4)
optimizer opt_a = Adam(net, lr=0.01)
optimizer opt_b = Adam(net, lr=0.01)
train x in d() with batch=8 {
  minimize mse_loss(net(x), x) with opt_a
  minimize mse_loss(net(x), x) * (1.0 + 1e9 * (step == 3).to(f32)) with opt_b
}
AMP
passes "one of two overflows" train --save "$work/one" "$d/one.amp"
for expected in opt_a.taken\":\"8\" opt_b.taken\":\"7\" ampc.scale\":\"512\"; do
  head -c 4000 "$work/one" | grep -qa "$expected" && echo "ok: $expected" || failed "the checkpoint lacks $expected"
done
finish
