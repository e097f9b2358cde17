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
# measurements is ended after EACH seconds (110), so is its prediction. LIMIT: seconds after which no
# pair is begun. PAIRS: those that are wanted, as in PAIRS="mlp:f16 mnist_cnn:bf16". WARM and STEPS:
# steps before and in a group. GPU: the name of amp inspect --gpu to predict for, where that of the GPU
# is not known. DATA: the folder of Fashion-MNIST (Debian's), without which there are other numbers.
# PEERS: ways of PyTorch, of those three.
# DEVICE=cpu tries all of it without a GPU. Status 77: there is no GPU, or no PyTorch for it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build
[ $# -eq 0 ] || [ "$1" = report ] || [ "$1" = pack ] || { build=$1 && shift; }
mode=${1:-run}
results=$(realpath -m "${RESULTS:-bench/results/gpu}") device=${DEVICE:-cuda} limit=${LIMIT:-86400} each=${EACH:-110}
warm=${WARM:-20} steps=${STEPS:-100} python=${PYTHON:-python3}
nets="mlp fashion_mnist mnist_cnn gpt2 resnet50 vit_b_16" peers=${PEERS:-eager compile graphs}
pairs=${PAIRS:-$(for net in mlp fashion_mnist mnist_cnn; do for p in f32 tf32 f16 bf16; do echo "$net:$p"; done; done) gpt2:bf16 resnet50:f16 vit_b_16:f16}
ours=(env) # before bench_steps and amp alone: PyTorch has libraries of its own
[ ! -d "$build/lib" ] || ours=(env "LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")

stop() { # stop STATUS TEXT
  echo "gpu.sh: $2" >&2
  exit "$1"
}

pack() { # pack FOLDER: programs, their libraries but the system's C library, those that decode pictures
  mkdir -p "$1/lib"
  cp "$build/bench_steps" "$build/amp" "$1/"
  ldd "$build/bench_steps" "$build/amp" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$1/lib/"
  ldconfig -p | awk '/lib(jpeg|png16)\.so\.[0-9]+ / { print $NF }' | xargs -I{} cp -L {} "$1/lib/"
  du -sh "$1" | cut -f1 | sed "s|\$| in $1|"
}

find_net() { # find_net NET: its job, consts (with -D), batch, steps in a group
  consts=(-D "DIR=$data/") batch=128 group=$steps
  case $1 in
  mlp) job=models/fashion_mnist/mlp.amp ;;
  fashion_mnist) job=models/fashion_mnist/fashion_mnist.amp ;;
  mnist_cnn) job=models/mnist_cnn/mnist_cnn.amp ;;
  gpt2) # no dropout and one batch a step, as PyTorch's side has it
    job=models/gpt2/gpt2.amp batch=16 group=$(((steps + 4) / 5))
    consts=(-D "DATA=$results/data/fineweb_" -D P=0 -D ACCUMULATE=1)
    [ -e "$results/data/fineweb_val_000.bin" ] || { mkdir -p "$results/data" && "$python" bench/gpu_peer.py --tokens "$results/data"; }
    ;;
  resnet50 | vit_b_16)
    job=models/$1/$1.amp group=$(((steps + 4) / 5))
    consts=(-D "DIR=$results/data/imagenet/" -D CLASSES=10)
    [ -e "$results/data/imagenet/val" ] || { mkdir -p "$results/data" && "$python" bench/gpu_peer.py --pictures "$results/data"; }
    export SIZE=224
    ;;
  *) stop 2 "unknown net $1: one of $nets" ;;
  esac
}

fail() { # fail TEXT: the object of what failed
  "$python" -c 'import json, sys; print(json.dumps({"failed": sys.argv[1]}))' "$1"
}

# keep FILE COMMAND...: its object in FILE; where it fails, why. A file that is there stays.
keep() {
  local file=$1 status=0 why
  shift
  [ ! -e "$file" ] || return 0
  echo "  ${file##*/}" >&2
  timeout "$each" "$@" >"$file.new" 2>"$file.err" || status=$?
  if [ $status -ne 0 ]; then
    why=$(grep -i error "$file.err" | tail -n 1) || why=$(grep -v '^[[:space:]]*$' "$file.err" | tail -n 1) || why="status $status"
    [ $status -ne 124 ] || why="out of time"
    fail "$why" >"$file.new"
  fi
  rm -f "$file.err"
  mv "$file.new" "$file"
}

predict() { # predict BASE JOB SETTINGS...: beside the measured times, if there are some
  local base=$1 job=$2
  shift 2
  [ -s "$base.tsv" ] || return 0
  if [ -n "$name" ]; then
    keep "$base.cost.json" "${ours[@]}" "$build/amp" inspect --gpu "$name" --measured "$base.tsv" --json "$@" "$job"
  else
    fail "no figures of $found" >"$base.cost.json"
  fi
}

have_all() { # have_all BASE: all four
  local way
  for way in ampc $peers; do [ -e "$1.$way.json" ] || return 1; done
}

measure() { # measure NET PRECISION BASE SCRATCH: ours first, which leaves weights and batches for theirs
  local net=$1 precision=$2 base=$3 scratch=$4 way
  local steps_of=("${ours[@]}" "$build/bench_steps" --device "$device" "${consts[@]}")
  local of=("$job" train.batch="$batch" precision="$precision")
  if [ ! -e "$base.ampc.json" ]; then
    rm -f "$base.tsv" "$base.cost.json"
    keep "$base.ampc.json" "${steps_of[@]}" --json --commands "$base.tsv" "$scratch" "$warm" "$group" "${of[@]}"
  elif [ ! -e "$scratch/batches.bin" ]; then # the same as then
    timeout "$each" "${steps_of[@]}" "$scratch" 1 1 "${of[@]}" >/dev/null || true
  fi
  [ -e "$scratch/batches.bin" ] || { echo "  no batches: PyTorch is not measured" >&2 && return 0; }
  for way in $peers; do
    keep "$base.$way.json" "$python" bench/gpu_peer.py "$net" "$scratch" "$warm" "$group" "$batch" "$precision" "$way" "$device"
  done
}

pair() { # pair NET PRECISION
  local base=$results/$1-$2 scratch=$results/work-$1-$2
  find_net "$1"
  if ! have_all "$base"; then
    mkdir -p "$scratch"
    measure "$1" "$2" "$base" "$scratch"
    rm -rf "$scratch"
  fi
  predict "$base" "$job" --set train.batch="$batch" --set precision="$2" "${consts[@]}"
}

find_data() { # Fashion-MNIST where it is, else numbers of the same form
  data=$(realpath -m "${DATA:-/usr/share/datasets/fashion-mnist}")
  [ ! -e "$data/train-images-idx3-ubyte.gz" ] || return 0
  data=$results/data
  [ -e "$data/t10k-labels-idx1-ubyte.gz" ] || { mkdir -p "$data" && "$python" bench/gpu_peer.py --data "$data"; }
}

# `found`: what PyTorch calls the GPU; `name`: what amp inspect --gpu does, empty where it has no figures.
find_gpu() {
  [ -x "$build/bench_steps" ] && [ -x "$build/amp" ] || stop 2 "$build has no bench_steps and amp: build them, or pack"
  [ "$device" = cuda ] || { found=$device name=${GPU:-h200} && return 0; }
  "$python" -c 'import torch' 2>/dev/null || stop 77 "no PyTorch: set PYTHON"
  found=$("$python" bench/gpu_peer.py --gpu 2>/dev/null) || stop 77 "no GPU that PyTorch can use"
  name=$(tr '[:upper:]' '[:lower:]' <<<"$found" | grep -v laptop | grep -owE 'h200|h100|a100|b200|rtx 4090|l4|t4' | head -n 1 | tr -d ' ') || name=
  name=${GPU:-$name}
  if [ -n "$name" ]; then echo "gpu.sh: $found: predicted as $name"; else echo "gpu.sh: $found: no figures, so no prediction (set GPU)"; fi >&2
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
