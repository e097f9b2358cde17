#!/usr/bin/env bash
# Output and files of amp train: JSON, logs, limits, kept checkpoints, signals, full disks.
#   train.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
reader=$source_dir/tests/logs/read_events.py
cd "$work" || exit 1
small_data data
small_job data/job.amp # batches of 32, 20 an epoch
job=data/job.amp
train() { timeout 500 "$amp" train --device cpu -q "$@"; }
export -f train
export amp
holds() { # holds NAME PYTHON [FILE..]: the expression must be true; `lines` are the lines of the file out
  python3 - "$@" <<'PY' && echo "ok: $1" || failed "$1"
import json, sys
from pathlib import Path
files = sys.argv[3:]
lines = [json.loads(l) for l in open("out")] if Path("out").exists() and open("out").read(1) == "{" else []
steps = [l for l in lines if l["event"] == "step"]
rows = [l.rstrip("\n").split(",") for l in open(files[0])] if files and files[0].endswith(".csv") else []
assert eval(sys.argv[2]), (lines or rows)[-3:]
PY
}

# ---- --json ----------------------------------------------------------------------------------------
train --json --steps 25 $job >out 2>err || failed "--json: exit status"
[ -s err ] && failed "--json -q wrote to stderr"
holds "one line for each step" '[l["step"] for l in steps] == list(range(1, 26))'
holds "the fields of a step" 'set(steps[0]) == set("event block step of epoch samples metrics seconds samples_per_second scale skipped lr.opt data_wait grad_norm weight_norm update_norm".split())'
holds "metrics, rates" 'all(isinstance(l["metrics"]["loss"], float) for l in steps) and "lr.opt" in steps[0]'
holds "evaluations" '[l["step"] for l in lines if l["event"] == "eval"] == [20, 25]'
holds "the end" 'lines[-1] == {"event": "end", "reason": "done", "status": 0, "step": 25, "saved": None}'
mv out every
train --json --steps 25 --log 10 $job >out 2>err
holds "a line every 10 steps" '[l["step"] for l in steps] == [10, 20, 25]'
python3 - <<'PY' || failed "a line has the average of its steps"
import json
every = [json.loads(l) for l in open("every")]
ten = [json.loads(l) for l in open("out")]
loss = lambda ls, a, b: [l["metrics"]["loss"] for l in ls if l["event"] == "step" and a < l["step"] <= b]
mean = sum(loss(every, 10, 20)) / 10
assert abs(loss(ten, 10, 20)[0] - mean) < 1e-5 * mean, (mean, loss(ten, 10, 20))
print("ok: a line has the average of its steps")
PY

# ---- --log-dir ---------------------------------------------------------------------------------------
train --steps 30 --log 5 --log-dir logs/one --save full $job >out 2>err || failed "--log-dir: exit status"
csv=logs/one/metrics.csv
holds "the table's columns" 'rows[0] == "step,epoch,block,seconds,samples_per_second,scale,skipped,lr.opt,data_wait,grad_norm,weight_norm,update_norm,train.loss,eval.acc".split(",")' $csv
holds "the table's rows" '[(r[0], r[2]) for r in rows[1:]] == [("5", "train"), ("10", "train"), ("15", "train"), ("20", "train"), ("20", "eval"), ("25", "train"), ("30", "train"), ("30", "eval")]' $csv
holds "as many columns in each row" 'len(set(map(len, rows))) == 1' $csv
"$reader" logs/one >events || failed "the events: checksums"
check_events() { # the events must equal the table
  python3 - "$1" "$2" <<'PY'
import csv, json, math, sys
events = json.load(open(sys.argv[1]))
rows = list(csv.DictReader(open(sys.argv[2])))
names = {"train/loss": "train.loss", "eval/acc": "eval.acc", "lr/opt": "lr.opt", "scaler/scale": "scale",
         "scaler/skipped": "skipped", "speed/seconds": "seconds", "speed/samples_per_second": "samples_per_second",
         "speed/data_wait": "data_wait", **{"norms/" + n: n for n in ("grad_norm", "weight_norm", "update_norm")}}
assert set(events) == set(names), sorted(events)
for tag, column in names.items():
    want = [(int(r["step"]), float(r[column])) for r in rows if r[column]]
    got = events[tag]
    assert [s for s, _ in got] == [s for s, _ in want], (tag, got, want)
    rounded = 0.06 if tag.startswith("speed/") else 1e-6  # printed with one digit after the point, which matters for a slow run
    assert all(math.isclose(g, w, rel_tol=1e-4, abs_tol=rounded) for (_, g), (_, w) in zip(got, want)), tag
PY
}
check_events events $csv && echo "ok: events are the table" || failed "events are not the table"
refuses "the folder of another run" 3 'metrics\.csv exists already' train --steps 5 --log-dir logs/one $job

# A run that is killed after the checkpoint of step 20 and then resumed: the same table except for
# times.
train --steps 24 --save-every 10 --save part --log 5 --log-dir logs/two $job >out 2>err
train --steps 20 --save part $job >out 2>err
train --resume part --steps 30 --save part --log 5 --log-dir logs/two $job >out 2>err || failed "resumed log"
same "a resumed log: the state" part full
columns() { cut -d, -f1-3,6-8,10-14 "$1"; }
same "a resumed log: the table" <(columns logs/two/metrics.csv) <(columns $csv)
"$reader" logs/two >events && check_events events logs/two/metrics.csv &&
  echo "ok: a resumed log: events" || failed "a resumed log: events"
# The resumed run repeats the evaluation of the checkpoint's step. It writes no second row, but
# repeats a row that was cut off. This also works for a name that the table quotes.
sed 's/with batch=100/with batch=100, name="a, \\"b\\""/' $job >data/quoted.amp
train --steps 20 --save quoted --log-dir logs/quoted data/quoted.amp >out 2>err || failed "a quoted name"
cp logs/quoted/metrics.csv whole
[ "$(grep -c '^20,,"a, ""b""",' whole)" = 1 ] || failed "a quoted name: the row"
for cut in 0 3; do
  truncate -s -$cut logs/quoted/metrics.csv
  train --resume quoted --steps 21 --log-dir logs/quoted data/quoted.amp >out 2>err || failed "a quoted name, resumed"
  same "the evaluation of step 20, $cut bytes cut off" <(grep '^20,,' logs/quoted/metrics.csv | cut -d, -f-4,7-) \
    <(grep '^20,,' whole | cut -d, -f-4,7-)
  cp whole logs/quoted/metrics.csv
done
sed 's/metric acc/metric right/' $job >data/other.amp
refuses "a table of another job" 3 'continue in a new folder \(--log-dir\)' train --resume part --steps 40 --log-dir logs/two data/other.amp
mkdir -p locked && touch locked/metrics.csv
refuses "the log of an evaluation" 2 'amp eval: error: no option --log-dir' \
  "$amp" eval --device cpu --resume part --log-dir logs/two $job
refuses "a folder that is a file" 3 'locked/metrics\.csv' train --steps 1 --log-dir locked/metrics.csv $job
refuses "a folder that cannot be" 3 'proc' train --steps 1 --log-dir /proc/none $job

# ---- a full disk: one note, training continues, and the exit status is 3 ----------------------
mkdir -p logs/full && ln -s /dev/full logs/full/metrics.csv
rm -f saved
refuses "a full disk under the table" 3 'the log in logs/full is not complete' \
  train --steps 30 --log 5 --log-dir logs/full --save saved $job
[ "$(grep -c 'note: cannot write the log.*No space left' err)" = 1 ] || failed "the note is not printed once"
same "a full disk under the table: the state" saved full
rm -f saved
limited() { bash -c 'ulimit -f 1; exec timeout 500 "$amp" train --device cpu -q "$@"' - "$@"; }
refuses "the table grows too large" 3 'the log in logs/large is not complete' \
  limited --steps 30 --log 1 --log-dir logs/large $job
grep -q 'note: cannot write the log.*File too large' err || failed "no note is printed"
grep -q '^eval acc' out || failed "the run did not continue"
refuses "the checkpoint grows too large" 3 'cannot write .*saved: File too large' limited --steps 3 --save saved $job
(ulimit -f 1; "$ampc" -o large.c $job) >out 2>err
[ $? = 3 ] && grep -q 'cannot write large.c: File too large' err || failed "ampc: a text grows too large: $(cat err)"
json_full() { timeout 500 "$amp" train --device cpu -q --json "$@" >/dev/full; }
refuses "a full stdout for JSON" 3 'JSON on stdout are not complete' json_full --steps 30 --save saved $job
same "a full stdout for JSON: the state" saved full
rm -f saved
mkfifo gone
json_gone() (exec 3<>gone 4>gone && exec 3<&- && train --json --steps 30 --save saved $job >&4)
refuses "a reader that closes the pipe" 3 'JSON on stdout are not complete' json_gone
same "a reader that closes the pipe: the state" saved full

# ---- limits --------------------------------------------------------------------------------------------
train --json --limit-batches 3 --steps 8 $job >out 2>err || failed "--limit-batches"
holds "--limit-batches" '[l["epoch"] for l in steps] == [1, 1, 1, 2, 2, 2, 3, 3]'
train --limit-batches 3 --steps 8 --save eight $job >out 2>err
train --limit-batches 3 --steps 4 --save part $job >out 2>err
train --limit-batches 3 --steps 8 --resume part --save part $job >out 2>err
same "--limit-batches, resumed" part eight
train --json --overfit-batches 2 --steps 60 $job >out 2>err || failed "--overfit-batches"
holds "--overfit-batches learns them" 'steps[-1]["metrics"]["loss"] < 0.3 * steps[0]["metrics"]["loss"]'
holds "--overfit-batches evaluates at the end" '[l["step"] for l in lines if l["event"] == "eval"] == [60]'
refuses "both limits" 2 'cannot be combined with' train --limit-batches 2 --overfit-batches 2 $job
train --json --steps 100000000 --max-time 1 --save timed $job >out 2>err || failed "--max-time: exit status"
holds "--max-time" 'lines[-1]["reason"] == "time" and lines[-1]["saved"] == "timed" and steps[-1]["seconds"] > 0.1'
train --resume timed --steps 1 $job >out 2>err || failed "--max-time: the checkpoint"
for bad in 0 -1 1d s nan; do refuses "--max-time $bad" 2 'max-time' train "--max-time=$bad" $job; done

# ---- kept checkpoints ------------------------------------------------------------------------------------
train --steps 30 --save kept --save-every 4 --keep-last 3 $job >out 2>err || failed "--keep-last"
[ "$(echo kept.step*)" = "kept.step24 kept.step28 kept.step30" ] || failed "--keep-last: $(echo kept.step*)"
same "the last is the newest" kept kept.step30
train --resume kept --steps 36 --save kept --save-every 4 --keep-last 3 $job >out 2>err
[ "$(echo kept.step*)" = "kept.step30 kept.step32 kept.step36" ] || failed "--keep-last, resumed: $(echo kept.step*)"
train --resume kept.step32 --steps 36 --save again $job >out 2>err
same "resumed from a kept checkpoint" again kept
train --json --steps 50 --save best --keep-best 2 $job >out 2>err || failed "--keep-best"
python3 - <<'PY' || failed "--keep-best"
import glob, json
evals = [(l["metrics"]["acc"], l["step"]) for l in map(json.loads, open("out")) if l["event"] == "eval"]
want = sorted(evals, reverse=True)[:2]
got = sorted(((float(f.split("=")[1].rsplit(".step", 1)[0]), int(f.rsplit(".step", 1)[1])) for f in glob.glob("best.best-acc=*")), reverse=True)
assert len(got) == 2 and all(s == t and abs(a - b) < 1e-5 for (a, s), (b, t) in zip(got, want)), (got, evals)
print("ok: --keep-best")
PY
one=$(echo best.best-acc=* | cut -d' ' -f1)
"$amp" eval --device cpu -q --resume "$one" $job >out 2>err || failed "the best: eval"
value=${one#*=} && value=${value%.step*}
awk -v a="$(sed -n 's/^eval acc: //p' out)" -v b="$value" 'BEGIN { exit !((a - b) ^ 2 < 1e-8) }' &&
  echo "ok: the best has the accuracy of its name" || failed "the best: $(cat out) instead of $value"
refuses "--keep-last without --save" 2 'keep-last needs --save' train --keep-last 2 $job
refuses "--keep-best without --save" 2 'keep-best needs --save' train --keep-best 2 $job

# ---- closed stdout or stderr: no file of the run may get their descriptors -------------------------------------
train --steps 20 --log 1 --log-dir logs/open --save open $job >out 2>err
(train --steps 20 --log 1 --log-dir logs/shut --save shut $job >&- 2>&-)
[ "$(wc -l <logs/open/metrics.csv)" = "$(wc -l <logs/shut/metrics.csv)" ] &&
  ! grep -rqE 'step 1/|eval acc:|bytes' logs/shut || failed "closed: output is in a log"
same "closed: the checkpoint" open shut
"$ampc" $job >&- 2>err
[ $? -eq 3 ] && grep -q 'cannot write' err || failed "closed: ampc says nothing"

# ---- signals ---------------------------------------------------------------------------------------------
start() { # start ARGUMENTS...: starts a run in the background and waits for 20 lines
  # a shell makes background commands ignore SIGINT, and a child inherits that
  env --default-signal=INT "$amp" train --device cpu --json --steps 100000000 "$@" $job >out 2>err &
  child=$!
  for _ in $(seq 3000); do [ "$(wc -l <out)" -ge 20 ] && return; sleep 0.1; done
  failed "no step was printed"
}
end() { # end NAME SIGNAL STATUS
  kill -"$2" $child
  wait $child
  local got=$?
  [ $got -eq "$3" ] && echo "ok: $1" || failed "$1: exit status $got"
}
for signal in INT TERM HUP; do
  rm -f stopped
  start --save stopped
  end "SIG$signal saves and ends" $signal 130
  holds "SIG$signal: the last line" 'lines[-1]["reason"] == "interrupted" and lines[-1]["saved"] == "stopped"'
  train --resume stopped --steps 1 $job >out 2>err || failed "SIG$signal: the checkpoint"
done
rm -f asked
start --save asked
kill -USR1 $child
for _ in $(seq 3000); do [ -e asked ] && break; sleep 0.1; done
[ -e asked ] || failed "SIGUSR1 saves nothing"
kill -0 $child || failed "SIGUSR1 ended the run"
cp asked asked.first
end "SIGUSR1 saves and continues" TERM 130
grep -q 'saved asked at step' err || failed "SIGUSR1: no note is printed"
train --resume asked.first --steps 1 $job >out 2>err || failed "SIGUSR1: the checkpoint"
start
kill -USR1 $child
for _ in $(seq 3000); do grep -q 'nothing was saved' err && break; sleep 0.1; done
end "SIGUSR1 without --save" TERM 130
grep -q 'SIGUSR1: nothing was saved' err || failed "SIGUSR1 without --save: no note is printed"

# ---- the same options in emitted programs ------------------------------------------------------------
"$ampc" -o emitted.c $job && sh -c "$("$ampc" --build-line -o emitted.c $job)" || failed "emitted program"
(cd data && ../emitted -q --json --steps 12 --limit-batches 4 --log-dir ../logs/emitted --save ../e --keep-last 1) >out 2>err ||
  failed "emitted: exit status"
holds "emitted: --json" '[l["step"] for l in steps] == list(range(1, 13)) and steps[-1]["epoch"] == 3'
train --steps 12 --limit-batches 4 --save jit $job >out 2>err
same "emitted: the state" e jit
same "emitted: --keep-last" e e.step12
[ -s logs/emitted/metrics.csv ] || failed "emitted: --log-dir"
emitted_limited() { (cd data && ulimit -f 1 && exec ../emitted -q --steps 3 --save ../large "$@"); }
refuses "emitted: the checkpoint grows too large" 3 'cannot write .*large: File too large' emitted_limited
finish
