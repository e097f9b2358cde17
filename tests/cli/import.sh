#!/usr/bin/env bash
# amp import: command lines, what jobs cannot express, overwriting, equal bytes. tests/onnx/ compares results.
#   import.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
fixtures=$(cd "$(dirname "$0")/../onnx/nets" && pwd)
cd "$work" || exit 1
cp "$fixtures/fixed.onnx" "$fixtures/blocks.onnx" .

# ---- command lines ------------------------------------------------------------------------------------
refuses "no model" 2 'expected one model' "$amp" import -o net.amp
refuses "two models" 2 'expected one model' "$amp" import fixed.onnx blocks.onnx -o net.amp
refuses "no job" 2 'expected -o FILE' "$amp" import fixed.onnx
refuses "no such model" 3 'none.onnx' "$amp" import none.onnx -o net.amp
passes "a model" "$amp" import blocks.onnx -o net.amp
grep -q '^net.amp: [0-9]* nodes, opset 23$' out || failed "the report names the nodes"
cp net.amp first.amp
cp net.safetensors first.safetensors
passes "a model again, quietly" "$amp" import -q --force blocks.onnx -o net.amp
[ ! -s out ] || failed "--quiet prints"
cmp -s net.amp first.amp && cmp -s net.safetensors first.safetensors || failed "two imports differ"
passes "weights elsewhere" "$amp" import blocks.onnx -o other.amp --weights some.safetensors
grep -q 'load("some.safetensors")' other.amp || failed "the job loads other weights"
mkdir sub
passes "weights in a folder below" "$amp" import blocks.onnx -o below.amp --weights sub/w.safetensors
grep -q 'load("sub/w.safetensors")' below.amp || failed "the job loads other weights"
passes "a job in a folder below" "$amp" import blocks.onnx -o sub/above.amp --weights w.safetensors
grep -q "load(\"$(realpath .)/w.safetensors\")" sub/above.amp || failed "the job loads other weights"
refuses "one name for both" 2 'two names' "$amp" import --force blocks.onnx -o one.amp --weights one.amp
passes "a fixed batch" "$amp" import fixed.onnx -o fixed.amp
grep -q 'exported with batches of 2' err || failed "no warning about the fixed batch"

# ---- what trains, sizes -------------------------------------------------------------------------------
cp "$fixtures/other.onnx" "$fixtures/open.onnx" "$fixtures/rows.onnx" .
passes "constants" "$amp" import other.onnx -o named.amp
grep -q '^named.safetensors: 5 tensors train: .*; 2 constants: const_fold_opt__12, Const:0$' out || failed "what trains is not named"
passes "a constant that trains" "$amp" import --force other.onnx -o named.amp --train const_fold_opt__12
grep -q 'const_fold_opt__12 = Parameter(\[\])' named.amp || failed "--train did nothing"
refuses "no such tensor" 2 '--train none: the model has no tensor of floats' "$amp" import --force other.onnx -o named.amp --train none
refuses "no such parameter" 1 'pattern "none" matches no parameter' "$amp" import --force other.onnx -o named.amp --freeze none
passes "open sizes" "$amp" import open.onnx -o open.amp
grep -q '^const H = 224$' open.amp || failed "no guessed size"
passes "sizes of an input" "$amp" import --force open.onnx -o open.amp --size x=3,27,36 --size z=4
grep -q '^const W = 36$' open.amp || failed "--size did nothing"
refuses "sizes that do not fit the net" 1 'does not fit images of 1x1' "$amp" import --force open.onnx -o open.amp --size x=3,8,8
grep -q 'change --size' err || failed "no cure for sizes that do not fit"
refuses "another fixed size" 2 'fixes the size of axis 1 to 3' "$amp" import --force open.onnx -o open.amp --size x=4,8,8
refuses "too few sizes" 2 'has 3 axes after the first one, not 2' "$amp" import --force open.onnx -o open.amp --size x=3,8
refuses "no such input" 2 'no input of this name; the first one is x' "$amp" import --force open.onnx -o open.amp --size y=3,8,8
refuses "no size" 2 'expected sizes' "$amp" import --force open.onnx -o open.amp --size x=3,0,8
passes "a train block that does not fit" "$amp" import rows.onnx -o rows.amp
grep -q 'the job has none: cross_entropy' err && ! grep -q '^train' rows.amp || failed "a train block that does not compile"

# ---- overwriting --------------------------------------------------------------------------------------
cp blocks.onnx before.onnx
refuses "the model as the job" 2 'blocks.onnx' "$amp" import --force blocks.onnx -o blocks.onnx
refuses "the model as the weights" 2 'blocks.onnx' "$amp" import --force blocks.onnx -o new.amp --weights blocks.onnx
cmp -s blocks.onnx before.onnx || failed "the model was overwritten"
refuses "a job that may have been edited" 3 'net.amp' "$amp" import blocks.onnx -o net.amp
echo "a letter" >letter.safetensors
refuses "weights over a letter" 3 'letter.safetensors' "$amp" import blocks.onnx -o letter.amp
[ "$(cat letter.safetensors)" = "a letter" ] && [ ! -e letter.amp ] || failed "a refused import wrote"
passes "weights over a letter by force" "$amp" import --force blocks.onnx -o letter.amp
python3 - <<'PYTHON'
# y = Gemm(x, w), with the 16 numbers of w in the file ext.safetensors
open("beside.onnx", "wb").write(
    b'\x08\x08:\x94\x01\n\x1e\n\x01x\n\x01w\x12\x01y"\x04Gemm*\r\n\x06transB\x18\x01\xa0\x01\x02\x12\x01g*C\x08\x04\x08\x04\x10\x01B\x01w'
    b'j\x1b\n\x08location\x12\x0fext.safetensorsj\x0b\n\x06offset\x12\x010j\x0c\n\x06length\x12\x0264p\x01Z\x14\n\x01x\x12\x0f'
    b'\n\r\x08\x01\x12\t\n\x03\x12\x01N\n\x02\x08\x04b\x14\n\x01y\x12\x0f\n\r\x08\x01\x12\t\n\x03\x12\x01N\n\x02\x08\x04B\x04\n\x00\x10\x14')
PYTHON
cp net.safetensors ext.safetensors
refuses "tensors of the model as the weights" 2 'reads it, as weights' "$amp" import beside.onnx -o ext.amp
refuses "them as the weights, forced" 2 'reads it, as weights' "$amp" import --force beside.onnx -o e.amp --weights ext.safetensors
refuses "them as the job, forced" 2 'reads it, as weights' "$amp" import --force beside.onnx -o ext.safetensors --weights e.safetensors
cmp -s net.safetensors ext.safetensors || failed "the model's tensors were overwritten"
[ ! -e e.safetensors ] && [ ! -e ext.amp ] || failed "a refused import wrote"
passes "other names" "$amp" import beside.onnx -o e.amp

# ---- what a job cannot express ------------------------------------------------------------------------
python3 - <<'PYTHON'
data = open("fixed.onnx", "rb").read()
open("odd.onnx", "wb").write(data.replace(b"Relu", b"Rely"))
PYTHON
refuses "an unknown op" 1 'Rely: 1 node' "$amp" import odd.onnx -o odd.amp
[ ! -e odd.amp ] && [ ! -e odd.safetensors ] || failed "a refused import wrote"
[ "$failures" -eq 0 ]
