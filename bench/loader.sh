#!/usr/bin/env bash
# Prints the samples per second of the loader on a folder of JPEG pictures at 224 x 224, and of PyTorch's DataLoader with
# torchvision and two workers. Both run on two processors, in turn; the median of the rounds counts.
#   loader.sh [BUILD [PHOTO ...]]    BUILD: a Release build, by default build; it is brought up to date.
#                                    PHOTO: the folder's pictures are crops of these; without them they are noise
# COUNT: pictures (2000). BATCHES: timed batches of 64 (40). ROUNDS (5). PYTHON: an interpreter with torchvision.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
shift || true
count=${COUNT:-2000} batches=${BATCHES:-40} rounds=${ROUNDS:-5} workers=2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

[ -e "$build/build.ninja" ] || cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --target bench_loader >/dev/null
python=
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
  if "$candidate" -c 'import torchvision' 2>/dev/null; then python=$candidate && break; fi
done
[ -n "$python" ] || { echo "loader.sh: no torchvision here: set PYTHON" >&2 && exit 77; }

"$python" bench/pictures.py "$folder" "$count" "$@"
first=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
two=(taskset -c "$first,$((first + 1))")
ours() { "${two[@]}" "$build/bench_loader" "$folder" "$1" 64 "$batches"; }
theirs() { "${two[@]}" "$python" bench/loader_peer.py "$folder" "$1" 64 "$batches" "$workers"; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "$(find "$folder" -name '*.jpg' | wc -l) pictures, $(($(du -sb "$folder" | cut -f1) / count)) bytes each; $(
  "$python" -c 'import torch, torchvision; print("PyTorch", torch.__version__, "torchvision", torchvision.__version__)'); $(
  grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')"
echo
echo "| Mode | ampc, samples/s | PyTorch, $workers workers | ampc / PyTorch |"
echo "|---|---|---|---|"
for mode in train eval; do
  a=() b=()
  for _ in $(seq "$rounds"); do
    a+=("$(ours $mode)")
    b+=("$(theirs $mode)")
  done
  x=$(printf '%s\n' "${a[@]}" | median) y=$(printf '%s\n' "${b[@]}" | median)
  echo "| $mode | $x | $y | $(awk -v x="$x" -v y="$y" 'BEGIN { printf "%.2f", x / y }') |"
done
