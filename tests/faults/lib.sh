# The scripts of this folder source this file: SCRIPT AMPC AMP. It sets $ampc and $amp, makes a work
# folder that is removed at the end, and defines a small job on a part of Fashion-MNIST and
# functions that check a command. shellcheck shell=bash
set -u
ampc=$(realpath "$1")
amp=$(realpath "$2")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
source_dir=$(realpath "$here/../..")
fashion=/usr/share/datasets/fashion-mnist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

failed() { # failed TEXT: counts a failure and prints the output of the last command
  echo "FAILED: $1"
  [ -s "$work/out" ] && sed 's/^/    out: /' "$work/out" | tail -n 20
  [ -s "$work/err" ] && sed 's/^/    err: /' "$work/err" | tail -n 20
  failures=$((failures + 1))
}

passes() { # passes NAME COMMAND...: the command must exit with status 0
  local name=$1
  shift
  "$@" >"$work/out" 2>"$work/err"
  local got=$?
  if [ $got -ne 0 ]; then failed "$name: exit status $got"; else echo "ok: $name"; fi
}

# An error in a job is `file:line:column: error[E201]: text`, any other one `amp: error: text`.
is_error='^(.*: )?error(\[|:)'
# refuses NAME STATUS PATTERN COMMAND...: the command must exit with STATUS and print exactly one
# error, which matches PATTERN
refuses() {
  local name=$1 want=$2 pattern=$3
  shift 3
  "$@" >"$work/out" 2>"$work/err"
  local got=$? errors
  errors=$(grep -cE "$is_error" "$work/err")
  if [ $got -ne "$want" ]; then
    failed "$name: exit status $got instead of $want"
  elif ! grep -Eq -- "$pattern" "$work/err"; then
    failed "$name: the message lacks '$pattern'"
  elif [ "$errors" -ne 1 ]; then
    failed "$name: $errors errors instead of one"
  else
    echo "ok: $name: $(grep -E "$is_error" "$work/err")"
  fi
}

same() { # same NAME A B: the files must have equal bytes
  if cmp "$2" "$3" >"$work/out" 2>"$work/err"; then echo "ok: $1"; else failed "$1"; fi
}

# hiding_library FILE NAME: makes a library to preload, with which dlopen finds no library whose
# name contains NAME. A folder without the library would not hide one that NVIDIA installed.
hiding_library() {
  cc -shared -fPIC -DHIDDEN="\"$2\"" -x c - -x none -o "$1" -ldl <<'C' || failed "cannot build the test's library"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
  void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  return name && strstr(name, HIDDEN) ? NULL : real(name, flags);
}
C
}

idx() { # idx HEADER: prints an IDX file with this header (escaped) and the bytes of standard input
  { printf '%b' "$1"; cat; } | gzip -n -1
}

small_data() { # small_data DIR: writes 640 training and 200 test samples
  mkdir -p "$1"
  local split n high low
  for split in train t10k; do
    n=640 high=2 low=128
    [ $split = t10k ] && n=200 high=0 low=200
    gunzip -c $fashion/$split-images-idx3-ubyte.gz 2>/dev/null | tail -c +17 |
      head -c $((n * 784)) >"$work/bytes"
    idx "\\0\\0\\x08\\x03\\0\\0\\x$(printf %x $high)\\x$(printf %x $low)\\0\\0\\0\\x1c\\0\\0\\0\\x1c" \
      <"$work/bytes" >"$1/$split-images.gz"
    gunzip -c $fashion/$split-labels-idx1-ubyte.gz 2>/dev/null | tail -c +9 |
      head -c $n >"$work/bytes"
    idx "\\0\\0\\x08\\x01\\0\\0\\x$(printf %x $high)\\x$(printf %x $low)" \
      <"$work/bytes" >"$1/$split-labels.gz"
  done
}

small_job() { # small_job FILE [HIDDEN]: writes a job that trains on the data next to it
  cat >"$1" <<AMP
data small(split: str) {
  x = idx(split + "-images.gz").to(f32) / 255.0
  y = idx(split + "-labels.gz").to(i64)
  return x, y
}
module MLP(hidden: int) {
  fc1 = Linear(784, hidden)
  fc2 = Linear(hidden, 10)
  def forward(x) { return fc2(relu(fc1(flatten(x, 1)))) }
}
model net = MLP(${2:-32})
optimizer opt = SGD(net, lr=0.1, momentum=0.9)
precision f16
train image, label in small("train") with batch=32, epochs=2 {
  minimize cross_entropy(net(image), label) with opt
}
eval image, label in small("t10k") with batch=100 { metric acc = accuracy(net(image), label) }
AMP
}

lost_data() { # lost_data FILE SAMPLES "LOST...": writes samples of 8 numbers 0.5; the samples LOST have 1e18
  local i k number
  for ((i = 0; i < $2; i++)); do
    number='\x3f\0\0\0'
    case " $3 " in *" $i "*) number='\x5d\x5e\x0b\x6b' ;; esac
    for ((k = 0; k < 8; k++)); do printf '%b' "$number"; done
  done >"$work/bytes"
  idx "\\0\\0\\x0d\\x02\\0\\0\\0\\x$(printf %x "$2")\\0\\0\\0\\x08" <"$work/bytes" >"$1"
}

lost_job() { # lost_job FILE DATA PRECISION: writes a job that squares numbers; those of the lost samples overflow every type
  cat >"$1" <<AMP
data numbers() { return idx("$2") }
module Net {
  a = Linear(8, 16); b = Linear(16, 1)
  def forward(x) { h = a(x); return b(h * h) }
}
model net = Net()
optimizer opt = SGD(net, lr=0.001)
precision $3
train x in numbers() with batch=1, shuffle=false {
  minimize mse_loss(net(x), zeros(1, 1)) with opt
}
AMP
}

finish() {
  [ $failures -eq 0 ] || echo "$failures failures"
  exit $((failures != 0))
}
