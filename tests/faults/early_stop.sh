#!/usr/bin/env bash
# early_stop: where a run ends, which checkpoints it keeps, resumed and emitted; the option; a job
# without a metric.
#   early_stop.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
mkdir -p "$d"
# the learning rate reaches 0 after two epochs, so evaluations do not change after that
cat >"$d/job.amp" <<'AMP'
data numbers(n: int) { return synthetic(n, [8], seed=1), synthetic(n, [], dtype=i64, low=0, high=3, seed=2) }
model net = Linear(8, 3)
optimizer opt = SGD(net, lr=linear_schedule(0.5, 0.0, steps=8))
train x, y in numbers(64) with batch=16, epochs=20, early_stop=3 { minimize cross_entropy(net(x), y) with opt }
eval x, y in numbers(64) with batch=64 { metric loss = cross_entropy(net(x), y) }
AMP
job=$d/job.amp
passes "train" "$amp" train --device cpu --save "$work/a" "$job"
grep -q "stopped early after step 20: no eval loss better than .* in 3 evaluations" "$work/err" || failed "the run does not stop after step 20"
[ "$(ls "$work" | grep -c '^a\.best-loss=.*\.step8$')" = 1 ] || failed "the best is not kept: $(ls "$work")"
passes "the best goes on" "$amp" eval --device cpu --quiet --resume "$work"/a.best-loss=*.step8 "$job"
for n in 8 10 16; do
  passes "stopped after $n steps" "$amp" train --device cpu --quiet --steps $n --save "$work/part" "$job"
  rm -f "$work"/part.best*
  passes "the rest" "$amp" train --device cpu --quiet --resume "$work/part" --save "$work/joined" "$job"
  same "resumed after $n steps, same end" "$work/a" "$work/joined"
done
passes "at the end already" "$amp" train --device cpu --resume "$work/a" --save "$work/again" "$job"
same "nothing more is done" "$work/a" "$work/again"
passes "the option" "$amp" train --device cpu --early-stop 1 "$job"
grep -q "stopped early after step 12" "$work/err" || failed "--early-stop 1 does not stop after step 12"
(cd "$d" && "$ampc" -o job.c job.amp && eval "$("$ampc" --build-line -o job.c job.amp)") || failed "emit job.c"
passes "emitted program" "$d/job" --quiet --save "$work/emitted"
same "emitted program and JIT, same end" "$work/a" "$work/emitted"
# names say nothing: perplexity falls, and so does an accuracy called `loss`, if the learning rate is 0
sed 's/{ metric.*/{ metric acc = perplexity(net(x), y) }/' "$job" >"$d/falls.amp"
passes "a metric that falls" "$amp" train --device cpu --early-stop 1 --steps 8 "$d/falls.amp"
! grep -q "stopped early\|count as better" "$work/err" || failed "perplexity: $(cat "$work/err")"
sed 's/{ metric.*/{ metric loss = net(x).mean() }/' "$job" >"$d/unknown.amp"
passes "a metric of no function" "$amp" train --device cpu --quiet --early-stop 1 --steps 4 "$d/unknown.amp"
grep -q 'lower values of eval loss count as better, .* `metric loss = ... with mode="max"`' "$work/err" || failed "nothing says which values are better: $(cat "$work/err")"
sed 's/mean() }/mean() with mode="max" }/' "$d/unknown.amp" >"$d/given.amp"
passes "a mode" "$amp" train --device cpu --quiet --early-stop 1 --steps 4 "$d/given.amp"
! grep -q "count as better" "$work/err" || failed "the mode is not read"
grep -v "^eval" "$job" >"$d/none.amp"
refuses "no metric" 2 "early stop: none.amp has no eval block with a metric" \
  "$amp" train --device cpu --quiet "$d/none.amp"
sed 's/ early_stop=3//; s/epochs=20,/epochs=20/' "$d/none.amp" >"$d/plain.amp"
refuses "no metric for the option" 2 "early stop: plain.amp has no eval block with a metric" \
  "$amp" train --device cpu --quiet --early-stop 2 "$d/plain.amp"
sed 's/early_stop=3/early_stop=0/' "$job" >"$d/zero.amp"
refuses "no patience" 1 '`early_stop` is 0; it must be a whole number from 1' "$amp" train "$d/zero.amp"
finish
