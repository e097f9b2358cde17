#!/usr/bin/env bash
# A fast test of --log-dir: the event file has correct checksums and the numbers of the table.
#   run.sh AMP
set -euo pipefail
amp=$(realpath "$1")
reader=$(realpath "$(dirname "$0")/read_events.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >job.amp <<'AMP'
data d(n: int) { return synthetic(n, shape=[4]), synthetic(n, shape=[1]) }
model net = Linear(4, 1)
optimizer opt = SGD(net, lr=0.01)
train x, y in d(64) with batch=4, epochs=2 { minimize mse_loss(net(x), y) with opt }
eval x, y in d(16) with batch=4 {
  metric error = mse_loss(net(x), y)
  metric LONG_a = mse_loss(net(x), y) * 2.0
  metric LONG_b = mse_loss(net(x), y) * 3.0
}
AMP
long=$(printf 'm%.0s' {1..400})
sed -i "s/LONG/$long/" job.amp
"$amp" train --device cpu -q --log 3 --log-dir logs job.amp
"$reader" logs >events
mkdir foreign
echo mine >foreign/run.json # somebody's file stays, and the run goes on
"$amp" train --device cpu -q --log-dir foreign --save save job.amp 2>told
grep -q 'cannot write foreign/run.json: .*; the run continues without it' told
[ "$(cat foreign/run.json)" = mine ] && [ -s foreign/metrics.csv ]
"$amp" train --device cpu -q --log-dir logs --resume save job.amp # a resumed run replaces its own
grep -q '"resumed at step": 32' logs/run.json
python3 - <<'PY'
import csv, json, math
events = json.load(open("events"))
rows = list(csv.DictReader(open("logs/metrics.csv")))
steps = [3, 6, 9, 12, 15, 16, 18, 21, 24, 27, 30, 32]
for tag, column, want in (("train/loss", "train.loss", steps), ("eval/error", "eval.error", [16, 32])):
    told = [(int(r["step"]), float(r[column])) for r in rows if r[column]]
    assert [s for s, _ in told] == want, told
    assert [s for s, _ in events[tag]] == want, events[tag]
    assert all(math.isclose(a, b, rel_tol=1e-6) for (_, a), (_, b) in zip(events[tag], told)), tag
for letter, factor in (("a", 2), ("b", 3)):  # names with 400 equal characters at the start must remain two names
    scaled = events["eval/" + 400 * "m" + "_" + letter]
    assert all(math.isclose(a, factor * b, rel_tol=1e-6)
               for (_, a), (_, b) in zip(scaled, events["eval/error"], strict=True)), letter
print("ok: the event file has the numbers of the table")
PY
