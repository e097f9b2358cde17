#!/usr/bin/env bash
# The output of a run: numbers of the scaler only if there is one; NaN without a sign.
#   output.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
d=$work/data
small_data "$d"
small_job "$d/job.amp"
job=$d/job.amp
train() { timeout 500 "$amp" train --device cpu --steps 3 --log 1 "$@" "$job"; }

for precision in f32 bf16 tf32; do
  passes "$precision" train --set precision=$precision
  grep -Eq 'step 3/3 .* lr ' "$work/err" || failed "$precision: no line of a step"
  grep -Eq ' scale | skipped ' "$work/err" && failed "$precision: a scale without a scaler"
  grep -q 'skipped' "$work/out" && failed "$precision: skipped steps without a scaler"
done
passes "f16" train --set precision=f16
grep -Eq 'step 3/3 .* scale [0-9]+ skipped [0-9]' "$work/err" || failed "f16: no scale"
grep -Eq '^skipped steps: [0-9] of 3$' "$work/out" || failed "f16: no skipped steps"

cat >"$d/nan.amp" <<'EOF'
data d() { return synthetic(8, [4]) }
model net = Linear(4, 1)
optimizer opt = SGD(net, lr=0.1)
train x in d() with batch=4, steps=1 { minimize net(x).sum() with opt }
eval x in d() with batch=4 { metric root = sqrt(x.sum() * 0.0 - 1.0) }
EOF
passes "a metric that is NaN" "$amp" train --device cpu "$d/nan.amp"
grep -qx 'eval root: nan' "$work/out" || failed "NaN: $(cat "$work/out")"
printf ':train\n:eval\n' | timeout 100 "$amp" repl --device cpu "$d/nan.amp" >"$work/out" 2>&1
grep -q 'eval root: nan' "$work/out" || failed "NaN at the prompt: $(cat "$work/out")"
finish
