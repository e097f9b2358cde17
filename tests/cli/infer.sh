#!/usr/bin/env bash
# amp infer: choice of the block, sources of its arguments, partial batches, results as text, NPY
# and classes, errors.
#   infer.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
infer() { timeout 60 "$amp" infer --device cpu "$@"; }
prints() { # prints NAME TEXT COMMAND...: exactly TEXT on stdout
  local name=$1 text=$2
  shift 2
  passes "$name" "$@"
  [ "$(cat out)" = "$text" ] || failed "$name: printed '$(cat out)' instead of '$text'"
}
ubyte() { # ubyte FILE SHAPE..: 0, 1, 2, .. in an IDX file
  python3 - "$@" <<'PY'
import struct, sys
dims = [int(d) for d in sys.argv[2:]]
n = 1
for d in dims:
    n *= d
open(sys.argv[1], "wb").write(struct.pack(f">4B{len(dims)}I", 0, 0, 8, len(dims), *dims) + bytes(i % 256 for i in range(n)))
PY
}
npy() { # npy FILE: prints its type, shape and numbers
  python3 - "$@" <<'PY'
import ast, struct, sys
b = open(sys.argv[1], "rb").read()
assert b[:8] == b"\x93NUMPY\x01\0"
n = 10 + struct.unpack("<H", b[8:10])[0]
head = ast.literal_eval(b[10:n].decode())
assert n % 64 == 0 and not head["fortran_order"]
code = {"<f4": "f", "<f2": "e", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "?"}[head["descr"]]
print(head["descr"], head["shape"], *struct.unpack(f"<{(len(b) - n) // struct.calcsize(code)}{code}", b[n:]))
PY
}

cat >job.amp <<'EOF'
const N = 4; const SHIFT = 0.0
data five(n: int) { x = idx("x-ubyte").to(f32); return x, idx("y-ubyte").to(i64) }
data lone() { return [idx("x-ubyte").to(f32)] }
data gone() { return idx("gone-ubyte") }
module Net { fc = Linear(3, 2); def forward(x) { return fc(x) + SHIFT } }
model net = Net()
optimizer opt = SGD(net, lr=0.1)
train x, y in five(1) with batch=2 { minimize mean(net(x)) with opt }
eval x in gone() { metric m = mean(net(x.to(f32))) }
infer scores(x: u8[N, 3]) -> f32[N, 2] { return net(x.to(f32)) }
infer both(x: f32[N, 3], y: i64[N]) { return x.sum(1).to(f16), y * 10000000000, x > 4.0, (x * 2.0).to(bf16) }
infer whole(x: u8[N, 3]) { return x.to(f32).sum() }
infer constant() { return net.fc.bias, 3.0 * net.fc.bias }
EOF
ubyte x-ubyte 5 3
ubyte y-ubyte 5
ubyte four-ubyte 4 3
printf 'fc.weight F32 [2,3] 1 0 0 0 0 2\nfc.bias F32 [2] 0.5 -1\n' | "$source_dir/tests/cli/weights.py" w.safetensors
run="infer -q --weights w.safetensors job.amp"

# ---- places of grid_sample that are not finite: as PyTorch, which clips them, except NaN for "zeros" ----------
cat >places.amp <<'EOF'
def at(x, mode, padding) {
  places = (x.view(1, 1, 1, 1) * tensor([inf, -inf, nan, 1e30])).view(1, 4, 1, 1).expand(1, 4, 1, 2)
  return grid_sample(arange(4, dtype=f32).view(1, 1, 2, 2) + 1.0, places, mode, padding, false).view(1, 4)
}
infer far(x: f32[1]) {
  return at(x, "bilinear", "border"), at(x, "nearest", "border"), at(x, "bilinear", "reflection")[:, :3],
      at(x, "bilinear", "zeros"), at(x, "nearest", "zeros")
}
EOF
python3 -c "import struct; head = str({'descr': '<f4', 'fortran_order': False, 'shape': (1,)}).ljust(117) + chr(10); open('one.npy', 'wb').write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', 118) + head.encode() + struct.pack('<f', 1.0))"
prints "places" $'far.0: 4 1 1 4\nfar.1: 4 1 1 4\nfar.2: 1 1 1\nfar.3: nan nan nan 0\nfar.4: 0 0 0 0' infer -q places.amp --input one.npy

# ---- results ----------------------------------------------------------------------------------
want=$'0.5 3\n3.5 9\n6.5 15\n9.5 21\n12.5 27'
prints "text; the last batch is not full; train data need not be there" "$want" $run --block scores --input x-ubyte
prints "NAME=FILE" "$want" $run --block scores --input x=x-ubyte
prints "a smaller batch" "$want" $run --block scores --input x-ubyte -D N=2
prints "a larger one" "$want" $run --block scores --input x-ubyte -D N=50
prints "a const of the job" "1.5 4" $run --block scores --data 'idx("x-ubyte", part=[0.0, 0.2])' -D SHIFT=1.0
prints "a source as data" "$want" $run --block scores --data 'idx("x-ubyte")'
prints "a part of it" "$(echo "$want" | head -2)" $run --block scores --data 'idx("x-ubyte", part=[0.0, 0.4])'
passes "a data block of the job" $run --block both --data 'five(1)'
[ "$(head -8 out)" = "both.0: 3
both.1: 0
both.2: 0 0 0
both.3: 0 2 4
both.0: 12
both.1: 10000000000
both.2: 0 0 1
both.3: 6 8 10" ] || failed "several results: $(head -8 out)"
prints "no arguments" $'constant.0: 0.5 -1\nconstant.1: 1.5 -3' $run --block constant
prints "a result of the whole batch" 66 $run --block whole --input four-ubyte
prints "--top" "$(printf 'sample 0\n  3.000000  1\nsample 1\n  9.000000  1\nsample 2\n  15.000000  1\nsample 3\n  21.000000  1\nsample 4\n  27.000000  1')" \
  $run --block scores --input x-ubyte --top 1
printf 'tabby cat\nflower \033[31m' >names.txt
prints "--classes" "$(printf 'sample 0\n  3.000000  1  flower \\x1b[31m\n  0.500000  0  tabby cat')" \
  $run --block scores --data 'idx("x-ubyte", part=[0.0, 0.2])' --classes names.txt
prints "--output prints nothing" "" $run --block scores --input x-ubyte --output s.npy
[ "$(npy s.npy)" = "<f4 (5, 2) 0.5 3.0 3.5 9.0 6.5 15.0 9.5 21.0 12.5 27.0" ] || failed "NPY: $(npy s.npy)"
passes "a declared type under another precision" $run --set precision=f16 --block scores --input x-ubyte --output s.npy
[ "$(npy s.npy)" = "<f4 (5, 2) 0.5 3.0 3.5 9.0 6.5 15.0 9.5 21.0 12.5 27.0" ] || failed "declared f32 under f16: $(npy s.npy)"
sed -i 's/^infer scores.*-> f32/infer scores(x: u8[N, 3]) -> f16/;' job.amp
passes "a declared type under f32" $run --block scores --input x-ubyte --output s.npy
[ "$(npy s.npy)" = "<f2 (5, 2) 0.5 3.0 3.5 9.0 6.5 15.0 9.5 21.0 12.5 27.0" ] || failed "declared f16 under f32: $(npy s.npy)"
sed -i 's/-> f16/-> f32/' job.amp
passes "--output of several" $run --block both --data 'five(1)' --output both.0=0.npy --output both.1=1.npy --output both.2=2.npy --output both.3=3.npy
[ "$(npy 0.npy)" = "<f2 (5,) 3.0 12.0 21.0 30.0 39.0" ] || failed "NPY of f16: $(npy 0.npy)"
[ "$(npy 1.npy)" = "<i8 (5,) 0 10000000000 20000000000 30000000000 40000000000" ] || failed "NPY of i64: $(npy 1.npy)"
case "$(npy 2.npy)" in "|b1 (5, 3) False False False False False True "*) ;; *) failed "NPY of bool: $(npy 2.npy)" ;; esac
case "$(npy 3.npy)" in "<f4 (5, 3) 0.0 2.0 4.0 6.0 "*) ;; *) failed "NPY of bf16: $(npy 3.npy)" ;; esac
passes "the numbers of a whole result" $run --block whole --input four-ubyte --output whole.npy
[ "$(npy whole.npy)" = "<f4 () 66.0" ] || failed "NPY of a number: $(npy whole.npy)"
sed -i '/^eval/d' job.amp
passes "a training" "$amp" train -q --device cpu job.amp --save c.safetensors
passes "its checkpoint has weights" infer --weights c.safetensors job.amp --block scores --input x-ubyte
grep -q 'loaded 2 of 2 parameters' err || failed "no line says what was loaded"
sed -i 's/^model net.*/model net = Net() { load("w.safetensors") }/' job.amp
prints "load in the model" "$want" infer -q job.amp --block scores --input x-ubyte
mkdir -p elsewhere
prints "paths of --input begin where it is typed" "$want" bash -c "cd elsewhere && '$amp' infer -q --device cpu ../job.amp --block scores --input ../x-ubyte"
for precision in f16 bf16; do
  passes "in $precision" infer -q job.amp --block scores --input x-ubyte --set precision=$precision
done

# ---- weight averages, which eval and infer blocks read -------------------------------------------
cat >ema.amp <<'EOF'
model net = Linear(3, 1) { init("**", zeros_()) }
data ones3() { return synthetic(8, [3], dtype=i32, low=1, high=2) }
optimizer opt = SGD(net, lr=1.0, ema=0.5)
train x in ones3() with batch=8, epochs=2 { minimize mean(net(x.to(f32))) with opt }
eval x in ones3() with batch=8 { metric m = mean(net(x.to(f32))) }
infer one(x: i32[1, 3]) { return net(x.to(f32)) }
EOF
passes "a training with ema" "$amp" train -q --device cpu --save ema.safetensors ema.amp
average=$(sed -n 's/^eval m: //p' out)
passes "infer reads averages" infer -q --weights ema.safetensors --data 'synthetic(1, [3], dtype=i32, low=1, high=2)' ema.amp
python3 -c "import sys; a, b = map(float, sys.argv[1:]); assert abs(a - b) < 1e-4 and abs(a + 8) > 0.5, (a, b)" "$average" "$(cat out)" ||
  failed "eval says $average, infer $(cat out)"
printf ':train 2\n:infer one ones3()\n' | "$amp" repl --device cpu ema.amp >out 2>err
tail -1 out | grep -q "^$(python3 -c "print('%.9g' % $average)" | cut -c1-5)" || failed "the prompt: $(tail -1 out) instead of $average"

# ---- images: compared with torchvision's results in tests/data/pictures ----------------------------------
pictures=$source_dir/tests/data/pictures
cat >show.amp <<'EOF'
const N = 3
infer show(x: u8[N, 3, 16, 16]) { return x }
infer colours(x: u8[N, 3, 16, 16]) { return x.to(f32).mean([2, 3]) }
infer two(x: u8[N, 3, 16, 16]) { return x.to(f32).mean([2, 3]), x.to(f32).mean([1, 2, 3]) }
infer means(x: f32[N, 3, 16, 16]) { return x.mean([1, 2, 3]) }
EOF
near() { # near NAME FILE SAMPLE..: the rows of the file are these of expected.npy, within 1
  python3 - "${expected:-$pictures/expected.npy}" "${@:2}" <<'PY' && echo "ok: $1" || failed "$1"
import struct, sys
rows = []
for path in sys.argv[1:3]:
    b = open(path, "rb").read()
    n = 10 + struct.unpack("<H", b[8:10])[0]
    rows.append([b[i:i + 768] for i in range(n, len(b), 768)])
want = [rows[0][int(i)] for i in sys.argv[3:]]
assert len(rows[1]) == len(want)
assert all(abs(x - y) <= 1 for a, b in zip(rows[1], want) for x, y in zip(a, b))
PY
}
passes "a PNG" infer -q --block show --input "$pictures/dog/clear.png" --output one.npy show.amp
near "a PNG" one.npy 1
passes "a JPEG beside" bash -c "cd '$pictures/cat' && '$amp' infer -q --device cpu --block show --input ink.jpeg --output '$work/ink.npy' '$work/show.amp'"
near "a JPEG beside" ink.npy 3
passes "a folder of pictures" infer -q --block show --input "$pictures/dog" --output dog.npy show.amp
near "a folder of pictures" dog.npy 1 4 6
passes "a picture of a camera that was turned" infer -q --block show --input "$source_dir/tests/data/turned/jpg/6.jpg" --output six.npy show.amp
expected=$source_dir/tests/data/turned/jpg/expected.npy near "a picture of a camera that was turned" six.npy 5
passes "a folder of classes" infer -q --block show --input "$pictures" --output all.npy show.amp
[ "$(npy all.npy | cut -d')' -f1)" = "|u1 (8, 3, 16, 16" ] || failed "a folder of classes"

prints "a picture is named" "$(printf 'sample 0: clear.png\n  135.628906  0')" infer -q --block colours --top 1 --input "$pictures/dog/clear.png" show.amp
passes "pictures of classes are named" infer -q --block colours --input "$pictures" --names all.txt show.amp
order='cat/colour.jpg dog/clear.png cat/grey.jpg cat/ink.jpeg dog/one_bit.png cat/large.jpg dog/palette.png cat/progressive.JPG'
[ "$(cut -d: -f1 out | xargs)" = "$order" ] || failed "text names the pictures"
[ "$(xargs <all.txt)" = "$order" ] || failed "--names: $(cat all.txt)"
passes "several results" infer -q --block two --input "$pictures/dog" show.amp
[ "$(cut -d' ' -f1-2 out | xargs)" = "clear.png: two.0: clear.png: two.1: one_bit.png: two.0: one_bit.png: two.1: palette.png: two.0: palette.png: two.1:" ] ||
  failed "several results of a picture: $(cat out)"
mkdir -p some/a
cp "$pictures/dog/clear.png" some/a/0.png
head -c 90 "$pictures/dog/clear.png" >some/a/1.png
cp "$pictures/dog/palette.png" "some/a/$(printf '2\033.png')"
passes "one that stands in for another" infer -q --block colours --data 'images("some", 16, resize=18, corrupt="skip")' --names some.txt show.amp
[ "$(xargs -d '\n' <some.txt)" = 'a/0.png a/2\x1b.png a/2\x1b.png' ] || failed "one that stands in: $(cat some.txt)"
passes "threads" infer -q --block colours --input "$pictures" --data-threads 5 --names five.txt show.amp
cmp -s all.txt five.txt || failed "names by five threads"

# ---- errors -------------------------------------------------------------------------------
u() { refuses "$1" 2 "$2" "${@:3}"; }
u "which block" 'has several infer blocks: scores, both, whole, constant; say which with --block' infer job.amp
u "no such block" 'has no infer block score; it has scores, both, whole, constant' infer job.amp --block score
echo 'model m = Linear(2, 2)' >none.amp
u "no block at all" 'none.amp has no infer block' infer none.amp
u "no block at all, named" 'none.amp has no infer block' infer none.amp --block f
u "no input" 'infer `scores` takes x: x is missing: --input FILE, or --data CALL' infer job.amp --block scores
u "one of two inputs" 'infer `both` takes x, y: y is missing: --input y=FILE' infer job.amp --block both --input x=x-ubyte
u "an input without a name" 'infer `both` takes x, y: write NAME=FILE for each' infer job.amp --block both --input x-ubyte
u "a wrong name" 'infer `scores` has no argument z; it has x' infer job.amp --block scores --input z=x-ubyte
u "an input for a block without arguments" 'infer `constant` takes no arguments' infer job.amp --block constant --input x-ubyte
u "both ways" '--data cannot be combined with --input' infer job.amp --block scores --input x-ubyte --data 'five(1)'
u "no known suffix" 'unknown type of file' infer job.amp --block scores --input x.txt
u "a picture for floats" 'pictures are u8\[N, 3, height, width\]; `x` has another type' infer show.amp --block means --input "$pictures/dog/clear.png"
u "a folder for a row" 'pictures are u8\[N, 3, height, width\]; `x` has another type' infer job.amp --block scores --input "$pictures"
refuses "no such picture" 3 'gone.png cannot be opened' infer show.amp --block show --input gone.png
cp x-ubyte bad.png
refuses "no picture" 3 'bad.png is damaged' infer show.amp --block show --input bad.png
mkdir -p empty
refuses "an empty folder" 3 'empty' infer show.amp --block show --input empty
u "which array" '--input x.npz: the file has several arrays; name one: --input x.npz:KEY' infer job.amp --block scores --input x.npz
refuses "no such file" 3 'gone-ubyte' infer job.amp --block scores --input gone-ubyte
{ cat job.amp; printf 'opt.lr = 1.0\nopt.lr = 1.0\n'; } >twice.amp
refuses "a setting twice" 1 'opt.lr. is set twice' infer twice.amp --block scores --input x-ubyte
refuses "not that shape" 1 'E3.*declared u8\[4, 3\]|u8\[4\]' infer job.amp --block scores --input y-ubyte
refuses "not that type" 1 'E306.*`x` of infer `scores` is declared u8\[N, 3\], the value is f32\[4, 3\]' infer job.amp --block scores --data 'five(1)'
refuses "too few values" 1 'this returns 1 values, but infer `both` takes 2' infer job.amp --block both --data 'lone()'
refuses "no data" 1 'this reads no data source' infer job.amp --block scores --data 'zeros(4, 3)'
refuses "no call" 1 'error' infer job.amp --block scores --data 'x ='
refuses "no call, but an expression" 1 'call' infer job.amp --block scores --data 'model m = 3'
refuses "unknown" 1 'unknown name `fvie`' infer job.amp --block scores --data 'fvie(1)'
u "a whole result of several batches" 'whole has no axis of samples, so the data must fit in one batch of 4; these are 2 batches' infer job.amp --block whole --input x-ubyte
u "a whole result of a part of a batch" 'whole has no axis of samples, so it needs a full batch of 8; the data have 5' infer job.amp --block whole --input x-ubyte -D N=8
sed 's/{ load.*//' job.amp >noload.amp
u "no weights" 'the weights are missing' infer noload.amp --block scores --input x-ubyte
refuses "weights of another model" 3 'E502: the file lacks 1 of 2 parameters and buffers: fc.bias' bash -c "
  echo 'fc.weight F32 [2,3] 1' | '$source_dir/tests/cli/weights.py' other.safetensors
  '$amp' infer --device cpu job.amp --weights other.safetensors --block scores --input x-ubyte"
u "--top of several" '--top and --classes need one result' infer job.amp --block both --data 'five(1)' --top 3
u "--top of a number" '--top and --classes need one result' infer job.amp --block whole --input four-ubyte --top 3
refuses "names that are not as many" 3 'three.txt has 3 names, scores has 2 classes' bash -c "printf 'a\nb\nc\n' >three.txt
  '$amp' infer --device cpu job.amp --block scores --input x-ubyte --classes three.txt"
refuses "no names" 3 'gone.txt' infer job.amp --block scores --input x-ubyte --classes gone.txt
u "output of no result" 'there is no result both.7; the first is both.0' infer job.amp --block both --data 'five(1)' --output both.7=x.npy
u "output of which result" 'there are 4 results: write NAME=FILE, as both.0=x.npy' infer job.amp --block both --data 'five(1)' --output x.npy
u "output twice" 'scores is written to another file already' infer job.amp --block scores --input x-ubyte --output a.npy --output b.npy
u "output of another kind" 'expected a name that ends in .npy' infer job.amp --block scores --input x-ubyte --output a.txt
refuses "output nowhere" 3 'no/where.npy' infer job.amp --block scores --input x-ubyte --output no/where.npy
u "names of numbers" '--names x.txt: samples of this data have no names; only pictures have names' infer job.amp --block scores --input x-ubyte --names x.txt
u "names without samples" '--names x.txt: samples of this data have no names' infer job.amp --block constant --names x.txt
refuses "names nowhere" 3 'no/where.txt' infer show.amp --block show --input "$pictures" --names no/where.txt
for n in 0 129 -1 many; do
  u "$n threads" "--data-threads $n: expected a whole number from 1 to 128" infer show.amp --block show --input "$pictures" --data-threads $n
done
[ -e x.txt ] && failed "a failed run leaves names"
[ -e a.npy ] && failed "a failed run leaves a file"
u "--top 0" '--top 0' infer job.amp --block scores --input x-ubyte --top 0
[ $failures -eq 0 ]
