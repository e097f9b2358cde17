#!/usr/bin/env bash
# Trains the models of Fashion-MNIST on the CUDA device, with the mock's libraries. The results must
# match the CPU's, and the host must not wait more often than expected. Every run has f16, a night all precisions;
# mock.steps has all in every run.
#   train.sh AMP MOCK PRECISION...
set -euo pipefail
amp=$(realpath "$1") mock=$(realpath "$2")
models=$(realpath "$(dirname "$0")/../../models")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1" && exit 1; }

# run DEVICE OPTIONS... MODEL: results in $work/DEVICE, counters in $work/report
run() {
  local device=$1
  shift
  LD_LIBRARY_PATH=$mock MOCK_CUDA_REPORT=$work/report \
    timeout 500 "$amp" train --device "$device" --seed 1 "$@" >"$work/$device" 2>&1 ||
    { cat "$work/$device" && fail "amp train --device $device $*"; }
  grep '^mock: status 7: ' "$work/$device" && fail "$*: a wrongly described product ran on ampc's own kernel"
  return 0
}
counted() { sed -n "s/^$1 //p" "$work/report"; }

# close_losses BOUND NAME: compares each line `step N/M loss X` of both runs, relative to the CPU
close_losses() {
  local steps='s|.* step \([0-9]*\)/.* loss \([^ ]*\) .*|\1 \2|p'
  sed -n "$steps" "$work/cpu" >"$work/a"
  sed -n "$steps" "$work/cuda" >"$work/b"
  paste -d' ' "$work/a" "$work/b" | awk -v bound="$1" -v name="$2" '
    $1 != $3 { print "FAILED: " name ": step " $1 " and step " $3; bad = 1 }
    { d = ($2 - $4) / $2; if (d < 0) d = -d; if (d > worst) worst = d; n++ }
    !(d <= bound) { print "FAILED: " name ": step " $1 ": loss " $2 " on cpu, " $4 " on cuda"; bad = 1 }
    END { print "ok: " name ": " n " losses, the worst differs by " worst * 100 " %"
          exit bad || n == 0 }' || exit 1
}

both() { # both NAME BOUND OPTIONS... MODEL
  local name=$1 bound=$2
  shift 2
  run cpu "$@"
  run cuda "$@"
  close_losses "$bound" "$name"
}

# ---- numbers -------------------------------------------------------------------------------------
# Losses are printed with four decimals. Roundings to 16 bits diverge over the steps.
mlp=$models/fashion_mnist/mlp.amp cnn=$models/fashion_mnist/fashion_mnist.amp
for precision in "${@:3}"; do
  both "mlp $precision" 1e-3 --set "precision=$precision" --steps 20 --log 1 --set eval.steps=1 "$mlp"
  case $precision in tf32 | bf16) continue ;; esac
  both "cnn $precision" 2e-3 --set "precision=$precision" --steps 5 --log 1 --set train.batch=16 \
    --set eval.steps=1 --set eval.batch=50 "$cnn"
done
# A step is tried out and recorded when its variant first runs. This job has four, eight with a smaller batch.
both "steps of four kinds" 2e-2 --log 1 "$models/../tests/simt/every.amp"
# Its products with one row or column find no algorithm: one note, and the job trains.
[ "$(grep -c "^note: product of f16 \[8, 1\] and f16 \[1, 16\] .*by our own kernel" "$work/cuda")" = 1 ] ||
  { cat "$work/cuda" && fail "products with one row or column"; }
LD_LIBRARY_PATH=$mock "$amp" train --device cuda --no-onednn "$mlp" >"$work/own" 2>&1 && fail "--no-onednn on a GPU"
grep -q -e '--no-onednn is for the CPU' "$work/own" || fail "--no-onednn on a GPU: $(cat "$work/own")"

# If cuBLASLt refuses every product and cuDNN is off, ampc's own kernels compute everything.
MOCK_BLAS_UNFIT=100 both "cnn, products of our own" 2e-3 --no-cudnn --steps 3 --log 1 --set train.batch=4 \
  --set eval.steps=1 --set eval.batch=4 "$cnn"
grep -q "^note: product of .* by our own kernel" "$work/cuda" || fail "cuBLASLt computed a product that it refuses"
# After hundreds of steps, two orders of summation differ by one to three percent, even in f32.
both "mlp, 300 steps" 5e-2 --steps 300 --log 20 "$mlp"
accuracy() { sed -n 's|^eval acc: ||p' "$work/$1"; }
awk -v a="$(accuracy cpu)" -v b="$(accuracy cuda)" \
  'BEGIN { d = a - b; print "ok: accuracy " a " on cpu, " b " on cuda"; exit !(b > 0.8 && d * d < 1e-4) }' ||
  fail "accuracy $(accuracy cpu) on cpu, $(accuracy cuda) on cuda"

# ---- waits ---------------------------------------------------------------------------------------
# The host waits at the start, at lines of progress and at the end; 200 more steps must add no such
# wait. It may wait until pinned memory is free again, but not in every step.
quiet() { run cuda --steps "$1" --log 100000 --set eval.steps=1 "$mlp"; }
quiet 100
syncs=$(counted stream_syncs) events=$(counted event_syncs) graphs=$(counted graph_launches)
launches=$(counted launches)
quiet 300
[ "$(counted graph_launches)" -eq $((graphs + 200)) ] || fail "a step is not one graph"
[ "$(counted launches)" -eq "$launches" ] || fail "kernels are launched outside of graphs"
[ "$(counted stream_syncs)" -eq "$syncs" ] ||
  fail "200 more steps add $(($(counted stream_syncs) - syncs)) waits for the device"
[ "$(counted event_syncs)" -le $((events + 40)) ] || fail "the host waits for events in each step"
[ "$(counted pageable_copies)" -eq 0 ] || fail "copies of pageable memory"
[ "$(counted held)" -eq 0 ] || fail "$(counted held) objects were not freed"
echo "ok: no wait in 200 steps; $(($(counted event_syncs) - events)) waits for pinned memory"

# It does not wait if each step is reported either: lines of JSON and of the log come late, but in order.
told() { run cuda -q --json --log 1 --log-dir "$work/log.$1" --steps "$1" --set eval.steps=1 "$mlp"; }
told 40
syncs=$(counted stream_syncs)
told 100
[ "$(counted stream_syncs)" -eq "$syncs" ] || fail "--json makes the host wait for the device"
python3 - "$work/cuda" "$work/log.100/metrics.csv" <<'PY' || fail "the output of 100 steps"
import csv, json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
steps = [l for l in lines if l["event"] == "step"]
assert [l["step"] for l in steps] == list(range(1, 101)), [l["step"] for l in steps]
assert [l["samples"] for l in steps] == [128 * n for n in range(1, 101)]
assert [l["event"] for l in lines[100:]] == ["eval", "end"], lines[100:]
rows = [r for r in csv.DictReader(open(sys.argv[2])) if r["block"] == "train"]
assert [(int(r["step"]), float(r["train.loss"])) for r in rows] == [
    (l["step"], l["metrics"]["loss"]) for l in steps]
print("ok: each of 100 steps is reported, without a wait")
PY
