#!/usr/bin/env bash
# amp tune: the pin that models/fragile needs, the job's text, the file of trials, --check, profiles, errors.
#   run.sh AMP AMPC
set -euo pipefail
amp=$(realpath "$1") ampc=$(realpath "$2")
root=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tune() { "$amp" tune -q --device cpu --steps 12 "$@"; }
fails() { # fails STATUS TEXT COMMAND...
  local want=$1 text=$2 status=0
  shift 2
  "$@" >out 2>&1 || status=$?
  grep -q -- "$text" out && [ $status = $want ] || { echo "FAILED ($status): $* does not say: $text"; cat out; exit 1; }
}
has() { grep -q -- "$1" "$2" || { echo "FAILED: no \"$1\" in $2"; cat "$2"; exit 1; }; }
dump() { "$ampc" --dump-after=precision "$1" | sed 's/ *#.*//'; }

# ---- the pin; overflow in seed 3, underflow in seed 1; four blocks compile sooner than twelve ----
sed 's/^const PLACE = DRAW % 12/const PLACE = DRAW % 4/; s/range(12)/range(4)/' "$root/models/fragile/fragile.amp" >under.amp
# a comment and a clause in the braces stay; a schedule may count the steps of an epoch
sed 's/^const SEED = 1/const SEED = 3/; s/schedule(3e-3)/schedule(3e-3, warmup=steps_per_epoch)/
s/^precision f16/precision f16 {\n  policy(f32, relu)     # mine\n}/' \
  under.amp >over.amp
cp over.amp before.amp
tune over.amp >out
has '^+  autocast(f32, "net.blocks.3.share")   # tune: f16 overflows in 12 of 12 steps, largest value' out
has '^+  policy(f32, relu)     # mine$' out
has '^[0-9]* trials, 0 of them from over.tune.json$' out
cmp over.amp before.amp
tune under.amp >out
has '^+  autocast(f32, "net.blocks.2.share")   # tune: [0-9]* % of the elements of a value in net.blocks.2.share are 0 in f16' out
echo "ok: the pin of each fault"

# ---- the file of trials: a second run measures nothing; a killed one continues ----
cp over.tune.json first.json
tune over.amp >out
n=$(sed -n 's/^\([0-9]*\) trials, \1 of them from over.tune.json$/\1/p' out)
[ -n "$n" ] || { echo "FAILED: trials were measured again"; cat out; exit 1; }
cmp over.tune.json first.json
rm over.tune.json
"$amp" tune -q --device cpu --steps 12 over.amp >out &
pid=$!
for _ in $(seq 600); do grep -qs '"not read' over.tune.json || [ ! -s over.tune.json ] || break; sleep 0.05; done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
[ -s over.tune.json ]
tune over.amp >out
if grep -q 'trials, 0 of them' out; then echo "FAILED: the trials are lost"; exit 1; fi
cmp <(jq .trials over.tune.json | sed '/measured_us/d') <(jq .trials first.json | sed '/measured_us/d')
echo "ok: the file of trials"

# ---- --write changes only the precision; a second run gives the same text; --check ----
tune --write over.amp >out
diff before.amp over.amp >changes || true
if grep '^[<>]' changes | grep -vE '^[<>] (precision f16|  (scaler|autocast|policy)|\})'; then
  echo "FAILED: other lines changed"
  exit 1
fi
cp over.amp once.amp
tune --write over.amp >out
cmp over.amp once.amp
tune --check over.amp >out
has '^gradients deviate by .* the bound is 0.05$' out
fails 5 'does not keep the bound' tune --check before.amp
sed -i '/# tune:/{/^precision/!d}' over.amp
sed -i 's/ *# tune:.*//' over.amp
cmp over.amp before.amp
echo "ok: the text of the job"

# ---- a profile is the same as the text ----
tune --save over.precision.amp over.amp >out
sed 's/^precision f16.*/precision auto/; /policy(f32/,/^}/d' before.amp >over.amp
dump once.amp >a
dump over.amp >b
cmp a b
sed -i 's/^precision auto/precision profile("over.precision.amp")/' over.amp
dump over.amp >b
cmp a b
echo "ok: profiles"

# ---- a budget, a bound ----
cp under.amp small.amp
fails 5 'the budget ended before the first trial' tune --budget 1s --steps 3000 --state other.json small.amp
tune --bound 0.0001 --types bf16 --budget 2s --batches 1 --measure small.amp >out
has '# tune: .* bound 0.0001' out
fails 5 'does not keep the bound' tune --check --set precision=f16 before.amp
tune --check --set precision=f32 before.amp >out
has '^gradients deviate by 0 from f32, the loss by 0; ' out
echo "ok: a budget"

# ---- errors ----
fails 2 'expected types such as f16,bf16,tf32' tune --types f8 small.amp
fails 2 'expected a number above 0' tune --bound 0 small.amp
fails 2 '--write' tune --check --write small.amp
echo '{ "other": 1 }' >small.tune.json
fails 3 'small.tune.json' tune small.amp
printf '{\n "tune": 5' >small.tune.json
fails 3 'small.tune.json' tune small.amp
rm small.tune.json
echo 'infer f(x: f32[2]) { return x }' >none.amp
fails 2 'none.amp has no train block' tune none.amp
sed 's/^precision f16/precision O2/' under.amp >level.amp
fails 2 'O2' tune level.amp
sed 's/^precision f16/precision auto/' under.amp >auto.amp
fails 2 'reads another file' tune auto.amp
fails 2 'train.shards=1' tune --set train.shards=4 under.amp
echo "ok: errors"
