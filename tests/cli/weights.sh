#!/usr/bin/env bash
# `amp weights` and --save-weights: the names and types that PyTorch's load_state_dict(strict=True) takes. Files of
# torch.save are read wherever safetensors files are. tests/data/make_torch.py made them.
#   weights.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cp "$source_dir"/tests/data/torch/*.pth "$work"
cd "$work" || exit 1

tensors() { # tensors FILE: prints name, type, shape and a sum of the bytes of each tensor, sorted
  python3 - "$@" <<'PY'
import json, struct, sys, zlib
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
for name, e in sorted(json.loads(b[8:8 + n]).items()):
    if name != "__metadata__":
        s, t = e["data_offsets"]
        print(name, e["dtype"], e["shape"], zlib.crc32(b[8 + n + s:8 + n + t]))
PY
}
same() { # same NAME A B: both files have the same tensors
  if diff <(tensors "$2") <(tensors "$3") >&2; then echo "ok: $1"; else failed "$1: $2 and $3 differ"; fi
}
has() { [ "$(tensors "$1" | grep -c "$2")" = 1 ] || failed "$1 has no tensor $2"; }
names() { # names NAME FILE < lines: the tensors of the file are these
  if diff - <(tensors "$2" | sed 's/ [0-9]*$//') >&2; then echo "ok: $1"; else failed "$1: other tensors"; fi
}
run() { timeout 60 "$amp" train --device cpu job.amp "$@"; }
out() { "$amp" weights "$@"; }

cat >job.amp <<'EOF'
data points() { return synthetic(32, [4]), synthetic(32, [4]) }
module Net {
  table = Parameter([4, 4])
  norm = BatchNorm1d(4)
  head = Linear(4, 4)
  head.weight = table
  def forward(x) { return head(norm(x @ table)) }
}
model net = Net() { init("table", normal_()) }
optimizer opt = Adam(net, lr=0.1, ema=0.5)
train x, y in points() with batch=16 { minimize mse_loss(net(x), y) with opt }
EOF

# ---- out ------------------------------------------------------------------------------------------------
passes "weights at the end of a run" run --save c.safetensors --save-weights w.safetensors
names "a state_dict has parameters, buffers and both names of a tied one" w.safetensors <<'EOF'
head.bias F32 [4]
head.weight F32 [4, 4]
norm.bias F32 [4]
norm.num_batches_tracked I64 []
norm.running_mean F32 [4]
norm.running_var F32 [4]
norm.weight F32 [4]
table F32 [4, 4]
EOF
[ "$(tensors w.safetensors | grep '^table ' | cut -d' ' -f2-)" = "$(tensors w.safetensors | grep '^head.weight ' | cut -d' ' -f2-)" ] || failed "tied parameters differ"
passes "weights of a checkpoint" out c.safetensors d.safetensors
grep -q '^d.safetensors: 8 tensors, 53 numbers, ' out || failed "the size is printed"
same "a checkpoint has the names of tied parameters" d.safetensors w.safetensors
passes "weights again, with a checksum" out -q d.safetensors e.safetensors
same "weights of weights" e.safetensors w.safetensors
passes "averages" out --averages c.safetensors a.safetensors
diff <(tensors a.safetensors) <(tensors w.safetensors) >diffs && failed "averages are the weights"
grep -q '^. norm.running_mean' diffs && failed "averages changed buffers"
[ "$(grep -c '^<' diffs)" = 5 ] || failed "averages: not five parameters differ"
refuses "no averages" 3 'w.safetensors has no averages of weights' out --averages w.safetensors a.safetensors
passes "rounded" out --type bf16 c.safetensors b.safetensors
has b.safetensors '^head.bias BF16 \[4\]'
has b.safetensors '^norm.num_batches_tracked I64'
passes "wider again" out --type=f32 b.safetensors f.safetensors
passes "f16" out --type f16 f.safetensors g.safetensors
refuses "an unknown type" 2 'expected f32, f16 or bf16' out --type i8 c.safetensors b.safetensors
printf 'x F32 [3] 1e5 -1e5 1\n' | "$source_dir/tests/cli/weights.py" large.safetensors
passes "values beyond f16" out --type f16 large.safetensors g.safetensors
grep -q '^warning: x: 2 of 3 values are beyond f16 (65504) and became infinite' err || failed "values beyond f16 are counted"
sed -i 's/^model net = .*/model net = Net() { load("w.safetensors") }/' job.amp
passes "what was written is loaded" run --steps 0 --save-weights x.safetensors
same "weights out and in" x.safetensors w.safetensors

# ---- what is not overwritten ----------------------------------------------------------------------------
refuses "IN as OUT" 2 'this command reads it, as weights' out w.safetensors w.safetensors
ln -s w.safetensors link.safetensors
refuses "a link to IN" 2 'weights that this command reads' out --force w.safetensors link.safetensors
echo "a note" >note
refuses "another kind of file" 3 'the existing file is no safetensors file' out w.safetensors note
refuses "another kind of file, at the end of a run" 3 'the existing file is no safetensors file' run --save-weights note
[ "$(cat note)" = "a note" ] || failed "the note changed"
passes "with --force" out --force w.safetensors note
refuses "the checkpoint's own file" 2 'the run saves its checkpoint to c.safetensors' run --save c.safetensors --save-weights c.safetensors
refuses "weights over what the run reads" 2 'this command reads it, as weights' run --save-weights w.safetensors
refuses "the checkpoint that the run resumes" 2 'as the checkpoint' run --resume c.safetensors --save-weights c.safetensors
refuses "a folder that is not there" 3 'no/x.safetensors' run --save-weights no/x.safetensors
refuses "one file" 2 'expected IN and OUT, got 1 file' out w.safetensors
refuses "a missing file" 3 'cannot open missing' out missing y.safetensors
refuses "a text" 3 'job.amp is not a safetensors file: no safetensors file begins like that, and no file of torch.save' out job.amp y.safetensors
[ ! -e y.safetensors ] || failed "a file was left"

# ---- models of one job ----------------------------------------------------------------------------------
cat >two.amp <<'EOF'
data points() { return synthetic(8, [3]) }
model a = Sequential(Linear(3, 2), BatchNorm1d(2))
model ab = Linear(2, 1)
optimizer opt = SGD([a, ab], lr=0.1)
train x in points() with batch=4 { minimize mean(ab(a(x))) with opt }
EOF
passes "two models" "$amp" train --device cpu two.amp --save-weights two.safetensors
passes "one of them" out --model a two.safetensors one.safetensors
tensors one.safetensors | cut -d' ' -f1 | diff - <(printf '%s\n' 0.bias 0.weight 1.bias 1.num_batches_tracked 1.running_mean 1.running_var 1.weight) || failed "names of one model"
refuses "a model that is not there" 3 'no tensor below net; its names begin with a, ab' out --model net two.safetensors one.safetensors

# ---- files of torch.save --------------------------------------------------------------------------------
names_of_net='0.bias 0.weight 1.bias 1.num_batches_tracked 1.running_mean 1.running_var 1.weight'
for file in state training old; do
  passes "$file.pth" out $file.pth $file.safetensors
  [ "$(tensors $file.safetensors | cut -d' ' -f1 | xargs)" = "$names_of_net" ] || failed "names of $file.pth"
done
same "the weights of both" state.safetensors training.safetensors
passes "every type, and views" out kinds.pth kinds.safetensors
has kinds.safetensors '^turned F32 \[3, 2\]'
refuses "a whole module" 3 'program.pth has no dictionary of tensors, but an object of torch.nn.modules.container.Sequential' out program.pth y.safetensors
refuses "as the output" 3 'two.pth: the existing file is no safetensors file' out state.pth two.pth

net() { # net CLAUSES
  cat >pth.amp <<EOF
data points() { return synthetic(4, [3]) }
model net = Sequential(Linear(3, 2), BatchNorm1d(2)) { $1 }
eval x in points() with batch=4 { metric w = sum(net[0].weight) }
infer weight() { return net[0].weight }
EOF
}
net 'load("state.pth")'
passes "load" "$amp" eval --device cpu pth.amp
grep -q 'loaded 7 of 7' err && grep -q '^eval w: 1.875' out || failed "load of state.pth"
net 'load("two.pth", strip="ema.", unused="model.**")'
passes "load of one of several" "$amp" eval --device cpu pth.amp
grep -q '^eval w: 3.75' out || failed "load of two.pth"
net ''
passes "--weights" "$amp" infer --device cpu -q --weights training.pth pth.amp
grep -q '^0 0.125 0.25 0.375' out || failed "--weights training.pth: $(cat out)"
refuses "--resume" 3 'is not a checkpoint' "$amp" eval --device cpu --resume state.pth pth.amp
echo '{"weight_map": {"0.weight": "state.pth"}}' >state.index.json
net 'load("state.index.json")'
passes "a shard" "$amp" eval --device cpu pth.amp

# the length of this header, 0x280, begins as a pickle does
python3 - <<'PY'
import struct
h = '{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'.ljust(0x280)
open("long.safetensors", "wb").write(struct.pack("<Q", len(h)) + h.encode() + struct.pack("<2f", 1, 2))
PY
passes "a header of 640 bytes" "$amp" weights long.safetensors short.safetensors
[ $failures -eq 0 ]
