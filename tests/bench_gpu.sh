#!/usr/bin/env bash
# What of bench/gpu.sh runs without a GPU: it says that there is none; on the CPU (DEVICE=cpu) it measures,
# keeps, goes on where it was, reports; packs what another machine needs. PyTorch may be missing.
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
ends "a word that is none" 2 'unknown word' bench/gpu.sh "$build" repotr
ends "no results" 1 'has no results' bench/gpu.sh "$build" report
ends "no such net" 2 'unknown net resnet' env PAIRS=resnet:f16 DEVICE=cpu bench/gpu.sh "$build"

DEVICE=cpu bench/gpu.sh "$build" >"$work/first" 2>"$work/err" || failed "a run: $(cat "$work/err")"
grep -Eq '^\| mlp \| f16 \| [0-9.]+ \|' "$work/first" || failed "the table has no row: $(cat "$work/first")"
for part in ampc eager compile graphs; do
  [ -s "$RESULTS/mlp-f16.$part.json" ] || failed "no file of $part"
done
python3 - "$RESULTS/mlp-f16.ampc.json" "$RESULTS/mlp-f16.tsv" <<'PY' || failed "what bench_steps says"
import json, sys
ours = json.load(open(sys.argv[1]))
assert list(ours) == ["step_ms", "least_ms", "samples_per_second", "first_loss", "last_loss", "ready_seconds",
                      "memory_bytes", "device"], ours
assert abs(ours["samples_per_second"] - 128e3 / ours["step_ms"]) < 1, ours
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[2])]
assert len(rows) >= 10 and all(len(r) == 2 and float(r[1]) >= 0 for r in rows), rows
PY
if python3 -c 'import torch' 2>/dev/null; then
  grep -q 'Not measured' "$work/first" && failed "PyTorch is here, and something failed: $(cat "$work/first")"
else
  grep -q "mlp-f16, eager: .*torch" "$work/first" || failed "it is not told why PyTorch is not measured"
fi
before=$(stat -c %Y.%s "$RESULTS"/*.json)
DEVICE=cpu bench/gpu.sh "$build" >"$work/second" 2>/dev/null || failed "a second run"
[ "$before" = "$(stat -c %Y.%s "$RESULTS"/*.json)" ] || failed "what is there was measured again"
cmp -s "$work/first" "$work/second" || failed "the report of the same results differs"
rm "$RESULTS/mlp-f16.graphs.json"
DEVICE=cpu bench/gpu.sh "$build" >/dev/null 2>&1 && [ -s "$RESULTS/mlp-f16.graphs.json" ] || failed "it does not go on"
ends "no time" 0 'run it again to go on' env DEVICE=cpu LIMIT=0 bench/gpu.sh "$build"

bench/gpu.sh "$build" pack "$work/packed" >/dev/null || failed "pack"
[ -x "$work/packed/bench_steps" ] && ls "$work/packed/lib" | grep -q '^libdnnl' || failed "pack: something is missing"
LD_LIBRARY_PATH=$work/packed/lib "$work/packed/amp" --help >/dev/null || failed "the packed amp does not run"
python3 bench/gpu_peer.py --data "$work" && gzip -t "$work"/*.gz || failed "data"
finish
