#!/usr/bin/env bash
# Values in data that a job cannot use: the messages name file, sample and value.
#   data_values.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
mkdir -p "$d"
cd "$d" || exit 1

bytes() { # bytes N ESCAPED...: N of the escaped words
  local i
  for ((i = 0; i < $1; i++)); do printf '%b' "$2"; done
}
label() { # label FILE NUMBER...: i32
  local file=$1 n
  shift
  for n in "$@"; do printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((n >> 24 & 255)) $((n >> 16 & 255)) $((n >> 8 & 255)) $((n & 255)))"; done >"$work/bytes"
  idx "\\0\\0\\x0c\\x01\\0\\0\\0\\x$(printf %x $#)" <"$work/bytes" >"$file"
}
job() { # job FILE LABELS PRECISION [ARGUMENT]
  cat >"$1" <<AMP
data d() { return idx("x.idx"), idx("$2") }
model net = Linear(8, 4)
optimizer opt = SGD(net, lr=0.1)
precision $3
train x, y in d() with batch=2, epochs=20 { minimize cross_entropy(net(x), y.to(i64)${4-}) with opt }
AMP
}
train() { timeout 300 "$amp" train --device cpu "$@"; }

{ bytes 80 '\x3f\0\0\0'; } >"$work/bytes"
idx '\0\0\x0d\x02\0\0\0\x0a\0\0\0\x08' <"$work/bytes" >x.idx
label good.idx 0 1 2 3 0 1 2 3 0 1
label large.idx 0 1 2 3 0 1 2 3 4 1
label huge.idx 0 1 2 2147483647 0 1 2 3 4 1
label ignored.idx 0 1 2 3 -100 1 2 3 0 1
label negative.idx 0 1 2 3 -1 1 2 3 0 1

job job.amp good.idx f32
passes "labels of i32" train job.amp
job job.amp large.idx f32
refuses "a label that is no class" 3 'large\.idx: sample 8 is 4, expected 0 to 3 or -100 \(classes of cross_entropy, job\.amp:5\)' train job.amp
job job.amp huge.idx f16
refuses "a great one, whole" 3 'huge\.idx: sample 3 is 2147483647, expected 0 to 3' train job.amp
job job.amp negative.idx f32
refuses "a negative one" 3 'negative\.idx: sample 4 is -1, expected 0 to 3 or -100' train job.amp
job job.amp ignored.idx f32
passes "one that is ignored" train job.amp
job job.amp negative.idx f32 ', ignore_index=-1'
passes "another that is ignored" train job.amp
job job.amp large.idx f32 ', ignore_index=4'
passes "one behind the classes that is ignored" train job.amp
job job.amp ignored.idx f32 ', ignore_index=-1'
refuses "one that is not the ignored one" 3 'sample 4 is -100, expected 0 to 3 or -1 ' train job.amp

# ---- indices ------------------------------------------------------------------
label words.idx 0 1 2 3 4 5 0 1 2 9
cat >words.amp <<AMP
data d() { return idx("words.idx"), idx("good.idx") }
model net = Sequential(Embedding(6, 4), Linear(4, 4))
optimizer opt = SGD(net, lr=0.1)
train w, y in d() with batch=2 { minimize cross_entropy(net(w), y.to(i64)) with opt }
AMP
refuses "a word that the table has not" 3 'words\.idx: sample 9 is 9, expected 0 to 5 \(rows of embedding, words\.amp:4\)' train words.amp
label words.idx 0 1 2 3 4 5 0 1 -2 5
refuses "one below 0" 3 'words\.idx: sample 8 is -2, expected 0 to 5 \(rows of embedding' train words.amp
label words.idx 0 1 2 3 4 5 0 1 2 5
passes "words of the table" train words.amp
python3 - <<'PY'
import struct
open("text.bin", "wb").write(struct.pack("<33H", *([1, 2, 3, 0] * 6 + [7] + [1] * 8)))
PY
cat >text.amp <<AMP
data d() { ids = tokens("text.bin", length=9); return ids[:, :-1], ids[:, 1:].to(i64) }
model net = Sequential(Embedding(7, 4), Linear(4, 7))
optimizer opt = SGD(net, lr=0.1)
train w, y in d() with batch=2 { minimize cross_entropy(net(w).flatten(0, 1), y.flatten()) with opt }
AMP
refuses "a token, and where in its window" 3 'text\.bin: sample 2, element 8, is 7, expected 0 to 6' train text.amp

# ---- floats: a job may mask non-finite numbers, so they are searched only after a loss is not finite ------
lost_x() { # lost_x SAMPLE ESCAPED
  { bytes $((8 * $1 + 3)) '\x3f\0\0\0'; printf '%b' "$2"; bytes $((76 - 8 * $1)) '\x3f\0\0\0'; } >"$work/bytes"
  idx '\0\0\x0d\x02\0\0\0\x0a\0\0\0\x08' <"$work/bytes" >x.idx
}
lost_x 7 '\x7f\xc0\0\0'
job job.amp good.idx f32
refuses "NaN in data" 5 'is not finite.*sample 7 of .*x\.idx holds nan$' train job.amp
grep -q 'learning rate' "$work/err" && failed "advice about the learning rate for NaN in data"
sed -i 's/batch=2, epochs=20/batch=10, epochs=40/; s/precision f32/precision f16/' job.amp
refuses "and with a scaler" 5 'of the last 20 steps.*sample 7 of .*x\.idx holds nan$' train job.amp
lost_x 2 '\xff\x80\0\0'
job job.amp good.idx f32
refuses "infinity" 5 'sample 2 of .*x\.idx holds -inf$' train job.amp
passes "emit" "$ampc" --target=cpu -o job.c job.amp
passes "build" bash -c "$("$ampc" --target=cpu --build-line -o job.c job.amp)"
refuses "the emitted program" 5 'sample 2 of .*x\.idx holds -inf$' ./job
printf ':train\n' >in
sh -c '"$0" repl --device cpu job.amp <in' "$amp" >"$work/out" 2>"$work/err"
cat "$work/out" "$work/err" | grep -q 'x.idx holds -inf' || failed "the prompt does not name it"
finish
