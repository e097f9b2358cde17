#!/usr/bin/env bash
# Times training steps on this machine's CPU, in ampc and in PyTorch. Writes one table to stdout and to
# bench/results/cpu-<date>.md.
#   cpu.sh [BUILD]     BUILD: a Release build, by default build; it is brought up to date
# WARM and STEPS are the numbers of untimed and of timed steps, OMP_NUM_THREADS the threads (2), PYTHON an
# interpreter with PyTorch. Without PyTorch its columns stay empty.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
warm=${WARM:-5} steps=${STEPS:-30}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

[ -e "$build/build.ninja" ] || cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$build/CMakeCache.txt" || {
  echo "cpu.sh: $build is no Release build" >&2
  exit 1
}
cmake --build "$build" --target bench_steps >/dev/null

python=
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
  if "$candidate" -c 'import torch' 2>/dev/null; then python=$candidate && break; fi
done
[ -n "$python" ] || echo "no PyTorch here (apt install python3-torch, or set PYTHON): its columns stay empty" >&2

more=() # options of bench_steps
settings=()
ours() { # ours JOB BATCH PRECISION: prints median, minimum, first loss, last loss
  echo "  ampc, $1, batch $2, $3" >&2
  "$build/bench_steps" "${more[@]}" "$folder" "$warm" "$steps" "$1" train.batch="$2" precision="$3" "${settings[@]}"
}
theirs() { # theirs NET BATCH [channels_last]: the same for PyTorch, with the weights of the last call of ours
  [ -n "$python" ] || { echo "- - - -" && return; }
  echo "  PyTorch, $*" >&2
  "$python" bench/peer.py "$1" "$folder" "$warm" "$steps" "${@:2}"
}
ratio() { # ratio A B: A / B, or - if one is missing
  awk -v a="$1" -v b="$2" 'BEGIN { if (a == "-" || b == "-" || b == "") print "-"; else printf "%.2f", a / b }'
}
least() { # least A B: the smaller of two numbers, or the only one
  awk -v a="$1" -v b="$2" 'BEGIN { print b == "-" || (a != "-" && a + 0 < b + 0) ? a : b }'
}

row() { # row NET JOB BATCH PRECISIONS [channels_last]
  local net=$1 job=$2 batch=$3 precisions=$4 layouts=${5:-} precision
  declare -A took=([f16]=- [bf16]=-)
  local a b c losses_a losses_b
  for precision in $precisions; do # f32 is last: PyTorch uses its weights and batches
    a=$(ours "$job" "$batch" "$precision")
    took[$precision]=${a%% *}
  done
  losses_a=$(cut -d' ' -f3,4 <<<"$a")
  b=$(theirs "$net" "$batch")
  losses_b=$(cut -d' ' -f3,4 <<<"$b")
  c="- - - -"
  [ -z "$layouts" ] || c=$(theirs "$net" "$batch" channels_last)
  local peer
  peer=$(least "${b%% *}" "${c%% *}")
  printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$net" "$batch" "${took[f32]}" \
    "${b%% *}" "${c%% *}" "$(ratio "${took[f32]}" "$peer")" "${took[f16]}" "$(ratio "${took[f16]}" "${took[f32]}")" \
    "${took[bf16]}" "$(ratio "${took[bf16]}" "${took[f32]}")" "${losses_a/ / to }" "${losses_b/ / to }"
}

table() {
  echo "| net | batch | ampc f32 | PyTorch | PyTorch channels_last | f32 / PyTorch's best | ampc f16 | f16 / f32 |" \
    "ampc bf16 | bf16 / f32 | loss of ampc f32 | loss of PyTorch |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
  settings=(opt.lr.steps=1404) # of three epochs, as in peer.py
  row fashion_mnist models/fashion_mnist/fashion_mnist.amp 128 "f16 bf16 f32" channels_last
  settings=(opt.lr.steps=3744)
  row mlp models/fashion_mnist/mlp.amp 16 "f16 bf16 f32"
  row mlp models/fashion_mnist/mlp.amp 128 "f16 bf16 f32"
  settings=()
  row mnist_cnn models/mnist_cnn/mnist_cnn.amp 32 "f32" channels_last
  "$python" -c 'import torchvision' 2>/dev/null || return 0 # their nets
  tests/models/pictures.py "$folder/pictures" 20 64
  more=(-D DIR="$folder/pictures/" -D SIZE=64 -D CLASSES=10)
  settings=(opt.lr=0.01)
  row resnet18 models/resnet18/resnet18.amp 8 "f16 bf16 f32" channels_last
  row resnet50 models/resnet50/resnet50.amp 8 "f16 bf16 f32" channels_last
  settings=(opt.lr=1e-4)
  row efficientnet_b0 models/efficientnet_b0/efficientnet_b0.amp 16 "f16 bf16 f32" channels_last
}

about() {
  local version=none
  [ -z "$python" ] || version=$("$python" -c 'import torch; print(torch.__version__)')
  echo "# Training steps on the CPU, compared with PyTorch, $(date +%F)"
  echo
  echo "Milliseconds of one step: the median of $steps steps after $warm of warm-up, with $OMP_NUM_THREADS threads. Both sides start"
  echo "with the same weights and use the same batches in the same order. Their dropout masks differ, so the losses of"
  echo "fashion_mnist and mlp are close but not equal. A step copies its batch in and converts it; the times do not include"
  echo "compiling or reading data."
  echo
  echo "Machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores," \
    "load before: $(cut -d' ' -f1 /proc/loadavg)."
  echo "Versions: $("${CC:-cc}" --version | head -n 1); ampc $(git rev-parse --short HEAD 2>/dev/null || echo unknown); PyTorch $version."
  echo
}

result=bench/results/cpu-$(date +%F).md
{ about && table; } >"$folder/table"
cat "$folder/table"
mv "$folder/table" "$result"
echo "kept in $result" >&2
