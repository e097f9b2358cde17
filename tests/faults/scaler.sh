#!/usr/bin/env bash
# The loss scaler: a scale for each optimizer, and which optimizer skips; in logs, at the prompt, in
# resumed checkpoints, also in those with one scale for all; --set.
#   scaler.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/job
mkdir -p "$d"
train() { "$amp" train --device cpu --quiet "$@"; }

# Backward multiplies by 2^120 and then by its inverse, in steps 3 and 10 for a, and in 6 and 7 for
# b (`step` counts from 0). This changes nothing, except that the product is infinite if the scale
# is 256 or more.
cat >"$d/head.amp" <<'AMP'
data d() { return synthetic(88, [4]) }
def steep(x, on) {
  k = 1.0 + (2.0 ** 120 - 1.0) * on.to(f32)
  return x / k * k
}
module Net { w = Parameter([4], init=normal_()); def forward(x) { return x * w } }
model a = Net()
model b = Net()
AMP
cat "$d/head.amp" - >"$d/two.amp" <<'AMP'
optimizer oa = Adam(a, lr=0.01)
optimizer ob = Adam(b, lr=0.01)
precision f16 { scaler(init=1048576.0, interval=3) }
train x in d() with batch=8 {
  minimize steep(mse_loss(a(x), x), (step == 2) | (step == 9)) with oa
  minimize steep(mse_loss(b(x), x), (step == 5) | (step == 6)) with ob
}
AMP
own=(--set scaler.per_optimizer=true)

# tensors FILE: prints all bytes behind the header
tensors() { tail -c +$((9 + $(od -An -t u8 -N 8 "$1"))) "$1"; }
# alike NAME A B: all tensors must be equal
alike() { if [ -s "$2" ] && [ -s "$3" ] && cmp <(tensors "$2") <(tensors "$3"); then echo "ok: $1"; else failed "$1"; fi; }
# holds FILE TEXT...: the checkpoint's metadata must contain each TEXT
holds() {
  local file=$1 text
  shift
  for text; do head -c 4000 "$file" | grep -qaF "$text" || failed "$file lacks $text"; done
}

# scales NAME "VALUES": the scales of all lines, as a/b in units of 2^10
scales() {
  local got
  got=$(sed -n 's/.*"scale.oa": *\([0-9.]*\), *"scale.ob": *\([0-9.]*\),.*/\1 \2/p' "$work/out" | while read -r x y; do
    echo "$((${x%.*} / 1024))/$((${y%.*} / 1024))"; done | xargs)
  [ "$got" = "$2" ] && echo "ok: $1: $got" || failed "$1: $got, expected $2"
}

passes "one scale for both" train --save "$work/one" "$d/two.amp"
holds "$work/one" 'ampc.skipped":"4"' oa.taken\":\"9\" ob.taken\":\"9\"
passes "a scale for each" train "${own[@]}" --json --log 1 --log-dir "$work/log" --save "$work/each" "$d/two.amp"
scales "each moves alone" "1024/1024 1024/1024 512/2048 512/2048 512/2048 1024/1024 1024/512 1024/512 2048/512 1024/1024 1024/1024"
holds "$work/each" 'ampc.skipped":"4"' oa.taken\":\"9\" ob.taken\":\"9\" oa.scale\":\"1048576\" oa.growth\":\"1\"
alike "powers of two: the same weights" "$work/one" "$work/each"
head -n 1 "$work/log/metrics.csv" | grep -q ',lr.oa,lr.ob,scale.oa,scale.ob,' || failed "the table lacks the scales"
sed -n 4p "$work/log/metrics.csv" | grep -q ',524288,1,0.00999999978,0.00999999978,524288,2097152,' || failed "$(sed -n 4p "$work/log/metrics.csv")"
grep -qa scaler/scale/ob "$work"/log/events* || failed "TensorBoard's file lacks the scales"
passes "the line of progress" "$amp" train --device cpu "${own[@]}" "$d/two.amp"
grep -q 'scale.oa 1.04858e+06 scale.ob 1.04858e+06 skipped 4' "$work/err" || failed "the line lacks the scales"

passes "without fusion" train "${own[@]}" -O0 --save "$work/o0" "$d/two.amp"
same "-O0, same checkpoint" "$work/each" "$work/o0"
passes "first part" train "${own[@]}" --steps 6 --save "$work/part" "$d/two.amp"
passes "the rest" train "${own[@]}" --resume "$work/part" --save "$work/joined" "$d/two.amp"
same "resumed, same checkpoint" "$work/each" "$work/joined"
(cd "$d" && "$ampc" "${own[@]}" -o two.c two.amp) || failed "emit two.c"
line=$(cd "$d" && "$ampc" "${own[@]}" --build-line -o two.c two.amp)
passes "emitted program builds" bash -c "cd '$d' && $line"
passes "emitted program trains" bash -c "cd '$d' && ./two --quiet --save '$work/emitted'"
same "emitted program, same checkpoint" "$work/each" "$work/emitted"

# ---- from one scale for all to one for each optimizer, and back -----------------------------------------------------------
passes "one scale, 4 steps" train --steps 4 --save "$work/part" "$d/two.amp"
holds "$work/part" 'ampc.scale":"524288"' 'ampc.growth":"1"'
passes "each goes on from it" train "${own[@]}" --json --resume "$work/part" --save "$work/joined" "$d/two.amp"
scales "both begin with 512" "512/512 1024/256 1024/128 1024/128 2048/128 1024/256 1024/256"
passes "a scale for each, 7 steps" train "${own[@]}" --steps 7 --save "$work/part" "$d/two.amp"
holds "$work/part" 'ampc.scale":"524288"' oa.scale\":\"1048576\" ob.scale\":\"524288\"
passes "one goes on from the lower" train --json --resume "$work/part" --steps 8 "$d/two.amp"
grep -q '"scale": *524288' "$work/out" || failed "the single scale is wrong"

# ---- one loss with several optimizers: one backward, with the lowest of their scales ----------------------
cat "$d/head.amp" - >"$d/joint.amp" <<'AMP'
optimizer oa = SGD(a, lr=0.01)
optimizer ob = SGD(b, lr=0.01, momentum=0.5)
precision f16 { scaler(init=1048576.0, interval=3) }
train x in d() with batch=8 {
  minimize steep(mse_loss(b(a(x)), x), step == 1) with ob
  minimize mse_loss(b(a(x)), x) with oa, ob
}
AMP
passes "one scale" train --save "$work/one" "$d/joint.amp"
passes "a scale for each" train "${own[@]}" --json --save "$work/each" "$d/joint.amp"
scales "the two of one loss" "1024/1024 1024/512 2048/512 2048/512 2048/1024 4096/1024 4096/1024 4096/2048 8192/2048 8192/2048 8192/4096"
alike "powers of two: the same weights" "$work/one" "$work/each"

# ---- at the prompt --------------------------------------------------------------------------------------
printf ':train 3\n:scaler\n:quit\n' | "$amp" repl --device cpu "${own[@]}" "$d/two.amp" >"$work/out" 2>&1
grep -q 'oa.scale 524288.*ob.scale 2.09715e+06' "$work/out" && grep -q 'scale 524288 (dynamic) of oa' "$work/out" ||
  failed "the prompt prints no scales"

# ---- hysteresis, --set ----------------------------------------------------------------------------------
passes "two overflows lower it" train --set scaler.hysteresis=2 --set scaler.init=4096 --set scaler.interval=20 \
  --steps 6 --save "$work/part" "$d/two.amp"
holds "$work/part" 'ampc.scale":"2048"' 'ampc.spared":"1"'
passes "resumed" train --set scaler.hysteresis=2 --set scaler.interval=20 --resume "$work/part" --save "$work/joined" "$d/two.amp"
holds "$work/joined" 'ampc.scale":"512"' 'ampc.skipped":"4"'
refuses "a wrong number" 1 'scaler.hysteresis. is 0' train --set scaler.hysteresis=0 "$d/two.amp"
refuses "an unknown one" 1 'scaler.intervall=3: the job has no such setting' train --set scaler.intervall=3 "$d/two.amp"

# ---- a step that overflows is repeated
# ----------------------------------------------------------------- A GAN in f32 with dropout in the
# critic and batch norm in the generator. Its losses overflow in some steps at scales of 256 and
# more. Repeated down to 128, these steps end with the bits of a run that started with 64.
cat >"$d/gan.amp" <<'AMP'
const K = 1
def steep(x, on) {
  k = 1.0 + (2.0 ** 120 - 1.0) * on.to(f32)
  return x / k * k
}
module Gen {
  fc1 = Linear(4, 16, bias=false); bn = BatchNorm1d(16); fc2 = Linear(16, 6)
  def forward(z) { return fc2(relu(bn(fc1(z)))) }
}
module Critic { fc1 = Linear(6, 16); fc2 = Linear(16, 1); def forward(x) { return fc2(dropout(tanh(fc1(x)), 0.1)) } }
model gen = Gen() { autocast(f32, "**") }
model critic = Critic() { autocast(f32, "**") }
optimizer od = RMSprop(critic, lr=5e-3, accumulate=K)
optimizer og = Adam(gen, lr=step_schedule(1e-2, every=4, gamma=0.5), ema=0.9, clip_norm=1.0, accumulate=K)
precision f16 { scaler(init=65536.0, interval=1000, on_overflow="replay") }
train real in synthetic(92, [6]) with batch=8, epochs=2, drop_last=false {
  fake = gen(randn(real.size(0), 4))
  minimize steep(mean(critic(fake.detach())) - mean(critic(real)), step == 2) with od
  every 2 {
    minimize steep(-mean(critic(fake)), (step == 5) | (step == 7)) with og
    metric spread = max(fake) - min(fake)
  }
  metric size = mean(real * real)
}
AMP
low=(--set scaler.init=64 --set scaler.on_overflow=skip)
# numbers FILE: prints skipped, replayed, scale
numbers() { head -c 4000 "$1" | grep -aoE '"ampc\.(scale|skipped|replayed)":"[0-9]*"' | tr -d '"\n' | sed 's/ampc\.//g'; }

for k in 3 1; do # in a step of 3 bodies, each body's gradients are those of a third of the loss
  passes "the scale is low, K=$k" train -D K=$k --json "${low[@]}" --save "$work/low" "$d/gan.amp"
  size=$(grep -o '"size":[^,}]*' "$work/out")
  passes "run again, K=$k" train -D K=$k --json --log-dir "$work/log$k" --save "$work/high" "$d/gan.amp"
  alike "run again: the same weights, statistics and moments, K=$k" "$work/low" "$work/high"
  for o in od og; do
    want=$(head -c 4000 "$work/low" | grep -aoE "optimizer.$o.taken\":\"[0-9]*")
    head -c 4000 "$work/high" | grep -qaF "$want" || failed "$o: not $want"
  done
  [ "$size" = "$(grep -o '"size":[^,}]*' "$work/out")" ] || failed "a repeated attempt counts in the metrics"
  got=$(numbers "$work/high")
  [ "$got" = "$([ $k = 1 ] && echo replayed:9scale:128skipped:0 || echo replayed:7scale:512skipped:0)" ] || failed "$got"
  [ $k = 1 ] || cp "$work/high" "$work/three"
done
head -n 1 "$work/log1/metrics.csv" | grep -q ',lr.og,replayed,' || failed "the table has no column"
passes "skipped" train --set scaler.on_overflow=skip --save "$work/skip" "$d/gan.amp"
cmp -s <(tensors "$work/low") <(tensors "$work/skip") && failed "skipping and repeating give the same weights"
passes "a scale for each" train "${own[@]}" --save "$work/each" "$d/gan.amp"
alike "a scale for each: the same weights" "$work/low" "$work/each"
holds "$work/each" od.scale\":\"128\" og.scale\":\"128\" 'ampc.replayed":"18"'
passes "without fusion" train -D K=3 -O0 --save "$work/o0" "$d/gan.amp"
same "-O0, same checkpoint" "$work/three" "$work/o0"
passes "first part" train -D K=3 --steps 6 --save "$work/part" "$d/gan.amp"
passes "the rest" train -D K=3 --resume "$work/part" --save "$work/joined" "$d/gan.amp"
same "resumed, same checkpoint" "$work/three" "$work/joined"
(cd "$d" && "$ampc" -D K=3 -o gan.c gan.amp) || failed "emit gan.c"
line=$(cd "$d" && "$ampc" -D K=3 --build-line -o gan.c gan.amp)
passes "emitted program builds" bash -c "cd '$d' && $line"
passes "emitted program trains" bash -c "cd '$d' && ./gan --quiet --save '$work/emitted'"
same "emitted program, same checkpoint" "$work/three" "$work/emitted"
printf ':train 8\n:scaler\n:save %s\n:quit\n' "$work/prompt" | "$amp" repl --device cpu -D K=3 "$d/gan.amp" >"$work/out" 2>&1
grep -q 'replayed 7 times' "$work/out" || failed "the prompt does not print it"
alike "at the prompt: the same weights" "$work/three" "$work/prompt"

# Several optimizers of one loss all repeat the step.
cat >"$d/joint.amp" <<'AMP'
def steep(x, on) {
  k = 1.0 + (2.0 ** 120 - 1.0) * on.to(f32)
  return x / k * k
}
module Net { w = Parameter([4], init=normal_()); def forward(x) { return x * w } }
model a = Net()
model b = Net()
optimizer oa = SGD(a, lr=0.05)
optimizer ob = SGD(b, lr=0.05, momentum=0.5)
precision f16 { scaler(init=65536.0, interval=1000, on_overflow="replay") }
train x in synthetic(88, [4]) with batch=8 {
  y = a(x)
  minimize mse_loss(y + steep(b(y.detach()), step == 3), x) with oa, ob
  minimize mse_loss(b(a(x)), x) with ob
}
AMP
passes "one loss of two, the scale is low" train "${low[@]}" --save "$work/low" "$d/joint.amp"
for with in "" scaler.per_optimizer=true; do
  passes "one loss of two, run again" train ${with:+--set $with} --save "$work/high" "$d/joint.amp"
  alike "one loss of two: the same weights" "$work/low" "$work/high"
  holds "$work/high" 'ampc.skipped":"0"' 'ampc.replayed":"'
done

# A step is skipped if a lower scale does not help: an overflow at the lowest scale, a loss that is
# not finite.
sed 's/init=65536.0/init=1024.0, min=512.0/' "$d/gan.amp" >"$d/floor.amp"
passes "an overflow at the lowest scale" train --save "$work/high" "$d/floor.amp"
got=$(numbers "$work/high")
[ "$got" = "replayed:1scale:512skipped:3" ] || failed "$got"
sed 's|, (step == 5) . (step == 7))|, step == 99) / (1.0 - (step == 5).to(f32))|' "$d/gan.amp" >"$d/lost.amp"
passes "a loss that is not finite" train --save "$work/high" "$d/lost.amp"
got=$(numbers "$work/high")
[ "$got" = "replayed:9scale:64skipped:1" ] || failed "$got"
# ---- two optimizers with accumulate=2: which loss is not finite, and in which body --------------------------
cd "$work" || exit 1
cat >bodies.amp <<'AMP'
module M {
  w = Parameter([1], init=ones_())
  def forward(k) { # k is 1: an infinite gradient of a finite loss; 2: an infinite loss of a finite gradient
    autocast(f32) { return (w * (1.0 + (k == 1.0).to(f32) * 3e38) + (k == 2.0).to(f32) * 3e38 * 3e38).sum() }
  }
}
model a = M()
model b = M()
optimizer oa = SGD(a, lr=0.125, accumulate=2)
optimizer ob = SGD(b, lr=0.125, accumulate=2)
precision f16 { scaler(init=16.0, interval=2) }
data kinds() { return csv("kinds.csv", ["a"]), csv("kinds.csv", ["b"]) }
train x, y in kinds() with batch=1, shuffle=false { minimize a(x[0]) with oa; minimize b(y[0]) with ob }
eval x, y in kinds() with batch=1 { metric a = a.w.sum(); metric b = b.w.sum() }
AMP
# torch.amp.GradScaler with an infinite gradient in place of an infinite loss: three steps of 0.125 of
# which an optimizer skips the first; an overflow of any optimizer keeps the scale from growing
while read -r kinds a b skipped; do
  { echo a,b; echo "$kinds" | tr ';' '\n'; printf '0,0\n%.0s' 1 2 3 4; } >kinds.csv
  passes "bodies $kinds" "$amp" train --device cpu --quiet bodies.amp
  grep -q "eval a: $a" out && grep -q "b: $b" out && grep -q "skipped steps: $skipped of 3" out || failed "bodies $kinds"
done <<'END'
0,0;0,0 0.6250 0.6250 0
2,0;0,0 0.7500 0.6250 1
0,2;0,0 0.6250 0.7500 1
0,0;2,0 0.7500 0.6250 1
2,0;0,1 0.7500 0.7500 1
1,0;2,0 0.7500 0.6250 1
2,2;0,0 0.7500 0.7500 1
END
finish
