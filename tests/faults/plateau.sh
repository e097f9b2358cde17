#!/usr/bin/env bash
# plateau_schedule and early_stop: interrupted runs, emitted programs and the prompt write the same
# bytes.
#   plateau.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
mkdir -p "$d"
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
cat >"$d/job.amp" <<'AMP'
data numbers(n: int) { return synthetic(n, [8], seed=1), synthetic(n, [], dtype=i64, low=0, high=3, seed=2) }
model net = Linear(8, 3)
optimizer opt = SGD(net, lr=plateau_schedule(2.0, "loss", factor=0.5, patience=1, cooldown=1, min_lr=0.05, threshold=0.01)) {
  group("bias", lr=plateau_schedule(0.5, metric="eval.acc", patience=2, threshold_mode="abs"))
}
train x, y in numbers(64) with batch=16, epochs=30, early_stop=8 { minimize cross_entropy(net(x), y) with opt }
eval x, y in numbers(64) with batch=64, every=3 { metric acc = accuracy(net(x), y) }
eval x, y in numbers(64) with batch=64 { metric loss = cross_entropy(net(x), y) }
AMP
job=$d/job.amp
prompt() { # prompt WHAT LINE...: runs these lines at the prompt
  what=$1; shift
  printf '%s\n' "$@" ":save $work/session" | timeout 300 "$amp" repl "$job" >"$work/session.out" 2>&1 || failed "$what"
}
passes "train" "$amp" train --device cpu --save "$work/a" "$job"
grep -q "^opt.lr is 1 after step [0-9]*: no loss better than .* in 2 evaluations" "$work/err" || failed "the first plateau"
grep -q "^opt.group1.lr is 0.05 after step" "$work/err" || failed "the plateau of a group"
grep -q "stopped early after step" "$work/err" || failed "no early stop"
for n in 1 8 9 12 19 20 27; do
  passes "stopped after $n steps" "$amp" train --device cpu --quiet --steps $n --save "$work/part" "$job"
  rm -f "$work"/part.best* "$work"/joined.best*
  passes "the rest" "$amp" train --device cpu --quiet --resume "$work/part" --save "$work/joined" "$job"
  same "resumed after $n steps, same end" "$work/a" "$work/joined"
done
(cd "$d" && "$ampc" -o job.c job.amp && eval "$("$ampc" --build-line -o job.c job.amp)") || failed "emit job.c"
passes "emitted program" "$d/job" --quiet --save "$work/emitted"
same "emitted program and JIT, same end" "$work/a" "$work/emitted"
passes "-O0" "$amp" train -O0 --device cpu --quiet --save "$work/plain" "$job"
same "-O0 and -O2, same end" "$work/a" "$work/plain"

prompt "a session" ":train"
same "the prompt and amp train, same end" "$work/a" "$work/session"
grep -q "^stopped early after step" "$work/session.out" || failed "the prompt does not report that it stops"
prompt "a session in pieces" ":train 19" ":show x" ":train 5" ":set" ":train"
same "in pieces, same end" "$work/a" "$work/session"
prompt "a loaded session" ":train 3" ":load $work/part" ":train"
same "loaded, same end" "$work/a" "$work/session"
prompt "a session that has stopped" ":load $work/a" ":train"
grep -q "^stopped early after step" "$work/session.out" || failed "a session continues after its end"
same "nothing more is done" "$work/a" "$work/session"
passes "one step" "$amp" train --device cpu --quiet --steps 1 --save "$work/first" "$job"
prompt "back to the beginning" ":train 20" ":load $work/first" ":train"
same "settings that were lowered are as before" "$work/a" "$work/session"

# another initial rate: in the text, on the command line, in an emitted program
sed 's/plateau_schedule(2.0/plateau_schedule(1.0/' "$job" >"$d/one.amp"
passes "another start" "$amp" train --device cpu --quiet --set opt.lr.start=1.0 --steps 40 --save "$work/set" "$job"
passes "in the text" "$amp" train --device cpu --quiet --steps 40 --save "$work/one" "$d/one.amp"
passes "emitted" "$d/job" --quiet --set opt.lr.start=1.0 --steps 40 --save "$work/given"
lr() { strings -n 8 "$1" | grep -o '"ampc.plateau.[^,]*' | sort; }
[ -n "$(lr "$work/set")" ] && [ "$(lr "$work/set")" = "$(lr "$work/one")" ] || failed "--set and the text differ"
[ "$(lr "$work/set")" = "$(lr "$work/given")" ] || failed "--set of the emitted program differs"
passes "another patience" "$amp" train --device cpu --set opt.lr.patience=2 --steps 40 "$job"
grep -q "no loss better than .* in 3 evaluations" "$work/err" || failed "--set opt.lr.patience"
refuses "a setting that the schedule lacks" 1 "opt.lr.gamma" "$amp" train --set opt.lr.gamma=2 "$job"
finish
