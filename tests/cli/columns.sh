#!/usr/bin/env bash
# Names of classes of an input column: weights keep their numbers, so a file that lacks a class does not
# renumber the others, and a class that training did not have is an error. Older weights, which lack
# the names, still load. A library has the names in a table.
#   columns.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
check() { [ "$2" = "$3" ] && echo "ok: $1" || failed "$1: $3 instead of $2"; }
infer() { "$amp" infer -q --device cpu "$@"; }
for i in $(seq 20); do printf 'idle,1,ok\ndrive,%d,bad\nlift,3,ok\n' "$i"; done | sed '1i Drive Mode,load,fault' >all.csv
printf 'load,Drive Mode\n3,lift\n2,drive\n' >two.csv
printf 'load,Drive Mode\n3,lift\n2,drive\n1,idle\n' >three.csv
sed s/lift/hover/ two.csv >other.csv
cat >job.amp <<'E2'
const FRESH = "two.csv"
data motors() { return csv("all.csv", "Drive Mode", classes=true), csv("all.csv", "fault", classes=true) }
data fresh() { return csv(FRESH, "Drive Mode", classes=true) }
data listed() { return csv(FRESH, "Drive Mode", classes=["lift", "drive", "idle"]) }
data same() { return csv(FRESH, "Drive Mode", classes=["drive", "idle", "lift"]) }
model net = Embedding(3, 2)
optimizer opt = SGD(net, lr=0.1)
train mode, y in motors() with batch=20, epochs=1 { minimize cross_entropy(net(mode), y) with opt }
infer number(mode: i64[1]) { return mode }
E2
"$amp" train -q --device cpu --save w.safetensors --save-weights plain.safetensors job.amp >/dev/null 2>&1 || failed "no training"

# ---- numbers ----
for w in w plain; do
  check "$w: two" "2 0" "$(infer --weights $w.safetensors --data 'fresh()' job.amp | xargs)"
  check "$w: three" "2 0 1" "$(infer --weights $w.safetensors --data 'fresh()' -D FRESH='"three.csv"' job.amp | xargs)"
  check "$w: the same list" "2 0" "$(infer --weights $w.safetensors --data 'same()' job.amp | xargs)"
done
says() { # says TEXT ARGUMENTS: infer refuses with this text
  local text=$1
  shift
  infer --weights w.safetensors "$@" job.amp >out 2>&1 && failed "$text: read"
  grep -qF "$text" out || failed "no \"$text\" in: $(cat out)"
}
says 'other.csv has the class `hover` in column Drive Mode, which is none of the 3 in training' --data 'fresh()' -D FRESH='"other.csv"'
says '`classes` lists other names than those that column Drive Mode had in training' --data 'listed()'
check "prompt" "2 0" "$(printf ':train 1\n:infer number fresh()\n' | "$amp" repl --device cpu job.amp 2>/dev/null | tail -n 2 | xargs)"

# ---- weights without names, and a resumed run with other names ----
python3 - <<'P'
import json, struct
b = open("plain.safetensors", "rb").read()
n = struct.unpack("<Q", b[:8])[0]
head = json.loads(b[8:8 + n])
meta = head["__metadata__"]
assert meta.pop("ampc.columns") == ("column=Drive Mode\nclass=drive\nclass=idle\nclass=lift\n"
                                    "column=fault\nclass=bad\nclass=ok\n"), meta
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open("old.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + b[8 + n:])
P
check "old weights" "1 0" "$(infer --weights old.safetensors --data 'fresh()' job.amp | xargs)"
sed -i 's/^idle/zero/' all.csv
"$amp" train --device cpu --resume w.safetensors job.amp >out 2>&1 && failed "other names are read"
grep -qF 'w.safetensors has other classes in column Drive Mode than job.amp: list the names in the order of the checkpoint' out || failed "$(cat out)"
sed -i 's/^zero/idle/' all.csv
"$amp" train -q --device cpu --steps 4 --resume w.safetensors job.amp >/dev/null || failed "the same names are not read"

# ---- a library ----
"$ampc" --library -o job.h job.amp
grep -qF 'extern const char *const job_column0_Drive_Mode[3];' job.h || failed "$(grep -n const job.h)"
grep -qF 'extern const char *const job_classes[2];' job.h || failed "no names of labels"
"$ampc" --library --target=cpu -o job.c job.amp
printf '%s\n' '#include <string.h>' '#include "job.h"' \
  'int main(void) { return strcmp(job_column0_Drive_Mode[2], "lift") || strcmp(job_classes[1], "ok"); }' >call.c
eval "$("$ampc" --library --target=cpu --build-line -o job.c job.amp | tail -n 1)"
cc -std=c11 -Wall -Werror -o call call.c job.o -L"$(dirname "$ampc")" -lampcrt -lz -ldnnl -lgomp -ljansson -lxxhash \
  -lpthread -ldl -lm && ./call || failed "the library has other names"
finish
