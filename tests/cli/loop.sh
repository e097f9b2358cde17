#!/usr/bin/env bash
# A training loop of another program: loop.c calls what `ampc --library` makes of loop.amp. It must leave the bytes that
# amp leaves on the same samples; also with accumulated batches, a loss scaler, members, in threads, and after a
# checkpoint. Wrong calls are refused. examples/surrogate is built and run in C, in C++ and in Python.
#   loop.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
job=$source_dir/tests/cli/loop.amp
python3 - <<'PY'
import random, struct
random.seed(3)
x = [[random.gauss(0, 1) for _ in range(8)] for _ in range(100)]
y = [0 if r[0] + r[1] * r[2] > 0.5 else 1 if r[3] > 0 else 2 for r in x]
open("train_x.bin", "wb").write(b"".join(struct.pack("<8f", *r) for r in x))
open("train_y.bin", "wb").write(struct.pack("<100q", *y))
PY
library=$(dirname "$ampc")/libampcrt.a

build() { # build PROGRAM OPTIONS...: loop.c with a library of the job
  local program=$1
  shift
  mkdir -p "$program.made"
  "$ampc" --library --target=cpu -D GIVEN=true "$@" -o "$program.made/loop.c" "$job" &&
    "$ampc" --target=cpu -D GIVEN=true "$@" -o "$program.made/loop.h" "$job" &&
    eval "$("$ampc" --build-line --library --target=cpu -D GIVEN=true "$@" -o "$program.made/loop.c" "$job")" &&
    cc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE ${flags:-} -I"$program.made" -o "$program" "$source_dir/tests/cli/loop.c" \
      "$program.made/loop.o" "$library" -lz -ldnnl -lgomp -ljansson -lxxhash -lpthread -ldl -lm
}

# tensors A B: both files have the same tensors, in all bytes; their metadata may differ
cat >tensors.py <<'PY'
import json, struct, sys
def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: (v["dtype"], v["shape"], raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if k != "__metadata__"}
a, b = read(sys.argv[1]), read(sys.argv[2])
different = [k for k in sorted(a.keys() | b.keys()) if a.get(k) != b.get(k)]
if different or not a:
    sys.exit(f"{len(different)} of {len(a)} tensors differ: {different[:4]}")
PY
tensors() { passes "$1" python3 tensors.py "$2" "$3"; }

# ---- the same bytes as amp ----
for set in "--set precision=f32" "--set precision=bf16" "--set precision=f16" \
  "--set precision=f16 -D ACCUMULATE=2" "--set train.shards=4"; do
  # shellcheck disable=SC2086
  build net $set || { failed "$set: build" && continue; }
  # shellcheck disable=SC2086
  passes "$set: amp" "$amp" train -q --device cpu --seed 5 $set -D "DIR=$work/" --save amp.st "$job"
  cp out amp.out
  passes "$set: the loop" ./net . run 0 18 5 own.st
  grep -q "eval $(sed -n 's/^eval acc: //p' amp.out) " out || failed "$set: amp: $(cat amp.out)"
  tensors "$set: the same tensors" amp.st own.st
  passes "$set: amp weights" "$amp" weights -q --force own.st weights.st
  tensors "$set: the same weights" weights.st own.st.weights
  passes "$set: the first half" ./net . run 0 8 5 half.st
  passes "$set: the other half" ./net . run 8 18 99 rest.st half.st
  same "$set: the same checkpoint after a stop" own.st rest.st
done
cp own.st again.st
passes "saved where it was opened" ./net . again again.st
cmp -s own.st again.st && failed "the file that was opened is not replaced"
passes "three nets at once" ./net . threads 3 at_once
for i in 1 2 3; do
  passes "net $i alone" ./net . run 0 18 $i alone.st
  same "net $i of three" at_once.$i alone.st
done

# ---- wrong calls ----
build net && passes "wrong calls" ./net . wrong
expects() { grep -qE -- "^$1: 2: .*$2" out || failed "$1: not refused with '$2'"; }
expects "no out" "NULL"
expects "no runtime" "NULL"
expects "no x" "argument x is NULL, expected 16 samples"
expects "no y" "argument y is NULL"
expects "one sample" "block .train. got 1 samples; it is compiled for 16"
expects "no samples" "got 0 samples; it is compiled for 16, and for the 4 at the end of an epoch"
expects "negative" "got -4 samples"
expects "label" "argument y: element \[3\] is 3, expected 0 to 2 \(classes of cross_entropy"
expects "no metrics" "NULL"
expects "no state" "NULL"
expects "setting" "opt.speed"
expects "no path" "NULL"
grep -q "^no device: [1-9]" out && grep -q "^no folder: 3: " out && grep -q "^no file: 3: " out || failed "files"
grep -q "^without a step: nan" out || failed "metrics without a step"
grep -q "^not finite: 5: the loss or a gradient of step 2 is not finite" out || failed "a loss that is not finite"
flags=-DBODIES=2 build net -D ACCUMULATE=2 && passes "wrong calls within a step" ./net . wrong
expects "half a step" "save after the last of the 2 batches of a step, not after batch 1"
refuses "amp train" 2 "your own program gives the samples of .x." "$amp" train --device cpu -D GIVEN=true "$job"

# ---- wrong jobs ----
wrong_job() { # wrong_job NAME PATTERN DATA
  echo "data d() { $3 }
model net = Linear(2, 1)
optimizer opt = SGD(net, lr=cosine_schedule(0.1))
train x, y in d() with batch=2 { minimize mse_loss(net(x), y) with opt }" >wrong.amp
  refuses "$1" 1 "$2" "$ampc" --check wrong.amp
}
wrong_job "a name twice" 'two sources of this block have the name "x"' 'return given("x", [2]), given("x", [1])'
wrong_job "no name" 'the name of `given` is "a-b"' 'return given("a-b", [2]), given("y", [1])'
wrong_job "half of it" 'a program gives some samples' 'return given("x", [2]), synthetic(10, [1])'

# ---- a schedule whose length nobody knows ----
sed 's/samples=100/samples=none/' "$job" >loop.amp
job=$work/loop.amp
build net && ./net . run 0 1 1 x.st 2>err
[ $? -eq 2 ] && grep -q "opt.lr.*number of all steps, which is not known: write .steps=. in" err || failed "no length"

# ---- the example, in three languages ----
example=$source_dir/examples/surrogate
passes "example: cmake" cmake -S "$example" -B example -Dampc_DIR="$(dirname "$ampc")"
passes "example: builds" cmake --build example
learns() { # learns NAME COMMAND...: the error after 2,000 steps is small
  passes "$@"
  awk '$1 == "error" && $2 > 0 && $2 < 0.005 { good = 1 } END { exit !good }' out || failed "$1: learns nothing"
}
learns "C" example/loop_c c.st
learns "C++" example/loop_cpp cpp.st
learns "Python" /usr/bin/python3 "$example/loop.py" example/libsurrogate.so python.st
[ "$(wc -l <"$example/loop.c")" -lt 60 ] || failed "the loop in C is no longer short"
for language in c cpp python; do passes "$language: its checkpoint" "$amp" weights -q $language.st $language.weights; done
finish
