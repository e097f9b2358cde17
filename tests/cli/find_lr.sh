#!/usr/bin/env bash
# amp train --find-lr: the rates that it tries, what it proposes, and that this trains well.
#   find_lr.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
cat >job.amp <<'AMP'
data d() { x = synthetic(512, [8]); return x, x.sum(1) }
module Net { fc1 = Linear(8, 32); fc2 = Linear(32, 1); def forward(x) { return fc2(relu(fc1(x)))[:, 0] } }
model net = Net()
optimizer opt = OPTIMIZER
PRECISION
train x, y in d() with batch=64, epochs=4, save="save", resume="save" { minimize mse_loss(net(x), y) with opt }
AMP
job() { # job FILE OPTIMIZER [PRECISION]
  sed -e "s/OPTIMIZER/$2/" -e "s/PRECISION/${3-precision f32}/" job.amp >"$1"
}
find_lr() { find_lr_of "$@" >out 2>err; }
find_lr_of() { "$amp" train --device cpu "$@"; }
holds() { # holds NAME PYTHON: the expression is true for the lines of JSON in out
  python3 - "$@" <<'PY' && echo "ok: $1" || failed "$1"
import json, math, sys
lines = [json.loads(l) for l in open("out")]
rates = [l["lr"] for l in lines[:-1]]
found = lines[-1]["lr"]
near = lambda a, b: math.isclose(a, b, rel_tol=0.05)
assert eval(sys.argv[2]), (lines[:2], lines[-2:])
PY
}
loss() { rm -f save && "$amp" train --device cpu --json -q "$@" | sed -n 's/.*"step":32,.*"loss":\([0-9.e+-]*\).*/\1/p'; }

# ---- a schedule, a group with its own rate, momentum -----------------------------------------------------
job sgd.amp 'SGD(net, lr=cosine_schedule(0.02, warmup=5), momentum=0.9) { group("**.bias", lr=0.002) }'
find_lr --find-lr --json sgd.amp || failed "--json: $(cat err)"
holds "one hundred rates in equal ratios, until the loss diverges" \
  'len(lines) > 40 and near(rates[0], 1e-7) and all(near(b / a, 1e8 ** (1 / 99)) for a, b in zip(rates, rates[1:])) and lines[-1]["diverged"]'
holds "the ratio of two rates" 'near(found["opt.lr.peak"], 10 * found["opt.group1.lr"]) and 1e-3 < found["opt.lr.peak"] < 0.5'
[ ! -e save ] || failed "the test saves"
find_lr --find-lr sgd.amp || failed "text: $(cat err)"
grep -q 'smoothed loss by opt.lr' out && grep -q '⠀' out && grep -q 'the loss diverged at' out || failed "no curve"
mapfile -t set < <(sed -n 's/^  --set //p' out)
[ ${#set[@]} = 2 ] || failed "${#set[@]} settings"
"$amp" train --device cpu -q --save made sgd.amp || failed "no checkpoint"
cp made save # the job resumes from it, the test does not
find_lr --find-lr sgd.amp && [ "$(sed -n 's/^  --set //p' out | head -1)" = "${set[0]}" ] || failed "it resumes"
cmp -s made save || failed "the test writes the checkpoint"
rm save
good=$(loss --set "${set[0]}" --set "${set[1]}" sgd.amp)
low=$(loss --set "${set[0]}e-2" --set "${set[1]}e-2" sgd.amp)
high=$(loss --set "${set[0]}e+1" --set "${set[1]}e+1" sgd.amp)
python3 -c "import sys; g, l, h = map(float, sys.argv[1:]); assert g < l / 2 and not h <= g, (g, l, h)" "$good" "$low" "${high:-inf}" &&
  echo "ok: the proposal trains to $good; a hundredth $low; ten times ${high:-inf}" || failed "the proposal is bad"

# ---- bounds, steps, overflows, batches of a step, several optimizers -------------------------------------
job f16.amp 'SGD(net, lr=0.02, accumulate=2)' 'precision f16 { scaler(init=2.0 ** 24, max=2.0 ** 24) }'
find_lr --find-lr=1e-3,0.2 --steps 40 --json f16.amp || failed "f16: $(cat err)"
holds "bounds; steps that overflow are no end" 'near(rates[0], 1e-3) and len(rates) == 40 and near(rates[-1], 0.2) and not lines[-1]["diverged"]'
job group.amp 'AdamW(net, lr=0.01) { group("**.bias", weight_decay=0.0) }'
find_lr --find-lr --json group.amp || failed "group: $(cat err)"
holds "a group that has the optimizer's rate" 'open("out").read().count("opt.lr") == 1 and list(found) == ["opt.lr"]'
last=$(python3 -c 'import json; print("%.2g" % [json.loads(l)["lr"] for l in open("out")][-2])')
find_lr --find-lr group.amp || failed "divergence: $(cat err)"
grep -qx "the loss diverged at $last" out && echo "ok: it diverged at the last rate" || failed "diverged at $last: $(cat out)"
job two.amp 'Adam(net.fc1)\noptimizer other = Adam(net.fc2, lr=2e-3)'
sed -i 's/with opt }/with opt, other }/' two.amp
find_lr --find-lr --json two.amp || failed "two: $(cat err)"
holds "two optimizers" 'near(found["other.lr"], 2 * found["opt.lr"])'

# ---- what it refuses -------------------------------------------------------------------------------------
job expression.amp 'SGD(net, lr=0.1 * 0.9 ** epoch) { group("**.bias", lr=0.01) }'
refuses "an expression" 2 'opt.lr is an expression; for the test, give a number: --set opt.lr=1e-3' \
  find_lr_of --find-lr expression.amp
find_lr --find-lr --set opt.lr=1e-3 expression.amp || failed "the cure: $(cat err)"
refuses "a checkpoint" 2 'find-lr cannot be combined with --save' find_lr_of --find-lr --save x sgd.amp
for range in 1 0,1 2,1 1,x; do
  refuses "the range $range" 2 'expected LOW,HIGH: two rates above 0, the lower first' find_lr_of --find-lr=$range sgd.amp
done
refuses "rates that change nothing" 5 'made the loss fall within 20 steps' \
  find_lr_of --find-lr=1e-30,1e-29 --steps 20 --set train.batch=512 --set train.shuffle=false sgd.amp
refuses "no step" 5 'made the loss fall within 0 steps' find_lr_of --find-lr --steps 0 sgd.amp
sed 's/net(x)/nett(x)/' sgd.amp >wrong.amp
(cat group.amp && sed -n '/^train/s/, save=.*{/ {/p' group.amp) >blocks.amp
refuses "two train blocks" 2 'tests one train block, but the job has 2' find_lr_of --find-lr blocks.amp
refuses "a wrong job" 1 'nett' find_lr_of --find-lr wrong.amp
finish
