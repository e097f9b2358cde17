#!/usr/bin/env bash
# Statistics of random functions. The shares of mixup have the moments of the beta distribution, 1/2
# and 1/4 + 1 / (4 (2 alpha + 1)). random_erasing erases rectangles of the given area with the given
# probability. For random scores, accuracy with topk=k is k / classes. All orders of randperm are
# equally likely. multinomial draws by weight, also from the remaining ones. mlm_mask masks the
# given fraction. Factors of color_jitter and angles of random_rotation are uniform. Each batch of an evaluation draws its own numbers, and the next evaluation of the
# same weights repeats them.
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
        "top2": 0.02, "top5": 0}  # four standard deviations of 4000 or 16000 draws
bad = [f"{k} is {sums[k]}, expected {want[k]}" for k in want if not abs(sums[k] - want[k]) <= room[k]]
print(f"alpha {alpha}:", "; ".join(bad) or "ok")
sys.exit(bool(bad))' "$alpha"
done

cat >"$job" <<'EOF'
manual_seed(5)
data d() { return synthetic(16000, [1]) }
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
def share(x) { return x.to(f32).mean() }
train x in d() with batch=4, steps=4000 {
  minimize net(x).mean() * 0.0 with opt
}
eval x in d() with batch=16 {
  p = randperm(5)
  metric places = (p == arange(5)).to(f32).sum()
  metric first = share(p[0] == 4)
  metric turned = ((p.unsqueeze(0) > p.unsqueeze(1)) & (arange(5).unsqueeze(0) < arange(5).unsqueeze(1))).to(f32).sum()
  metric lost = (sort(p)[0] != arange(5)).to(f32).sum()
  weights = tensor([1, 0, 3, 6]).repeat(16, 1)
  with_it = multinomial(weights, 8, replacement=true)
  metric most = share(with_it == 3)
  metric some = share(with_it == 2)
  metric never = share(with_it == 1)
  one = multinomial(weights, 2)
  metric one_first = share(one[:, 0] == 3)
  metric one_second = share(one[:, 1] == 3)
  metric twice = share(one[:, 0] == one[:, 1])
  metric none_left = share(multinomial(weights, 4)[:, 3] == 1)
  ids = full([16, 64], 7, dtype=i32)
  hidden, target = mlm_mask(ids, 3, 10, p=0.3)
  metric chosen = share(target != -100)
  metric named = share((target == 7) | (target == -100))
  metric mask = share((target != -100) & (hidden == 3))
  metric kept = share((target != -100) & (hidden == 7))
  metric other = share((target != -100) & (hidden == 9))
  metric touched = share((target == -100) & (hidden != 7))
}
EOF
"$amp" train "$job" --device cpu --json --set train.steps=1 2>/dev/null | python3 -c '
import json, sys
got = [told["metrics"] for told in map(json.loads, sys.stdin) if told.get("event") == "eval"][-1]
# expected value, standard deviation of one draw, number of draws
want = {"places": (1, 1, 1000), "first": (0.2, 0.4, 1000), "turned": (5, 2.04, 1000), "lost": (0, 0, 1), "most": (0.6, 0.49, 128000),
        "some": (0.3, 0.46, 128000), "never": (0, 0, 1), "one_first": (0.6, 0.49, 16000),
        # 3 is second after 0, of weight 1, or after 2, of weight 3
        "one_second": (0.1 * 6 / 9 + 0.3 * 6 / 7, 0.47, 16000), "twice": (0, 0, 1), "none_left": (1, 0, 1),
        "chosen": (0.3, 0.46, 1024000), "named": (1, 0, 1), "mask": (0.3 * 0.81, 0.43, 1024000),
        "kept": (0.3 * 0.11, 0.18, 1024000), "other": (0.3 * 0.01, 0.055, 1024000), "touched": (0, 0, 1)}
bad = [f"{k} is {got[k]}, expected {e}" for k, (e, d, n) in want.items() if not abs(got[k] - e) <= 4 * d / n ** 0.5]
print("orders, choices, masks:", "; ".join(bad) or "ok")
sys.exit(bool(bad) or set(got) != set(want))'

cat >"$job" <<'EOF'
data d() { return synthetic(8000, [1]) }
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
train x in d() with batch=8, steps=2 { minimize mean(net(x) * 0.0 + rand(8, 1)) with opt } # another draw with the same distribution
eval x in d() with batch=8, every=2 { metric mean = mean(x * 0.0 + rand(8, 1)) }
EOF
mean() { "$amp" train -O0 -q --device cpu "$@" "$job" | sed -n 's/.*eval mean: //p'; }
one=$(mean --set eval.steps=1) all=$(mean) again=$(mean)
python3 -c '
import sys
one, all, again = map(float, sys.argv[1:])
print(f"rand of an evaluation: {one} of the first batch, {all} and {again} of 1000 batches")
sys.exit(not (abs(all - 0.5) < 0.02 and one != all == again))  # six standard deviations of 8000 draws' "$one" "$all" "$again"

cat >"$job" <<'EOT'
# A gray image has the brightness of its factor. A ramp whose mean is 1/2 has the contrast of its factor as slope. Pure red
# has a green part of 6 times its hue. The angle of a rotation moves a point on the right upwards.
data d() { return synthetic(16000, [1]) }
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
train x in d() with batch=4, steps=1 { minimize net(x).mean() * 0.0 with opt }
eval x in d() with batch=400 {
  light = color_jitter(full([400, 3, 1, 1], 0.4), brightness=0.5)[:, 0] / 0.4
  metric light = light.mean()
  metric light_square = (light * light).mean()
  ramp = color_jitter(tensor([0.25, 0.75]).view(1, 1, 1, 2).expand(400, 1, 1, 2), contrast=[0.2, 1.0])
  slope = (ramp[:, 0, 0, 1] - ramp[:, 0, 0, 0]) * 2.0
  metric slope = slope.mean()
  metric slope_square = (slope * slope).mean()
  red = tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1).expand(400, 3, 1, 1)
  gray = color_jitter(red, saturation=[0.0, 0.5])[:, 1, 0, 0] / 0.2989
  metric gray = gray.mean()
  turned = color_jitter(red, hue=0.125)
  metric green = turned[:, 1].mean() / 0.75
  metric blue = turned[:, 2].mean() / 0.75
  metric both = (turned[:, 1] * turned[:, 2]).max()
  point = (arange(21) == 20).to(f32).view(1, 1, 1, 21).expand(400, 1, 21, 21) * (arange(21) == 10).to(f32).view(21, 1)
  places = random_rotation(point, 30, interpolation="bilinear")
  rows = (places * arange(21).view(21, 1)).sum([1, 2, 3]) / places.sum([1, 2, 3])
  metric up = (rows < 10.0).to(f32).mean()
  metric height = ((rows - 10.0) / 10.0).mean()
  metric height_square = ((rows - 10.0) / 10.0 * ((rows - 10.0) / 10.0)).mean()
}
EOT
"$amp" train "$job" --device cpu --json 2>/dev/null | python3 -c '
import json, math, sys
got = [told["metrics"] for told in map(json.loads, sys.stdin) if told.get("event") == "eval"][-1]
most = math.radians(30)
sine = 0.5 - math.sin(2 * most) / (4 * most)  # mean square of the sine of an angle within 30 degrees
# expected value, four standard deviations of 16000 draws, and for rotations the error of bilinear weights
want = {"light": (1, 0.01), "light_square": (1 + 1 / 12, 0.02), "slope": (0.6, 0.008), "slope_square": (0.36 + 0.64 / 12, 0.01),
        "gray": (0.75, 0.005), "green": (0.25, 0.01), "blue": (0.25, 0.01), "both": (0, 1e-6), "up": (0.5, 0.016),
        "height": (0, 0.01), "height_square": (sine, 0.003)}
bad = [f"{k} is {got[k]}, expected {e}" for k, (e, room) in want.items() if not abs(got[k] - e) <= room]
print("colours, rotations:", "; ".join(bad) or "ok")
sys.exit(bool(bad) or set(got) != set(want))'
