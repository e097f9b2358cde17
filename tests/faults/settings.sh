#!/usr/bin/env bash
# Arithmetic with schedules in an optimizer's settings: the learning rate of every step, with `amp`
# and an emitted program, resumed, changed by --set, over two blocks.
#   settings.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cat >job.amp <<'AMP'
data d() { return synthetic(32, [4]), synthetic(32, [3]) }
model net = Linear(4, 3); model other = Linear(4, 3); model third = Linear(4, 3); model fourth = Linear(4, 3)
def halved(rate) { return rate / 2.0 }
optimizer a = SGD(net, lr=halved(0.5 * cosine_schedule(1.0, steps=8)), momentum=1.0 - linear_schedule(0.5, 0.1, steps=8))
optimizer b = Adam(other, lr=min(linear_schedule(0.0, 0.08, steps=8), 0.05) * sqrt(polynomial_schedule(0.25, 0.04, steps=4)))
optimizer c = SGD(third, lr=0.1 * 0.5 ** epoch) { group("bias", lr=clamp(2.0 / (step + 2), 0.3, 0.5)) }
optimizer e = SGD(fourth, lr=where(step < 3, 0.01, 0.1) + -exponential_schedule(0.001, 1.0))
train x, y in d() with batch=8, epochs=2 {
  minimize mse_loss(net(x), y) with a
  minimize mse_loss(other(x), y) with b
  minimize mse_loss(third(x), y) with c
  minimize mse_loss(fourth(x), y) with e
}
train x, y in d() with batch=16, epochs=2, name="second" { minimize mse_loss(net(x), y) with a }
AMP
cat >rates.py <<'PY'
import json, math, sys
peak = float(sys.argv[1])
first = int(sys.argv[2])
cosine = lambda t: peak / 2 * (1 + math.cos(math.pi * min(t, 8) / 8))
want = {"a": lambda t: 0.25 * cosine(t),
        "b": lambda t: min(0.01 * t, 0.05) * math.sqrt(0.04 + 0.21 * max(0, 1 - t / 4)),
        "c": lambda t: 0.1 * 0.5 ** (t // 4),
        "e": lambda t: (0.01 if t < 3 else 0.1) - 0.001}
steps = [json.loads(line) for line in sys.stdin]
steps = [s for s in steps if s.get("event", "step") == "step"]
assert len(steps) == 12 - first, len(steps)
for t, s in enumerate(steps, first):
    names = want if t < 8 else ["a"]
    for name in names:
        assert abs(s["lr." + name] - want[name](t)) < 1e-6, (t, name, s["lr." + name], want[name](t))
PY
rates() { # rates NAME PEAK FIRST COMMAND...
  local name=$1 peak=$2 first=$3
  shift 3
  "$@" --json --quiet >"$work/steps" 2>"$work/err" || failed "$name: $?"
  if python3 rates.py "$peak" "$first" <"$work/steps" >"$work/out" 2>"$work/err"; then
    echo "ok: $name"
  else
    failed "$name"
  fi
}
train() { "$amp" train --device cpu "$@"; }
rates "of each step" 1 0 train --save fused job.amp
passes "the first steps" train --quiet --steps 5 --save five job.amp
rates "resumed" 1 5 train --resume five --save resumed job.amp
same "resumed, the same bytes" fused resumed
passes "without fusion" train --quiet -O0 --save plain job.amp
same "without fusion, the same bytes" fused plain
rates "a schedule's number is a setting" 0.5 0 train --set a.lr.peak=0.5 job.amp
"$ampc" -o job.c job.amp && eval "$("$ampc" --build-line -o job.c job.amp)" || failed "job.c"
rates "emitted" 1 0 ./job --save emitted
same "emitted, the same bytes" fused emitted
rates "emitted, another number" 0.5 0 ./job --set a.lr.peak=0.5
passes "a second schedule's number" train --quiet --set b.lr.2.start=0.16 job.amp
refuses "a schedule that is not there" 1 'a.lr.2.peak=0.5: the job has no such setting' train --set a.lr.2.peak=0.5 job.amp
finish
