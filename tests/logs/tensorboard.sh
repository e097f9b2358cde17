#!/usr/bin/env bash
# TensorBoard's own reader and the small reader of the fast test must read the same from a log
# folder.
#   run.sh AMP
# Skipped (77) if pip cannot install tensorboard.
set -euo pipefail
amp=$(realpath "$1")
reader=$(realpath "$(dirname "$0")/read_events.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet tensorboard ||
  { echo "skipped: no tensorboard" && exit 77; }
job=models/fashion_mnist/mlp.amp
train() { "$amp" train --device cpu -q --log 10 --log-dir "$work/logs" --limit-batches 40 "$@" $job; }
train --steps 100 --save "$work/part" # a run that crashes ..
train --steps 60 --save "$work/part" --log-dir "$work/other"
train --steps 150 --resume "$work/part" # .. and is resumed from step 60
python3 "$reader" "$work/logs" >"$work/own"
"$work/venv/bin/python" "$reader" "$work/logs" --tensorboard >"$work/theirs"
python3 - "$work/own" "$work/theirs" <<'PY'
import json, sys
own, theirs = (json.load(open(f)) for f in sys.argv[1:])
assert set(own) == set(theirs) and "train/loss" in own and "eval/acc" in own, (set(own), set(theirs))
for tag in own:
    assert own[tag] == theirs[tag], (tag, own[tag], theirs[tag])
    steps = [s for s, _ in own[tag]]
    assert steps == sorted(set(steps)), (tag, steps)
print("ok: TensorBoard reads", sum(map(len, own.values())), "scalars of", len(own), "names")
PY
