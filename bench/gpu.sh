#!/usr/bin/env bash
# Times training steps on a GPU, in ampc and in PyTorch (eager with autocast, torch.compile, torch.compile
# with CUDA graphs), and compares the times of ampc's commands with the prediction of `amp inspect --gpu`.
#   gpu.sh [BUILD]              measures everything that has no result yet, then prints the table
#   gpu.sh [BUILD] report       prints the table of the existing results
#   gpu.sh [BUILD] predict [GPU]...   predicts the steps for GPUs (h200 h100 a100), without one, and
#                               prints gpu_predicted.md; takes 18 minutes of processor time
#   gpu.sh [BUILD] pack FOLDER  copies the programs and their libraries to FOLDER, for a machine on which
#                               nothing can be built; there, run gpu.sh FOLDER
#   gpu.sh [BUILD] prepare ARCH writes the data of the pairs, and compiles their kernels for ARCH (sm_90) into the
#                               cache; needs NVRTC and no GPU
# The script builds and installs nothing. BUILD (default: build) must contain bench_steps and amp (cmake
# --build build --target bench_steps amp). A pair is a net and a precision, measured in ampc and in
# PyTorch. It takes less than 8 minutes, because its four measurements and its prediction end after EACH
# seconds. Each result is a file. A result that exists is not measured again, so a run that was stopped
# can be continued. Status 77: there is no GPU, or PyTorch cannot use it. Variables, with their defaults:
#   PYTHON   an interpreter with PyTorch (python3)
#   RESULTS  the folder of the results (bench/results/gpu)
#   EACH     seconds (110)
#   LIMIT    seconds after which no new pair begins
#   PAIRS    the pairs to measure, such as "mlp:f16 mnist_cnn:bf16"
#   WARM, STEPS   steps before a group, and in a group
#   GPU      the name for amp inspect --gpu, if the script does not recognize the GPU
#   DATA     the folder of Fashion-MNIST (Debian's); without it the data are random
#   PEERS    the modes of PyTorch to measure: eager compile graphs; empty: none
#   COMMANDS empty: no times of single commands, and no prediction
#   TINY     a bash file that is read when a net's settings are known: tests make the nets small
#   DEVICE   cuda; cpu: a trial without a GPU
# A script that sources this file (bench/slot.sh) gets its functions: `. bench/gpu.sh BUILD functions`.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build
[ $# -eq 0 ] || [[ $1 =~ ^(report|predict|pack|prepare)$ ]] || { build=$1 && shift; }
mode=${1:-run}
results=$(realpath -m "${RESULTS:-bench/results/gpu}") device=${DEVICE:-cuda} limit=${LIMIT:-86400} each=${EACH:-110}
warm=${WARM:-20} steps=${STEPS:-100} python=${PYTHON:-python3}
nets="mlp fashion_mnist mnist_cnn gpt2 gpt2_dropout resnet50 vit_b_16 efficientnet_b7 bert_large unet" peers=${PEERS-eager compile graphs} commands=${COMMANDS-yes}
pairs=${PAIRS:-$(for net in mlp fashion_mnist mnist_cnn; do for p in f32 tf32 f16 bf16; do echo "$net:$p"; done; done) gpt2:bf16 resnet50:f16 vit_b_16:f16 bert_large:f16 efficientnet_b7:f16 unet:f16}
ours=(env) # only for bench_steps and amp: PyTorch has its own libraries
[ ! -d "$build/lib" ] || ours=(env "LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")

trap 'kill $(jobs -p) 2>/dev/null; exit 143' TERM # the measurement that runs

stop() { # stop STATUS TEXT
  echo "${0##*/}: $2" >&2
  exit "$1"
}

pack() { # pack FOLDER: the programs, their libraries except the C library, the libraries that decode pictures
  mkdir -p "$1/lib"
  cp "$build/bench_steps" "$build/amp" "$1/"
  ldd "$build/bench_steps" "$build/amp" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$1/lib/"
  ldconfig -p | awk '/lib(jpeg|png16)\.so\.[0-9]+ / { print $NF }' | xargs -I{} cp -L {} "$1/lib/"
  du -sh "$1" | cut -f1 | sed "s|\$| in $1|"
}

made() { # made KIND FILE: lets gpu_peer.py write such data, unless the file exists
  [ -e "$results/data/$2" ] || { mkdir -p "$results/data" && "$python" bench/gpu_peer.py "--$1" "$results/data"; }
}

find_net() { # find_net NET: sets its job, consts (with -D), batch, steps in a group
  consts=(-D "DIR=$data/") batch=128 group=$steps
  case $1 in
  mlp) job=models/fashion_mnist/mlp.amp ;;
  fashion_mnist) job=models/fashion_mnist/fashion_mnist.amp ;;
  mnist_cnn) job=models/mnist_cnn/mnist_cnn.amp ;;
  gpt2 | gpt2_dropout) # one batch per step and, as in gpu_peer.py, no dropout
    job=models/gpt2/gpt2.amp batch=16 group=$(((steps + 4) / 5))
    consts=(-D "DATA=$results/data/fineweb_" -D P=0 -D ACCUMULATE=1)
    [ "$1" = gpt2 ] || consts+=(-D P=0.1)
    made tokens fineweb_val_000.bin
    ;;
  resnet50 | vit_b_16 | efficientnet_b7)
    job=models/$1/$1.amp group=$(((steps + 4) / 5))
    consts=(-D "DIR=$results/data/imagenet/" -D CLASSES=10)
    made pictures imagenet/val
    export SIZE=224
    [ "$1" != efficientnet_b7 ] || { batch=8 consts+=(-D SIZE=600) && export SIZE=600; }
    ;;
  bert_large) # one batch per step, as in gpu_peer.py
    job=models/bert_large/bert_large.amp batch=16 group=$(((steps + 4) / 5))
    consts=(-D "DIR=$results/data/" -D ACCUMULATE=1 -D SAMPLES=400)
    made texts train_ids.npy
    ;;
  unet)
    job=models/unet/unet.amp batch=4 group=$(((steps + 4) / 5))
    consts=(-D "DIR=$results/data/")
    made cells train_masks.npy
    ;;
  *) stop 2 "unknown net $1: one of $nets" ;;
  esac
  # shellcheck source=/dev/null
  [ -z "${TINY:-}" ] || . "$TINY" "$1"
}

fail() { # fail TEXT: prints the object of a failure
  "$python" -c 'import json, sys; print(json.dumps({"failed": sys.argv[1]}))' "$1"
}

# keep FILE COMMAND...: writes the command's object to FILE or, if it fails, the reason. Keeps an existing FILE.
keep() {
  local file=$1 status=0 why
  shift
  [ ! -e "$file" ] || return 0
  echo "  ${file##*/}" >&2
  timeout "$each" "$@" >"$file.new" 2>"$file.err" &
  wait $! || status=$?
  if [ $status -ne 0 ]; then
    why=$(grep -i error "$file.err" | tail -n 1) || why=$(grep -v '^[[:space:]]*$' "$file.err" | tail -n 1) || why="status $status"
    [ $status -ne 124 ] || why="out of time"
    fail "$why" >"$file.new"
  fi
  rm -f "$file.err"
  mv "$file.new" "$file"
}

predict() { # predict BASE JOB SETTINGS...: only if there are measured times
  local base=$1 job=$2
  shift 2
  [ -s "$base.tsv" ] || return 0
  if [ -n "$name" ]; then
    keep "$base.cost.json" "${ours[@]}" "$build/amp" inspect --gpu "$name" --measured "$base.tsv" --json "$@" "$job"
  else
    fail "no figures of $found" >"$base.cost.json"
  fi
}

have_all() { # have_all BASE: are there results of ampc and all peers?
  local way
  for way in ampc $peers; do [ -e "$1.$way.json" ] || return 1; done
}

measure() { # measure NET PRECISION BASE SCRATCH: ampc first; it writes weights and batches for PyTorch
  local net=$1 precision=$2 base=$3 scratch=$4 way
  local steps_of=("${ours[@]}" "$build/bench_steps" --device "$device" "${consts[@]}")
  local of=("$job" train.batch="$batch" precision="$precision")
  if [ ! -e "$base.ampc.json" ]; then
    rm -f "$base.tsv" "$base.cost.json"
    keep "$base.ampc.json" "${steps_of[@]}" --json ${commands:+--commands "$base.tsv"} "$scratch" "$warm" "$group" "${of[@]}"
  elif [ ! -e "$scratch/batches.bin" ]; then # the same weights and batches as before
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

predict_all() { # predict_all FOLDER GPU: files of predictions
  local one net precision
  made() { :; } # data are not read
  for one in $pairs; do
    net=${one%%:*} precision=${one##*:}
    find_net "$net"
    "${ours[@]}" "$build/amp" inspect --gpu "$2" --json --set train.batch="$batch" --set precision="$precision" "${consts[@]}" "$job" \
      >"$1/$net-$precision.$2.json" 2>"$1/$net-$precision.$2.err" || { echo "gpu.sh: $one: $(cat "$1/$net-$precision.$2.err")" >&2 && return 1; }
  done
}

prepare() { # prepare ARCH
  local one net
  find_data
  for one in $pairs; do
    net=${one%%:*}
    find_net "$net"
    "${ours[@]}" "$build/bench_steps" --compile "$1" "${consts[@]}" . 1 1 "$job" train.batch="$batch" precision="${one##*:}"
  done
}

find_data() { # Fashion-MNIST, or random data in its format
  data=$(realpath -m "${DATA:-/usr/share/datasets/fashion-mnist}")
  [ ! -e "$data/train-images-idx3-ubyte.gz" ] || return 0
  data=$results/data
  [ -e "$data/t10k-labels-idx1-ubyte.gz" ] || { mkdir -p "$data" && "$python" bench/gpu_peer.py --data "$data"; }
}

# `found`: PyTorch's name of the GPU; `name`: that of amp inspect --gpu, empty if it does not know the GPU.
find_gpu() {
  [ -x "$build/bench_steps" ] && [ -x "$build/amp" ] || stop 2 "$build has no bench_steps and amp: build them, or pack"
  [ "$device" = cuda ] || { found=$device name=${GPU:-h200} && return 0; }
  "$python" -c 'import torch' 2>/dev/null || stop 77 "no PyTorch: set PYTHON"
  found=$("$python" bench/gpu_peer.py --gpu 2>/dev/null) || stop 77 "no GPU that PyTorch can use"
  name=$(tr '[:upper:]' '[:lower:]' <<<"$found" | grep -v laptop | grep -owE 'h200|h100|gh200|a100|b200|gb10|rtx 4090|l4|t4' | head -n 1 | tr -d ' ') || name=
  name=${GPU:-$name}
  if [ -n "$name" ]; then echo "gpu.sh: $found: predicted as $name"; else echo "gpu.sh: $found: no figures, so no prediction (set GPU)"; fi >&2
}

measure_pairs() {
  local one
  mkdir -p "$results"
  find_data
  for one in $pairs; do
    [ $SECONDS -lt "$limit" ] || stop 0 "the limit of $limit s: run it again to go on"
    echo "$one" >&2
    pair "${one%%:*}" "${one##*:}"
  done
}

case $mode in
functions) ;;
pack) pack "${2:?a folder}" ;;
prepare) prepare "${2:?an architecture}" ;;
report) "$python" bench/gpu_report.py "$results" ;;
predict)
  shift $(($# > 0))
  [ $# -gt 0 ] || set -- h200 h100 a100
  [ -n "${PAIRS:-}" ] || pairs+=" gpt2_dropout:bf16"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  find_data
  for gpu; do predict_all "$folder" "$gpu" & done
  for gpu; do wait -n; done
  "$python" bench/gpu_report.py --predicted "$folder" "$@"
  ;;
run)
  find_gpu
  measure_pairs
  "$python" bench/gpu_report.py "$results"
  ;;
*) stop 2 "unknown word $mode" ;;
esac
