#!/usr/bin/env bash
# `every n`: the steps in which it runs, in a whole run and a resumed one, in each train block. The
# bytes are the same resumed, without fusion, emitted and at the prompt, with steps of several
# bodies, a smaller last batch, batch norm, weight averages and overflows. An optimizer that does
# not step leaves weights and loss scale unchanged.
#   every.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/job
mkdir -p "$d"
train() { "$amp" train --device cpu --quiet "$@"; }

cat >"$d/gan.amp" <<'AMP'
const K = 3
module Gen {
  fc1 = Linear(4, 16, bias=false); bn = BatchNorm1d(16); fc2 = Linear(16, 6)
  def forward(z) { return fc2(relu(bn(fc1(z)))) }
}
module Critic { fc1 = Linear(6, 16); fc2 = Linear(16, 1); def forward(x) { return fc2(dropout(tanh(fc1(x)), 0.1)) } }
model gen = Gen()
model critic = Critic()
optimizer opt_d = RMSprop(critic, lr=5e-3, clamp=[-0.1, 0.1], accumulate=K)
optimizer opt_g = Adam(gen, lr=step_schedule(1e-2, every=2, gamma=0.5), ema=0.9, clip_norm=1.0, accumulate=K)
precision f16 { scaler(init=16777216.0, max=16777216.0, interval=4) }
train real in synthetic(196, [6]) with batch=16, epochs=5, drop_last=false {
  fake = gen(randn(real.size(0), 4))
  minimize mean(critic(fake.detach())) - mean(critic(real)) with opt_d
  every 3 {
    score = critic(fake)
    minimize -mean(score) with opt_g
    every 2 { metric spread = max(score) - min(score) }
  }
  metric size = mean(real * real)
}
eval real in synthetic(40, [6]) with batch=20, every=4 { metric d = mean(critic(real)) - mean(critic(gen(randn(20, 4)))) }
AMP
job=$d/gan.amp

# fires NAME METRIC "STEPS" COMMAND...: exactly the JSON lines of these steps have a number for METRIC
fires() {
  local name=$1 metric=$2 want=$3 got
  shift 3
  "$@" --json >"$work/out" 2>"$work/err" || failed "$name: exit status $?"
  got=$(sed -n "/\"event\": *\"step\"/{/\"$metric\": *null/d; /\"$metric\"/s/.*\"step\": *\([0-9]*\), *\"of\".*/\1/p}" "$work/out" | xargs)
  [ "$got" = "$want" ] && echo "ok: $name: $got" || failed "$name: $got, expected $want"
}

# ---- the same bytes in all ways to run ------------------------------------------------------- 13
# batches in each epoch, the last one of 4 samples: steps of 3, 3, 3, 3 and 1 batches
fires "steps of three bodies" loss_opt_g "3 6 9 12 15 18 21 24" train --save "$work/a" "$job"
grep -q '"skipped":0' <(tail -n 2 "$work/out") && failed "no step overflows"
fires "one in the other" spread "6 12 18 24" train -O0 --save "$work/b" "$job"
same "-O0, same checkpoint" "$work/a" "$work/b"
for n in 2 3 8; do
  passes "first $n steps" train --steps $n --save "$work/part" "$job"
  [ $n = 8 ] && fires "resumed" loss_opt_g "9 12 15 18 21 24" train --resume "$work/part" --save "$work/joined" "$job"
  [ $n = 8 ] || passes "the rest" train --resume "$work/part" --save "$work/joined" "$job"
  same "resumed after $n steps, same checkpoint" "$work/a" "$work/joined"
done
(cd "$d" && "$ampc" -o gan.c gan.amp) || failed "emit gan.c"
line=$(cd "$d" && "$ampc" --build-line -o gan.c gan.amp)
passes "emitted program builds" bash -c "cd '$d' && $line"
fires "emitted program" loss_opt_g "3 6 9 12 15 18 21 24" "$d/gan" --quiet --save "$work/emitted"
same "emitted program and JIT, same checkpoint" "$work/a" "$work/emitted"
printf ':train 7\n:save %s\n:train\n:save %s\n' "$work/seven" "$work/repl" | "$amp" repl "$job" >"$work/out" 2>"$work/err" ||
  failed "repl"
same "the prompt, same checkpoint" "$work/a" "$work/repl"
printf ':load %s\n:train\n:save %s\n' "$work/seven" "$work/loaded" | "$amp" repl "$job" >"$work/out" 2>"$work/err" ||
  failed "repl"
same "the prompt with a checkpoint, same checkpoint" "$work/a" "$work/loaded"
passes "looking at what fires" bash -c "printf ':show score\n:grad gen.fc2.bias\n:casts\n' | '$amp' repl '$job'"
passes "a log" train --log-dir "$work/log" --log 1 --steps 3 "$job"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "train.loss_opt_g") c = i }
  NR > 1 && $1 < 4 { bad += (NR - 1 == 3) == ($c == "") } END { exit bad || !c }' "$work/log/metrics.csv" &&
  echo "ok: rows have the losses that ran" || failed "rows of the log"

# ---- `every` counts the steps of the run -------------------------------------------------------------------
cat >"$d/two.amp" <<'AMP'
model net = Linear(6, 1)
optimizer opt = SGD(net, lr=0.01)
train x in synthetic(48, [6]) with batch=16 { minimize mean(net(x) ** 2) with opt }
train x in synthetic(96, [6]) with batch=16 {
  minimize mean(net(x) ** 2) with opt
  every 2 { minimize mean(net(x + 1) ** 2) with opt; metric low = min(x) }
}
AMP
fires "a second block" low "4 6 8" train --save "$work/two" "$d/two.amp"
passes "two updates in a step, first part" train --steps 7 --save "$work/part" "$d/two.amp"
passes "and the rest" train --resume "$work/part" --save "$work/joined" "$d/two.amp"
same "two updates in a step, same checkpoint" "$work/two" "$work/joined"
tail -c 1000000 "$work/two" | grep -qa '"ampc.optimizer.opt.taken":"12"' || failed "not 12 updates in 9 steps"

# ---- the length of a schedule is the number of updates of its optimizer ---------------------------------------------------
cat >"$d/length.amp" <<'AMP'
model net = Linear(6, 1)
model other = Linear(6, 1)
optimizer opt = SGD(net, lr=0.01)
optimizer rare = SGD(other, lr=linear_schedule(1.0, 0.0))
train x in synthetic(208, [6]) with batch=16 {
  minimize mean(net(x) ** 2) with opt
  every 3 { minimize mean(other(x) ** 2) with rare }
}
AMP
rates() { # rates NAME EXPECTED OPTION...: the learning rates, without repetitions, must be EXPECTED
  local got
  got=$(train --json "${@:3}" "$d/length.amp" 2>"$work/err" | sed -n 's/.*"lr.rare": *\([0-9.e-]*\).*/\1/p' | uniq | xargs)
  [ "$got" = "$2" ] && echo "ok: $1: $got" || failed "$1: $got, expected $2"
}
rates "13 steps, 4 updates" "0.0 1.0 0.75 0.5 0.25"
rates "--steps" "0.0 1.0 0.5" --steps 8
rates "--set rare.lr.steps" "0.0 1.0 0.875 0.75 0.625" --set rare.lr.steps=8

# ---- an optimizer that does not step changes nothing ---------------------------------------------------------------------
cat >"$d/still.amp" <<'AMP'
model net = Sequential(Linear(6, 8), Dropout(0.3), Linear(8, 1))
optimizer opt = SGD(net, lr=0.01)
precision f16 { scaler(init=4.0, interval=3) }
train x in synthetic(100, [6]) with batch=16, drop_last=false, epochs=2 {
  y = net(x + 0.1 * randn_like(x))
  every 3 { metric greatest = max(y) }
  minimize mean(y ** 2) with opt
}
AMP
mkdir "$d/plain"
grep -v every "$d/still.amp" >"$d/plain/still.amp"
passes "with a metric in some steps" train --save "$work/with" "$d/still.amp"
passes "and without it" train --save "$work/without" "$d/plain/still.amp"
same "a metric in some steps, same checkpoint" "$work/with" "$work/without"
# 14 steps; the optimizer runs in 7 of them. The scale grows after 3 and 6 of these 7, not after
# steps 3, 6, 9 and 12
sed -i 's/every 3 {.*/every 2 {/; s/with opt$/with opt }/' "$d/still.amp"
passes "the optimizer in some steps" train --save "$work/some" "$d/still.amp"
for entry in '"ampc.scale":"16"' '"ampc.growth":"1"' '"ampc.optimizer.opt.taken":"7"' '"ampc.step":"14"'; do
  grep -qa "$entry" "$work/some" && echo "ok: $entry" || failed "the checkpoint lacks $entry"
done
finish
