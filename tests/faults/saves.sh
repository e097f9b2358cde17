#!/usr/bin/env bash
# A checkpoint depends only on the steps that were done: not on other saves, on the checkpoints that
# are kept, on whether the run ended by early_stop, --steps or the end of a block, or on the
# checkpoint from which it was resumed.
#   saves.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
mkdir -p "$d"
cat >"$d/stop.amp" <<'AMP'
data numbers(n: int) { return synthetic(n, [8], seed=1), synthetic(n, [], dtype=i64, low=0, high=3, seed=2) }
model net = Linear(8, 3)
optimizer opt = SGD(net, lr=plateau_schedule(2.0, "loss", factor=0.5, patience=1, cooldown=1), accumulate=2)
train x, y in numbers(64) with batch=8, epochs=30, early_stop=4 { minimize cross_entropy(net(x), y) with opt }
eval x, y in numbers(64) with batch=64, every=2 { metric loss = cross_entropy(net(x), y) }
AMP
sed 's/, early_stop=4//' "$d/stop.amp" >"$d/plateau.amp"
cat >"$d/two.amp" <<'AMP'
data numbers(n: int) { return synthetic(n, [8], seed=1), synthetic(n, [], dtype=i64, low=0, high=3, seed=2) }
model net = Linear(8, 3)
optimizer opt = SGD(net, lr=0.5)
train x, y in numbers(64) with batch=16, epochs=2 { minimize cross_entropy(net(x), y) with opt }
train x, y in numbers(64) with batch=16, epochs=2 { minimize cross_entropy(net(x), y) with opt }
eval x, y in numbers(64) with batch=64 { metric loss = cross_entropy(net(x), y) }
AMP
train() { "$amp" train --device cpu --quiet "$@"; }

# ends JOB OPTIONS...: the last file is the same however often the run is saved, and also after a
# resume from each checkpoint
ends() {
  local job=$1 name what from
  shift
  name="$job $*"
  rm -rf "$work/run" && mkdir "$work/run"
  passes "$name" train "$@" --save "$work/whole" "$d/$job.amp"
  for what in "--save-every 1" "--save-every 2" "--save-every 4 --keep-best 2" \
    "--keep-best 1" "--save-every 2 --keep-last 100 --keep-best 9"; do
    # shellcheck disable=SC2086
    passes "$name $what" train "$@" $what --save "$work/run/part" "$d/$job.amp"
    same "$name $what: same end" "$work/whole" "$work/run/part"
  done
  for from in "$work"/run/part*; do
    passes "$name from ${from##*/}" train "$@" --resume "$from" --save "$work/rest" "$d/$job.amp"
    same "$name from ${from##*/}: same end" "$work/whole" "$work/rest"
  done
  # a checkpoint from the middle equals that of a run which ends there
  passes "$name until step 4" train --steps 4 --save "$work/four" "$d/$job.amp"
  same "$name: that of step 4" "$work/four" "$work/run/part.step4"
}
ends stop
ends plateau --steps 24
ends plateau --steps 23
ends two
ends two --steps 10
ends two --steps 8
# a run with no steps left stays at its position: no block is skipped
for n in 0 4 8; do
  passes "$n steps" train --steps $n --save "$work/part" "$d/two.amp"
  passes "$n steps, and none" train --steps $n --resume "$work/part" --save "$work/part" "$d/two.amp"
  passes "the rest" train --resume "$work/part" --save "$work/rest" "$d/two.amp"
  passes "without a stop" train --save "$work/whole" "$d/two.amp"
  same "$n steps, none, the rest: same end" "$work/whole" "$work/rest"
done
finish
