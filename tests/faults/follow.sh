#!/usr/bin/env bash
# Models that follow another one: the bytes are the same without fusion, resumed, emitted and at the
# prompt. A copy begins with the values of its original, drawn or loaded. A step that is skipped
# leaves it unchanged.
#   follow.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cp "$source_dir/tests/simt/jobs/follow.amp" job.amp
train() { "$amp" train --device cpu --quiet "$@"; }

passes "a run" train --save whole job.amp
grep -q 'skipped steps: [1-9]' out || failed "no step is skipped"
passes "without fusion" train -O0 --save flat job.amp
same "without fusion, same checkpoint" whole flat
for n in 2 7; do
  passes "first $n steps" train --steps $n --save part job.amp
  passes "the rest" train --resume part --save joined job.amp
  same "resumed after $n steps, same checkpoint" whole joined
done
passes "emit" "$ampc" --target=cpu -o job.c job.amp
passes "cc" bash -c "$("$ampc" --target=cpu --build-line -o job.c job.amp)"
passes "the emitted program" ./job -q --save emitted
same "the emitted program, same checkpoint" whole emitted
printf ':train 7\n:save seven\n:load seven\n:train\n:save repl\n' | "$amp" repl job.amp >out 2>err || failed "the prompt"
same "the prompt, same checkpoint" whole repl

# holds NAME TEXT FILE...: the Python condition TEXT is true. `files` has the tensors of each checkpoint, as bytes
cat >holds.py <<'PY'
import json, struct, sys
def tensors(path):
    with open(path, "rb") as file:
        n, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(n)), file.read()
    return {name: data[slice(*x["data_offsets"])] for name, x in header.items() if name != "__metadata__"}
files = [tensors(path) for path in sys.argv[2:]]
names = [name[4:] for name in files[0] if name.startswith("net.")]
def equal(model, *but, other=0):
    return all(files[0][f"{model}.{name}"] == files[other][f"net.{name}"] for name in names if name not in but)
def near(model):
    numbers = [struct.unpack("<432f", files[0][f"{name}.fc.weight"]) for name in (model, "net")]
    return max(abs(a - b) for a, b in zip(*numbers)) < 0.1
sys.exit(not (len(names) == 10 and eval(sys.argv[1])))
PY
holds() { passes "$1" python3 holds.py "${@:2}"; }
sed 's/init=1048576/init=16777216/' job.amp >high.amp # all gradients of the first step overflow
passes "no step" train --steps 1 --save one high.amp
grep -q 'skipped steps: 1 of 1' out || failed "the first step is not skipped"
holds "a skipped step changes no copy" 'equal("key") and equal("still")' one
passes "three steps" train --steps 3 --save three job.amp
holds "one copy is behind, the other follows in the third step" 'not equal("key") and equal("still")' three
sed 's/follow(still.*/follow(still, net, buffers=true); follow(key, net) }/; s/init=1048576/init=64/' job.amp >plain.amp
passes "plain copies" train --steps 3 --save three plain.amp
holds "are equal to the original" 'equal("still") and equal("key", *(n for n in names if "running" in n))' three

sed 's/^precision.*/precision bf16 { params(bf16, masters=false) }/; s/ { store.*//' job.amp >narrow.amp
passes "weights in bf16 alone" train --save narrow narrow.amp
holds "the copy is near" 'not equal("key") and near("key")' narrow

# ---- values from files: the first step is skipped, so the checkpoint has the values of the beginning -------
sed 's/^model net = Net()/& { load("whole", strip="net.", unused=["key.**", "still.**", "hyper.**"]) }/' high.amp >loaded.amp
passes "a loaded original" train --steps 1 --data-dir . --save loaded loaded.amp
holds "gives its values to its copies" 'equal("net", other=1) and equal("key") and equal("still")' loaded whole
finish
