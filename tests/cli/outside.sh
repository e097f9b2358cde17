#!/usr/bin/env bash
# A computed index that is out of range. The device records its position and value, in train, eval
# and infer, in emitted programs, and at each optimization level. Indices that the compiler proves
# valid are not checked.
#   outside.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1

cat >job.amp <<'JOB'
const N = 3
dim S(max=4)
data d() { return npy("ids.npy", shape=[4], dtype=i64, samples=32) }
module Net { e = Embedding(10, 4); rnn = GRU(3, 4); def forward(ids) { return e(ids + N) } }
model net = Net()
optimizer opt = SGD(net, lr=0.1)
train ids in d() with batch=8, epochs=1, shuffle=false { minimize net(ids).mean() with opt }
eval ids in d() with batch=8 { metric m = (net(ids) * net(ids % 3)).mean() }
infer rows(x: i64[2, S]) -> f32[2, S, 4] { return net(x) }
infer less(x: i64[2]) -> f32[2, 4] { return net.e(x - 1) }
infer one(x: i64[1]) -> f32[1] { return arange(5, dtype=f32)[x - 3] }
infer two(x: i64[1]) -> f32[1] {
  m = arange(10, dtype=f32).view(2, 5)
  return m[arange(1), x]
}
infer words(x: i64[1]) -> f32[1] {
  return ctc_loss(zeros(6, 1, 3), ones([1, 2], dtype=i64), x + N, x - 1, reduction="none")
}
infer classes(x: i64[1]) -> f32[] { return cross_entropy(zeros(1, 5), x + N, ignore_index=8) }
infer gated(x: i64[1]) -> f32[1, 4] { return net.rnn(ones(4, 1, 3), lengths=x + N)[1].view(1, 4) }
JOB
python3 - <<'PY'
import struct
def npy(name, shape, data):
    head = "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(data)}q", *data))
ids = [i % 6 for i in range(128)]
npy("fine.npy", "(32, 4)", ids)
ids[41], ids[43] = 9, -4 # sample 10, elements 1 and 3: the third of the second batch
npy("ids.npy", "(32, 4)", ids)
npy("x.npy", "(2, 4)", [1, 2, 3, 4, 5, 6, -4, 6])
npy("fits.npy", "(2, 4)", [1, 2, 3, 4, 5, 6, -3, 6])
npy("y.npy", "(1,)", [9])
npy("lone.npy", "(1,)", [1])
npy("last.npy", "(1,)", [2])
PY
says() { # says NAME STATUS TEXT COMMAND...
  local name=$1 status=$2 text=$3
  shift 3
  "$@" >out 2>err
  local got=$?
  [ $got -eq "$status" ] || failed "$name: status $got"
  grep -qF "$text" err || failed "$name: instead of '$text': $(cat err)"
  echo "ok: $name"
}
embedding="element [2, 1] of an index is 12, expected 0 to 9 (rows of embedding, job.amp:4)"
for level in 0 2; do
  says "training, -O$level" 5 "step 2: $embedding" "$amp" train -O$level --device cpu job.amp
done
cp ids.npy wrong.npy
cp fine.npy ids.npy
passes "valid indices" "$amp" train -q --device cpu --save w job.amp
infer() { "$amp" infer -q --device cpu --weights w "$@" job.amp; }
says "inference" 5 "element [1, 2] of an index is -1, expected 0 to 9 (rows of embedding, job.amp:4)" infer --block rows --input x.npy
passes "an inference that fits" infer --block rows --input fits.npy
passes "padding of a batch is not checked" infer --block less --input lone.npy
says "a subscript" 5 "element [0] of an index is 6, expected 0 to 4 (rows of [...], job.amp:11)" infer --block one --input y.npy
says "two subscripts" 5 "element [0] of an index is 9, expected 0 to 4 (rows of [...], job.amp:14)" infer --block two --input y.npy
passes "below 0, from the end" infer --block one --input last.npy
[ "$(cat out)" = 4 ] || failed "arange(5)[-1]: $(cat out)"
says "a length of ctc_loss" 5 "element [0] of an index is 12, expected 0 to 6 (\`input_lengths\` of ctc_loss, job.amp:17)" infer --block words --input y.npy
says "a label" 5 "element [0] of the labels is 12, expected 0 to 4 (classes of cross_entropy, job.amp:19)" infer --block classes --input y.npy
passes "a label that fits" infer --block classes --input lone.npy
sed -i 's/ignore_index=8/ignore_index=12/' job.amp
passes "a label that is ignored" infer --block classes --input y.npy
says "a length of GRU" 5 "element [0] of an index is 5, expected 0 to 4 (\`lengths\` of GRU, job.amp:20)" infer --block gated --input last.npy
passes "a length of GRU that fits" infer --block gated --input lone.npy
passes "lengths that fit" infer --block words --input last.npy
cp wrong.npy ids.npy
says "evaluation" 5 "error: $embedding" "$amp" eval --device cpu --resume w job.amp
passes "an emitted program" "$ampc" job.amp --target cpu -o job.c
eval "$("$ampc" job.amp --target cpu --build-line -o job.c)" || failed "it does not compile"
says "an emitted program" 5 "step 2: $embedding" ./job

# ---- indices that the compiler proves valid ------------------------------------------------------------------------------
checks() { # checks NUMBER EXPRESSION
  printf 'data d() { return synthetic(9, [4], dtype=i64, low=0, high=9) }\neval i in d() { x = arange(8, dtype=f32); metric m = (%s).mean() }\n' "$2" >one.amp
  local n
  n=$("$ampc" one.amp --target cpu --dump-after=lower | grep -c ' check_index ')
  [ "$n" = "$1" ] || failed "$2: $n checks instead of $1"
  echo "ok: $2: $n"
}
checks 1 'x[i * 2]'
checks 0 'x[i % 8]'
checks 1 'x[i % 8 + 1]'
checks 0 'x[(i % 8 + 1).clamp(0, 7)]'
checks 0 'x[(i % 4) * 2 + 1]'
checks 1 'x[(i % 4) * 3 - 1]'
checks 0 'x[arange(8)]'
checks 0 'x[argmax(x.reshape(2, 4), dim=1)]'
checks 0 'x[where(i > 4, 3, i % 2)]'
checks 0 'x[minimum(i, 7)]'
checks 1 'x[minimum(i, 8)]'
checks 1 'x[i * i]'
checks 2 'x.view(2, 4)[i * 2, i * 2]'
checks 0 'x.view(2, 4)[i % 2, i % 4]'
