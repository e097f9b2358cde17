#!/usr/bin/env bash
# What augmentation draws: shares of mixup have the moments of the beta distribution, 1/2 and
# 1/4 + 1 / (4 (2 alpha + 1)); random_erasing takes rectangles of the area that is asked for, as often as
# asked; a class is among the first k of accuracy as often as k is of all. Batches of an evaluation draw each their own,
# the same in the next evaluation of the same weights.
# usage: draws.sh AMP
set -euo pipefail
amp=$1
job=$(mktemp --suffix=.amp)
trap 'rm -f "$job"' EXIT
cat >"$job" <<'EOF'
const ALPHA = 0.2
data d() { return synthetic(16000, [3, 8, 10], seed=3), synthetic(16000, [], dtype=i64, low=0, high=5) }
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
train x, y in d() with batch=4, steps=4000, log=4000 {
  first = (arange(4) == 0).to(f32).view(4, 1)
  mixed, soft = mixup(first, y, 5, alpha=ALPHA)
  erased = (random_erasing(ones(4, 3, 8, 10), p=0.7, scale=[0.1, 0.3], value=5.0) == 5.0).to(f32)
  metric share = mixed[0, 0]
  metric square = mixed[0, 0] * mixed[0, 0]
  metric sums = soft.sum(1).mean()
  metric area = erased.mean()
  metric chosen = erased.amax([1, 2, 3]).mean()
  metric uneven = (erased.sum([2, 3]) - erased.amax(3).sum(2) * erased.amax(2).sum(2)).abs().max()
  metric top1 = accuracy(round(x[:, 0, 0, :5]), y, topk=1)
  metric top2 = accuracy(round(x[:, 0, 0, :5]), y, topk=2)
  metric top5 = accuracy(round(x[:, 0, 0, :5]), y, topk=5)
  minimize net(ones(4, 1)).mean() * 0.0 with opt
}
EOF
for alpha in 0.05 0.2 1.0 5.0; do
  "$amp" train "$job" -D ALPHA=$alpha --json 2>/dev/null | python3 -c '
import json, sys
alpha = float(sys.argv[1])
steps = [told["metrics"] for told in map(json.loads, sys.stdin) if told.get("event") == "step"]
sums = {k: sum(step[k] for step in steps) / len(steps) for k in steps[0]}
want = {"share": 0.5, "square": 0.25 + 0.25 / (2 * alpha + 1), "sums": 1, "area": 0.7 * 0.2, "chosen": 0.7,
        "uneven": 0, "top1": 0.2, "top2": 0.4, "top5": 1}
room = {"share": 0.035, "square": 0.035, "sums": 1e-6, "area": 0.006, "chosen": 0.02, "uneven": 0, "top1": 0.02,
        "top2": 0.02, "top5": 0}  # four deviations of 4000 or 16000 draws
bad = [f"{k} is {sums[k]}, expected {want[k]}" for k in want if not abs(sums[k] - want[k]) <= room[k]]
print(f"alpha {alpha}:", "; ".join(bad) or "ok")
sys.exit(bool(bad))' "$alpha"
done

cat >"$job" <<'EOF'
data d() { return synthetic(8000, [1]) }
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
train x in d() with batch=8, steps=2 { minimize net(x).mean() * 0.0 with opt }
eval x in d() with batch=8, every=2 { metric mean = mean(x * 0.0 + rand(8, 1)) }
EOF
mean() { "$amp" train -q --device cpu "$@" "$job" | sed -n 's/.*eval mean: //p'; }
one=$(mean --set eval.steps=1) all=$(mean) again=$(mean)
python3 -c '
import sys
one, all, again = map(float, sys.argv[1:])
print(f"rand of an evaluation: {one} of the first batch, {all} and {again} of 1000 batches")
sys.exit(not (abs(all - 0.5) < 0.02 and one != all == again))  # six deviations of 8000 draws' "$one" "$all" "$again"
