#!/usr/bin/env bash
# The parts of bench/gpu.sh that work without a GPU. It reports that there is none. On the CPU (DEVICE=cpu) it
# measures, saves, resumes and reports; it packs the files for another machine. PyTorch may be missing.
#   bench_gpu.sh AMPC AMP BENCH_STEPS
. "$(dirname "$0")/faults/lib.sh"
cd "$source_dir" || exit 1
steps=$3
build=$work/build
mkdir -p "$build"
cp "$amp" "$build/amp" && cp "$steps" "$build/bench_steps" || exit 1
export RESULTS=$work/results PYTHON=python3 WARM=2 STEPS=1 EACH=300 PAIRS="mlp:f16"

ends() { # ends NAME STATUS PATTERN COMMAND...
  local name=$1 want=$2 pattern=$3 got=0
  shift 3
  "$@" >"$work/out" 2>&1 || got=$?
  [ $got -eq "$want" ] && grep -Eq "$pattern" "$work/out" || failed "$name: status $got: $(cat "$work/out")"
}

if ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  ends "without a GPU" 77 'no (GPU|PyTorch)' bench/gpu.sh "$build"
fi
ends "nothing is built" 2 'has no bench_steps and amp' bench/gpu.sh "$work"
ends "an unknown word" 2 'unknown word' bench/gpu.sh "$build" repotr
ends "no results" 1 'has no results' bench/gpu.sh "$build" report
ends "no such net" 2 'unknown net resnet' env PAIRS=resnet:f16 DEVICE=cpu bench/gpu.sh "$build"

ends "a prediction for an unknown GPU" 1 'h300: expected one of' bench/gpu.sh "$build" predict h300
if "$build/amp" inspect --gpu l4 models/fashion_mnist/mlp.amp >"$work/out" 2>&1; then # with NVRTC
  ends "predictions" 0 '^\| mlp \| f16 \| 128 \| [0-9.]+ \| 0.0515 \| - \|' bench/gpu.sh "$build" predict l4
fi

DEVICE=cpu bench/gpu.sh "$build" >"$work/first" 2>"$work/err" || failed "a run: $(cat "$work/err")"
grep -Eq '^\| mlp \| f16 \| [0-9.]+ \|' "$work/first" || failed "the table has no row: $(cat "$work/first")"
for part in ampc eager compile graphs; do
  [ -s "$RESULTS/mlp-f16.$part.json" ] || failed "no file of $part"
done
python3 - "$RESULTS/mlp-f16.ampc.json" "$RESULTS/mlp-f16.tsv" <<'PY' || failed "the output of bench_steps"
import json, sys
ours = json.load(open(sys.argv[1]))
assert list(ours) == ["step_ms", "least_ms", "samples_per_second", "first_loss", "last_loss", "ready_seconds",
                      "memory_bytes", "device"], ours
assert abs(ours["samples_per_second"] - 128e3 / ours["step_ms"]) < 1, ours
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[2])]
assert len(rows) >= 10 and all(len(r) == 2 and float(r[1]) >= 0 for r in rows), rows
PY
if python3 -c 'import torch' 2>/dev/null; then
  grep -q 'Not measured' "$work/first" && failed "PyTorch is installed, but something failed: $(cat "$work/first")"
else
  grep -q "mlp-f16, eager: .*torch" "$work/first" || failed "no reason is given why PyTorch is not measured"
fi
before=$(stat -c %Y.%s "$RESULTS"/*.json)
DEVICE=cpu bench/gpu.sh "$build" >"$work/second" 2>/dev/null || failed "a second run"
[ "$before" = "$(stat -c %Y.%s "$RESULTS"/*.json)" ] || failed "existing results were measured again"
cmp -s "$work/first" "$work/second" || failed "the report of the same results differs"
ends "no time" 0 'run it again to go on' env DEVICE=cpu LIMIT=0 bench/gpu.sh "$build"

# ---- with a PyTorch that only records its arguments -----------------------------------------------
# Records a word and the library path of each measurement, which needs weights and batches. Prints $ANSWER.
cat >"$work/python" <<'SH'
#!/usr/bin/env bash
case "$*" in
"-c import torch") exit 0 ;;
"bench/gpu_peer.py --gpu") echo "$FAKE_GPU" && exit 0 ;;
"bench/gpu_peer.py --data"* | -*) exec python3 "$@" ;;
bench/gpu_report.py*) exec python3 "$@" ;;
esac
[ "$(stat -c %s "$3/batches.bin")" = $((8 * 128 * 785)) ] && [ -s "$3/start.safetensors" ] || exit 9
echo "$8 ${LD_LIBRARY_PATH-none}" >>"$SAID"
echo "${ANSWER:-$EMPTY}"
SH
chmod +x "$work/python"
export EMPTY='{"step_ms": 1.0, "first_loss": 2.31, "last_loss": 2.0, "device": "fake"}' SAID=$work/said
export RESULTS="$work/results with blanks" PYTHON=$work/python DATA=$work/nowhere
fake() { DEVICE=cpu bench/gpu.sh "$build" >"$work/out" 2>"$work/err"; }
said() { [ "$(cut -d' ' -f1 "$SAID" | xargs)" = "$2" ] || failed "$1: measured $(cat "$SAID")"; }
of() { echo "$RESULTS/mlp-f16.$1"; }

# A whole run, with data written into a folder whose name has blanks. PyTorch keeps its own libraries.
mkdir "$build/lib" && : >"$SAID"
fake || failed "with a fake"
said "a whole pair" "eager compile graphs"
grep -qv ' none$' "$SAID" && failed "PyTorch got ampc's libraries: $(cat "$SAID")"
[ -s "$RESULTS/data/t10k-labels-idx1-ubyte.gz" ] || failed "no data in the results"
grep -q 'Not measured' "$work/out" && failed "a fake pair: something was not measured"
grep -q '2.3100 / 2.3100 / 2.3100' "$work/out" || failed "no first losses"
grep -q '^Losses' "$work/out" && failed "equal losses are reported as different"
[ ! -e "$RESULTS/work-mlp-f16" ] || failed "the work folder was not removed"

# If a file is removed, its measurement is repeated, and no other.
for part in ampc eager graphs; do
  before=$(stat -c %n%Y "$RESULTS"/mlp-f16.{ampc,eager,compile,graphs}.json | grep -v "\.$part\.")
  rm "$(of $part.json)" && : >"$SAID"
  ends "without $part: the report" 0 '^\| mlp \| f16 ' bench/gpu.sh "$build" report
  grep -q "not run yet" "$work/out" || failed "the report does not say that $part is missing"
  sleep 1
  fake && [ -s "$(of $part.json)" ] || failed "$part is not measured again"
  said "$part again" "${part#ampc}"
  [ "$before" = "$(stat -c %n%Y "$RESULTS"/mlp-f16.{ampc,eager,compile,graphs}.json | grep -v "\.$part\.")" ] || failed "more than $part was measured again"
  [ ! -e "$RESULTS/work-mlp-f16" ] || failed "$part again: the work folder was not removed"
done

# Without batches, PyTorch is not started, so no result of it is saved.
mv "$build/bench_steps" "$work/steps" && printf '#!/bin/sh\necho broken >&2; exit 7\n' >"$build/bench_steps" && chmod +x "$build/bench_steps"
rm "$RESULTS"/mlp-f16.* && : >"$SAID"
fake && grep -q 'failed.*broken' "$(of ampc.json)" || failed "the failure is not reported"
[ ! -e "$(of eager.json)" ] && [ ! -s "$SAID" ] && grep -q 'no batches' "$work/err" || failed "PyTorch was started without batches"
cp "$work/steps" "$build/bench_steps"

# Losses that JSON cannot express, different losses, files that are no JSON.
rm "$RESULTS"/mlp-f16.*
DEVICE=cpu ANSWER='{"step_ms": 1.0, "first_loss": 2.9, "last_loss": NaN}' bench/gpu.sh "$build" >"$work/out" 2>"$work/err"
grep -q 'eager: its first loss is 2.9000, that of ampc 2.3' "$work/out" || failed "a different first loss is not reported"
grep -q 'eager: its last loss is not finite' "$work/out" || failed "a loss that is not finite is not reported"
echo '{"step_ms": 1.0, "last_loss": nan}' >"$(of compile.json)"
ends "no JSON" 0 'torch.compile: mlp-f16.compile.json cannot be read' bench/gpu.sh "$build" report
"$build/bench_steps" --json -D "DIR=$RESULTS/data/" "$work" 1 3 models/fashion_mnist/mlp.amp train.batch=128 precision=bf16 opt.lr=1e30 >"$work/out" 2>"$work/err" &&
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["last_loss"] is None' "$work/out" || failed "bench_steps: a loss that is not finite"

# The GPU for which times are predicted: names match as whole words, and GPUs without figures get none. Needs no GPU.
predicted() { # predicted GPU PATTERN
  FAKE_GPU=$1 PAIRS=none bench/gpu.sh "$build" >"$work/out" 2>"$work/err"
  grep -Eq "gpu.sh: $1: $2" "$work/err" || failed "the prediction for $1"
}
for gpu in "NVIDIA GeForce RTX 3090" "NVIDIA L40S" "NVIDIA T400 4GB" "NVIDIA GeForce RTX 4090 Laptop GPU" Orin; do
  predicted "$gpu" 'no figures'
done
predicted "NVIDIA H100 80GB HBM3" 'predicted as h100'
predicted "NVIDIA GH200 480GB" 'predicted as gh200'
predicted "NVIDIA GB10" 'predicted as gb10'
predicted "NVIDIA A100-SXM4-80GB" 'predicted as a100'
predicted "NVIDIA GeForce RTX 4090" 'predicted as rtx4090'
predicted "Tesla T4" 'predicted as t4'
GPU=l4 predicted "NVIDIA L40S" 'predicted as l4'
rm "$(of cost.json)"
DEVICE=cpu GPU=h300 bench/gpu.sh "$build" >"$work/out" 2>"$work/err"
grep -A3 'Not predicted' "$work/out" | grep -q 'h300' || failed "the reason for no prediction"

bench/gpu.sh "$build" pack "$work/packed" >/dev/null || failed "pack"
[ -x "$work/packed/bench_steps" ] && ls "$work/packed/lib" | grep -q '^libdnnl' || failed "pack: something is missing"
LD_LIBRARY_PATH=$work/packed/lib "$work/packed/amp" --help >/dev/null || failed "the packed amp does not run"
python3 bench/gpu_peer.py --data "$work" && gzip -t "$work"/*.gz || failed "data"
finish
