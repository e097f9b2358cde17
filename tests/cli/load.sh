#!/usr/bin/env bash
# `load` in a model: names, shapes and types in files of other programs; the messages about what
# does not fit; files in shards; every way to start a run reads the files.
#   load.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
weights() { "$source_dir/tests/cli/weights.py" "$@"; }
cd "$work" || exit 1

job() { # job CLAUSES: two blocks and a head
  cat >job.amp <<EOF
data points() { return synthetic(64, [4]), synthetic(64, [], dtype=i64, low=0, high=3) }
module Net {
  block = [Sequential(Linear(4, 8), BatchNorm1d(8), ReLU(), Linear(8, 4)) for i in range(2)]
  head = Linear(4, 3)
  def forward(x) { return head(block[1](block[0](x))) }
}
model net = Net() { $1 }
optimizer opt = SGD(net, lr=0.0)
train x, y in points() with batch=16 { minimize cross_entropy(net(x), y) with opt }
eval x, y in points() with batch=16 { metric acc = accuracy(net(x), y) }
infer first() { return net.block[0][0].weight }
EOF
}
blocks() { # blocks PREFIX GAMMA DTYPE SHAPE: prints the tensors of both blocks
  for i in 0 1; do
    echo "$1block.$i.0.weight $3 $4 #0.125
$1block.$i.0.bias $3 [8] 0.5
$1block.$i.1.$2 $3 [8] 1
$1block.$i.1.bias $3 [8] 0
$1block.$i.1.running_mean $3 [8] 0.25
$1block.$i.1.running_var $3 [8] 4
$1block.$i.1.num_batches_tracked I32 [] 7
$1block.$i.3.weight $3 [4,8] #-0.125
$1block.$i.3.bias $3 [4] 1"
  done
}
head_of() { echo "head.weight F32 [$1,4] #0.5"; echo "head.bias F32 [$1] 0"; }
run() { timeout 60 "$amp" train --device cpu job.amp "$@"; }
tensor() { # tensor FILE NAME: prints its numbers
  python3 - "$@" <<'PY'
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
e = json.loads(b[8:8 + n])[sys.argv[2]]
s, t = e["data_offsets"]
code = {"F32": "f", "I64": "q"}[e["dtype"]]
print(*struct.unpack(f"<{(t - s) // struct.calcsize(code)}{code}", b[8 + n + s:8 + n + t]))
PY
}
is() { # is NAME WANTED FILE TENSOR: the tensor begins with these numbers
  local got
  got=$(tensor "$3" "$4")
  case "$got" in "$2"*) echo "ok: $1" ;; *) failed "$1: $4 is $got" ;; esac
}

# ---- files that fit -------------------------------------------------------------------------------------
{ blocks "" weight F32 "[8,4]"; head_of 3; } | weights plain.safetensors
job 'load("plain.safetensors")'
passes "all names as they are" run --save plain.out
is "a weight" "0.0 0.125 0.25" plain.out block.0.0.weight
is "a buffer of integers, from i32" "11" plain.out block.1.1.num_batches_tracked # 4 steps add to the 7 of the file
grep -q 'loaded 20 of 20 parameters and buffers of net from plain.safetensors, 2 of them converted' err ||
  failed "no line says what was loaded"
for type in F16 BF16 F64; do
  { blocks "" weight $type "[8,4]"; head_of 3; } | weights plain.safetensors
  passes "from $type" run --save $type.out
  same "$type has the numbers of f32, which it holds" plain.out $type.out
done

{ blocks module. gamma F32 "[4,8]"; head_of 1000; echo "module.old.x I8 [3] 1"; } | weights other.safetensors
cure='load("other.safetensors", strip="module.", rename=[["block.*.*.gamma", "block.*.*.weight"]],
  transpose="block.*.0.weight", missing="head.**", unused=["head.**", "old"])'
job "$cure"
passes "another program's names and order" run --save other.out
is "transposed" "0.0 1.0 2.0 3.0 0.125" other.out block.0.0.weight
is "renamed" "1.0 1.0" other.out block.1.1.weight
passes "an eval without a checkpoint" "$amp" eval --device cpu job.amp
grep -q 'eval acc' out || failed "eval does not print its metric"
passes "emitted" "$ampc" --target=cpu -o job.c job.amp
sh -c "$("$ampc" --target=cpu --build-line -o job.c job.amp)" 2>err || failed "emitted: build line"
passes "emitted: runs" ./job --save emitted.out
same "emitted and amp load the same" other.out emitted.out
passes "emitted: an eval without a checkpoint" ./job --eval
rm other.safetensors
passes "--resume needs no other file" run --resume plain.out --steps 4 --save resumed.out
same "--resume beats load" plain.out resumed.out
passes "ampc needs no file" "$ampc" --check job.amp
refuses "a run does" 3 'cannot open other.safetensors' run
job 'load("plain.safetensors")'
mkdir -p sub && mv job.amp sub/ && { blocks "" weight F32 "[8,4]"; head_of 3; } | weights sub/plain.safetensors
passes "paths begin at the job" "$amp" train --device cpu sub/job.amp
mv sub/job.amp .
passes "or in --data-dir" run --data-dir sub

# ---- several files, several models, ties -----------------------------------------------------------
blocks "" weight F32 "[8,4]" | weights blocks.safetensors
head_of 3 | weights head.safetensors
job 'load("blocks.safetensors"); load("head.safetensors")'
passes "two clauses" run --save two.out
same "two files and one give the same" plain.out two.out
{ echo "block.0.0.bias F32 [8] 9"; head_of 3; } | weights head.safetensors
passes "the last clause wins" run --save last.out
is "the last clause wins" "9.0 9.0" last.out block.0.0.bias
blocks "" weight F32 "[8,4]" | weights m-00001-of-00002.safetensors
head_of 3 | weights m-00002-of-00002.safetensors
index() { python3 - "$@" >model.safetensors.index.json <<'PY'
import json, sys
names = ["weight", "bias"]
m = {f"head.{n}": sys.argv[2] for n in names}
for i in range(2):
    m |= {f"block.{i}.{n}": sys.argv[1] for n in ("0.weight 0.bias 1.weight 1.bias 1.running_mean "
          "1.running_var 1.num_batches_tracked 3.weight 3.bias").split()}
print(json.dumps({"metadata": {"total_size": 1}, "weight_map": m}))
PY
}
index m-00001-of-00002.safetensors m-00002-of-00002.safetensors
job 'load("model.safetensors.index.json")'
passes "an index of shards" run --save index.out
same "shards and one file give the same" plain.out index.out
index m-00001-of-00002.safetensors m-00001-of-00002.safetensors
refuses "an index with a wrong shard" 3 'lacks tensor head.weight, although model.safetensors.index.json lists it there' run
index m-00001-of-00002.safetensors ../m-00002-of-00002.safetensors
refuses "a shard elsewhere" 3 'a shard must be a file name without a folder; see ' run
index m-00001-of-00002.safetensors gone.safetensors
refuses "a shard that is not there" 3 'cannot open gone.safetensors' run
echo '[1]' >model.safetensors.index.json
refuses "a file that is not an index" 3 'it has no "weight_map"' run
echo '{"weight_map": 1' >model.safetensors.index.json
refuses "broken JSON" 3 'is no index of safetensors files' run
job 'load("plain.out")'
passes "a checkpoint of our own" run --save own.out
is "its weights" "0.0 0.125" own.out block.0.0.weight

cat >tied.amp <<'EOF'
module Net {
  wte = Linear(4, 3, bias=false); head = Linear(4, 3, bias=false)
  head.weight = wte.weight
}
model a = Net() { load("a.safetensors") }
model b = Net() { load("b.safetensors", strip="b.") }
data points() { return synthetic(4, [4]) }
eval x in points() with batch=4 { metric s = mean(a.head(x)) + mean(b.wte(x)) }
EOF
echo "wte.weight F32 [3,4] #1" | weights a.safetensors
echo "b.head.weight F32 [3,4] #2" | weights b.safetensors
passes "ties: either name" "$amp" eval --device cpu tied.amp
grep -q 'loaded 1 of 1 parameters and buffers of b' err || failed "each model has its own files"
printf 'wte.weight F32 [3,4] #1\nhead.weight F32 [3,4] #1\n' | weights a.safetensors
passes "ties: both names" "$amp" eval --device cpu tied.amp
printf 'wte.weight F32 [3,4] #1\nhead.weight F32 [3,4] #2\n' | weights a.safetensors
refuses "ties: two values" 3 'wte.weight and head.weight differ, but are one tensor in `a`' "$amp" eval --device cpu tied.amp
printf 'wte.weight F32 [3,4] #1\nhead.weight F16 [3,4] #1\n' | weights a.safetensors
refuses "ties: two types" 3 'differ, but are one tensor' "$amp" eval --device cpu tied.amp

# ---- files that do not fit -----------------------------------------------------------------------------
{ blocks module. gamma F32 "[4,8]"; head_of 1000; echo "module.old.x I8 [3] 1"; } | weights other.safetensors
job 'load("other.safetensors")'
refuses "no name fits" 3 'strip="module\."' run
grep -q '^E502: the file lacks 18 of 20 parameters and buffers: block.0.0.weight' err || failed "E502: the missing names are not listed"
job 'load("other.safetensors", strip="module.")'
refuses "names of another program" 3 'E502: the file lacks 2 of 20 parameters and buffers: block.0.1.weight, block.1.1.weight' run
for line in '^  to keep their initial values, write: missing="block.\*.1.weight"$' \
  '^E503: 2 have another shape: module.block.0.0.weight is \[4, 8\] in the file, \[8, 4\] in the model, ' \
  'transpose="block.\*.0.weight"$' \
  '^E503: 2 have another shape: head.weight is \[1000, 4\] in the file, \[3, 4\] in the model, head.bias is ' \
  '^  to train them from initial values, write: missing="head.\*\*", unused="head.\*\*"$' \
  '^E502: 3 of the 21 tensors in the file match no parameter: block.0.1.gamma, block.1.1.gamma, old.x$' \
  '^  to ignore them, write: unused=\["block.\*.\*.gamma", "old.\*\*"\]$'; do
  grep -q "$line" err || failed "the message lacks: $line"
done
job "$(echo "$cure" | sed 's/\["head.\*\*", "old"\]/["head.**", "odl"]/')"
refuses "a pattern of unused that matches nothing" 3 'E501: "odl" of `unused` matches none of the tensors in the file' run
job "$(echo "$cure" | sed 's/rename=\[/rename=[["a.*", "b.*"], /')"
refuses "a pattern of rename that matches nothing" 3 'E501: "a.\*" of `rename` matches none of the tensors in the file' run
job "$(echo "$cure" | sed 's/strip="module."/strip="modul."/')"
refuses "a prefix that is not there" 3 "E501: \`strip\`: no name in the file begins with \"modul.\"" run
job 'load("plain.safetensors", rename=["block.0.**", "block.1.**"])'
refuses "two tensors of one name" 3 'block.0.0.weight and block.1.0.weight both load into block.1.0.weight' run
job 'load("plain.safetensors", rename=["**.bias", "**.weight"])'
refuses "two tensors of one name, again" 3 'both load into' run
job 'load("inner.safetensors")'
{ blocks "" weight F32 "[8,4]"; head_of 3; } | sed 's/^block\.//' | weights inner.safetensors
refuses "names without what the model has before them" 3 'rename=\[\["\*\*", "block.\*\*"\]\]' run
{ blocks "" weight F32 "[8,4]" | sed 's/num_batches_tracked I32/num_batches_tracked F32/'; head_of 3; } | weights inner.safetensors
passes "whole floats for integers" run
{ blocks "" weight F32 "[8,4]" | sed 's/num_batches_tracked I32 \[\] .*/num_batches_tracked F32 [] 1.5/'; head_of 3; } | weights inner.safetensors
refuses "floats for integers" 3 'block.0.1.num_batches_tracked is F32 in the file, i64 in the model' run
{ blocks "" weight F32 "[8,4]"; echo "head.weight I64 [3,4] 1"; echo "head.bias BOOL [3] 1"; } | weights inner.safetensors
refuses "integers for floats" 3 'head.weight is I64 in the file, f32 in the model' run
{ blocks "" weight F32 "[8,4]"; echo "head.weight F64 [3,4] 1e300 1"; echo "head.bias F32 [3] 1e5 inf 0"; } | weights inner.safetensors
"$amp" eval --device cpu job.amp >out 2>err
grep -q 'head.weight: 6 of 12 values of the file are beyond f32 and became infinite' err || failed "values beyond f32 are counted"
grep -q 'head.bias: 1 of 3 values of the file are not finite' err || failed "values that are not finite are counted"
sed -i 's/^infer.*/precision f16/' job.amp
"$amp" eval --device cpu -q job.amp >out 2>err
grep -q 'head.bias: 1 of 3 values are beyond f16 (65504)' err || failed "values beyond f16 are counted, with -q too"
{ blocks "" weight F32 "[8,4]"; echo "head.weight F64 [3,4] 1 2.9e-8 1e-40 -3e-8 3e-8 0"; echo "head.bias F32 [3] 3.4e38 1e-41 1"; } | weights inner.safetensors
"$amp" eval --device cpu -q job.amp >out 2>err
grep -q 'head.weight: 4 of 12 values are below f16 (5.96e-8): 0 wherever the job reads them as f16' err || failed "values that vanish in f16 are counted"
grep -q 'head.bias: 1 of 3 values are beyond f16' err || failed "a value beyond f16 and bf16"
"$amp" eval --device cpu -q --set precision=bf16 job.amp >out 2>err
grep -q 'head.weight: 2 of 12 values are below bf16\|head.weight:.*f16 (65504)' err && failed "1e-40 is a number of bf16"
grep -q 'head.bias: 1 of 3 values are beyond bf16 (3.38953e38): infinite' err || failed "values beyond bf16 are counted"
grep -q 'head.bias: 1 of 3 values are below bf16 (9.2e-41): 0' err || failed "values that vanish in bf16 are counted"
sed -i 's/^precision f16/precision f32/' job.amp
"$amp" eval --device cpu -q job.amp >out 2>err
[ -s err ] && failed "nothing is wrong with them in f32"

# ---- files of other formats, damaged files ---------------------------------------------------------------------------
job 'load("bad.safetensors")'
printf 'PK\003\004 an archive' >bad.safetensors
refuses "an archive" 3 'bad.safetensors is truncated or damaged: it has no directory at its end' run
printf '\200\002}q' >bad.safetensors
refuses "a pickle" 3 'bad.safetensors is no file of torch.save, but another pickle' run
head -c 700 plain.safetensors >bad.safetensors
refuses "cut off" 3 'bad.safetensors is damaged' run
python3 - <<'PY'
import json, struct
def write(name, header, n):
    t = json.dumps(header).encode()
    open(name, "wb").write(struct.pack("<Q", len(t)) + t + bytes(n))
entry = lambda a, b: {"dtype": "F32", "shape": [(b - a) // 4], "data_offsets": [a, b]}
write("overlap", {"a": entry(0, 8), "b": entry(4, 12)}, 12)
write("huge", {"a": entry(0, 1 << 60)}, 8)
write("gap", {"a": entry(0, 4), "b": entry(8, 12)}, 12)
write("shape", {"a": {"dtype": "F3", "shape": [-1], "data_offsets": [0, 4]}}, 4)
b = open("plain.safetensors", "rb").read()
n = struct.unpack("<Q", b[:8])[0]
header, data = json.loads(b[8:8 + n]), b[8 + n:] + bytes(4)
odd = {**header, "__metadata__": None, "scale": {"dtype": "F3", "shape": [9], "data_offsets": [len(data) - 4, len(data)]}}
text = json.dumps(odd).encode()
for name, text in (("odd.safetensors", text), ("twice", text.replace(b'"scale"', b'"head.bias"'))):
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
job 'load("odd.safetensors", unused="scale")'
passes "a type that ampc lacks, and no metadata" run
job 'load("odd.safetensors", unused="head.bias", rename=["scale", "head.bias"])'
refuses "a use of that type" 3 'scale is F3 in the file, f32 in the model' run
job 'load("twice")'
refuses "a key twice" 3 'its header is not the JSON of safetensors: duplicate object key near .*head.bias' run
job 'load("bad.safetensors")'
for bad in overlap huge gap shape; do
  mv $bad bad.safetensors
  refuses "$bad" 3 'bad.safetensors is .*damaged' run
done
cp plain.out bad.safetensors && printf 'x' | dd of=bad.safetensors bs=1 seek=3000 conv=notrunc 2>/dev/null
refuses "a checkpoint with a changed bit" 3 'bad.safetensors is damaged' run

# ---- the prompt ------------------------------------------------------------------------------------
job 'load("plain.safetensors")'
printf ':train 1\n:show net.block[0][0].bias\n' | "$amp" repl --device cpu job.amp >out 2>err
grep -q 'loaded 20 of 20' out && grep -q '^\[0.5000, 0.5000' out || failed "the prompt loads"
[ $failures -eq 0 ]
