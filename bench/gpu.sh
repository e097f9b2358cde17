#!/usr/bin/env bash
# Training steps on a GPU beside PyTorch: eager with autocast, torch.compile, torch.compile with CUDA
# graphs; and the times of our commands beside those that `amp inspect --gpu` predicts.
#   gpu.sh [BUILD]              measures what is not measured yet, then prints the table
#   gpu.sh [BUILD] report       the table of what there is
#   gpu.sh [BUILD] pack FOLDER  the programs and the libraries that they need, for a machine where
#                               nothing can be built: there, gpu.sh FOLDER
# Nothing is built or installed here: BUILD (default build) has bench_steps and amp (cmake --build build
# --target bench_steps amp), PYTHON a PyTorch. Results lie in RESULTS (bench/results/gpu), a file for
# each; a file that is there is not measured again, so that a run which ends early goes on where it
# was. A pair (a net and a precision, both sides) takes less than 8 minutes: each of its four
# measurements is ended after 110 s. LIMIT: seconds after which no pair is begun. PAIRS: those that are
# wanted, as in PAIRS="mlp:f16 mnist_cnn:bf16". WARM and STEPS: steps before and in a group.
# DEVICE=cpu tries all of it without a GPU. Status 77: there is no GPU, or no PyTorch for it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build
[ $# -eq 0 ] || [ "$1" = report ] || [ "$1" = pack ] || { build=$1 && shift; }
mode=${1:-run}
results=${RESULTS:-bench/results/gpu} device=${DEVICE:-cuda} limit=${LIMIT:-86400} each=${EACH:-110}
warm=${WARM:-20} steps=${STEPS:-100} python=${PYTHON:-python3}
nets="mlp fashion_mnist mnist_cnn"
pairs=${PAIRS:-$(for net in $nets; do for p in f32 tf32 f16 bf16; do echo "$net:$p"; done; done)}
[ ! -d "$build/lib" ] || export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

stop() { # stop STATUS TEXT
  echo "gpu.sh: $2" >&2
  exit "$1"
}

pack() { # pack FOLDER: programs, and their libraries but for the system's own C library
  mkdir -p "$1/lib"
  cp "$build/bench_steps" "$build/amp" "$1/"
  ldd "$build/bench_steps" "$build/amp" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$1/lib/"
  du -sh "$1" | cut -f1 | sed "s|\$| in $1|"
}

job_of() {
  case $1 in
  mlp) echo models/fashion_mnist/mlp.amp ;;
  fashion_mnist) echo models/fashion_mnist/fashion_mnist.amp ;;
  mnist_cnn) echo models/mnist_cnn/mnist_cnn.amp ;;
  *) stop 2 "unknown net $1: one of $nets" ;;
  esac
}

# keep FILE COMMAND...: its object in FILE; where it fails, why. A file that is there stays.
keep() {
  local file=$1 status=0
  shift
  [ ! -e "$file" ] || return 0
  echo "  ${file##*/}" >&2
  timeout "$each" "$@" >"$file.new" 2>"$file.err" || status=$?
  if [ $status -ne 0 ]; then
    "$python" - "$status" "$file.err" >"$file.new" <<'PY'
import json, sys
lines = open(sys.argv[2], errors="replace").read().strip().splitlines()
why = "out of time" if sys.argv[1] == "124" else (lines[-1] if lines else "status " + sys.argv[1])
print(json.dumps({"failed": why}))
PY
  fi
  rm -f "$file.err"
  mv "$file.new" "$file"
}

predict() { # predict JOB SETTINGS COMMANDS FILE
  local gpu
  gpu=$("$build/amp" inspect --gpu "${GPU:-$name}" --measured "$3" --json $2 "$1" 2>/dev/null) || gpu='{}'
  echo "$gpu" >"$4"
}

pair() { # pair NET PRECISION: ours first, which leaves weights and batches for theirs
  local net=$1 precision=$2 job base scratch
  job=$(job_of "$net")
  base=$results/$net-$precision
  scratch=$results/work-$net-$precision
  mkdir -p "$scratch"
  [ ! -e "$base.graphs.json" ] || return 0
  if [ ! -e "$scratch/batches.bin" ]; then rm -f "$base.ampc.json"; fi
  keep "$base.ampc.json" "$build/bench_steps" --device "$device" --json --commands "$base.tsv" -D "DIR=$data/" \
    "$scratch" "$warm" "$steps" "$job" train.batch=128 precision="$precision"
  for way in eager compile graphs; do
    keep "$base.$way.json" "$python" bench/gpu_peer.py "$net" "$scratch" "$warm" "$steps" 128 "$precision" $way "$device"
  done
  [ ! -e "$base.tsv" ] || predict "$job" "--set train.batch=128 --set precision=$precision -D DIR=$data/" "$base.tsv" "$base.cost.json"
  rm -rf "$scratch"
}

find_data() { # Fashion-MNIST where it is, else numbers of the same form
  data=/usr/share/datasets/fashion-mnist
  [ ! -e $data/train-images-idx3-ubyte.gz ] || return 0
  data=$PWD/$results/data
  [ -e "$data/t10k-labels-idx1-ubyte.gz" ] || { mkdir -p "$data" && "$python" bench/gpu_peer.py --data "$data"; }
}

find_gpu() {
  [ -x "$build/bench_steps" ] && [ -x "$build/amp" ] || stop 2 "$build has no bench_steps and amp: build them, or pack"
  [ "$device" = cuda ] || { name=${GPU:-h200} && return 0; }
  "$python" -c 'import torch' 2>/dev/null || stop 77 "no PyTorch: set PYTHON"
  local found
  found=$("$python" bench/gpu_peer.py --gpu 2>/dev/null) || stop 77 "no GPU that PyTorch can use"
  name=$(tr '[:upper:]' '[:lower:]' <<<"$found" | grep -oE 'h200|h100|a100|b200|rtx 4090|l4|t4' | head -n 1 | tr -d ' ') || name=h200
}

case $mode in
pack) pack "${2:?a folder}" ;;
report) "$python" bench/gpu_report.py "$results" ;;
run)
  find_gpu
  mkdir -p "$results"
  find_data
  for one in $pairs; do
    [ $SECONDS -lt "$limit" ] || stop 0 "the limit of $limit s: run it again to go on"
    echo "$one" >&2
    pair "${one%%:*}" "${one##*:}"
  done
  "$python" bench/gpu_report.py "$results"
  ;;
*) stop 2 "unknown word $mode" ;;
esac
