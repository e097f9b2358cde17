#!/usr/bin/env bash
# No output overwrites a file that the same command reads, under any of its names, or a file of
# another kind. --force allows only the second. The script tests every command that writes files.
#   overwrites.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$work/cache}
cd "$work" || exit 1
keeps() { # keeps NAME STATUS PATTERN FILE COMMAND...: the command is refused and leaves the file unchanged
  local name=$1 status=$2 pattern=$3 file=$4
  shift 4
  cp "$file" before
  refuses "$name" "$status" "$pattern" "$@"
  same "$name: the file" before "$file"
}
infer() { timeout 100 "$amp" infer -q --device cpu "$@"; }
train() { timeout 100 "$amp" train -q --device cpu "$@"; }
probe() { timeout 100 "$amp" probe --device cpu --steps 1 "$@"; }
report() { timeout 100 "$amp" report --no-ptx "$@"; }

mkdir -p p/a
cp "$source_dir/tests/data/pictures/dog/clear.png" p/a/x.png || exit 1
cp p/a/x.png p/a/000000.png
cat >part.amp <<'E2'
module Net { fc = Linear(3, 2); def forward(x) { return fc(x) } }
E2
cat >job.amp <<'E2'
import "part.amp"
model net = Net()
data d() { return safetensors("data.st", "x") }
optimizer opt = SGD(net, lr=0.1)
train x in d() with batch=2 { minimize mean(net(x)) with opt }
infer f(x: f32[N, 3]) -> f32[N, 2] { return net(x) }
infer pic(x: u8[N, 3, 8, 8]) { return x.to(f32) / 255.0 }
const N = 2
E2
sed 's/net = Net()/net = Net() { load("w.st") }/' job.amp >loads.amp
printf 'x F32 [4,3] 1 2 3 4 5 6 7 8 9 10 11 12\n' | "$source_dir/tests/cli/weights.py" data.st
printf 'fc.weight F32 [2,3] 1 0 0 0 0 2\nfc.bias F32 [2] 0.5 -1\n' | "$source_dir/tests/cli/weights.py" w.st
echo mine | tee mine mine.png >mine.npy
pic="infer --block pic --weights w.st"
passes "an array" $pic --input p --output in.npy job.amp
passes "an array again" $pic --input p --output in.npy job.amp
ln in.npy hard.npy
ln -s in.npy soft.npy
ln -s job.amp soft.amp
ln p/a/x.png hard.png

# ---- infer ---------------------------------------------------------------------------------------
keeps "--names, the job" 2 'cannot write job.amp: this command reads it, as the job; give' job.amp $pic --input p --names job.amp job.amp
keeps "--names, a link to the job" 2 'cannot write soft.amp: it is job.amp, the job that this command reads' job.amp $pic --input p --names soft.amp job.amp
keeps "--names, the job by a link" 2 'cannot write job.amp: it is soft.amp, the job' job.amp $pic --input p --names job.amp soft.amp
keeps "--names, an import" 2 'part.amp, an imported file|as an imported file' part.amp $pic --input p --names ./part.amp job.amp
keeps "--names, weights" 2 'reads it, as weights' w.st $pic --input p --names w.st job.amp
keeps "--names, weights, forced" 2 'reads it, as weights' w.st $pic --input p --force --names w.st job.amp
keeps "--names, somebody's file" 3 'is no list of names.*--force' mine $pic --input p --names mine job.amp
cp mine other
passes "--names, forced" $pic --input p --names other --force job.amp
keeps "--png, a picture of the folder" 2 'as data in .*p; give' p/a/x.png $pic --input p --png p/a/x.png job.amp
keeps "--png, its other name" 2 'as data in .*p; give' hard.png $pic --input p --png hard.png --force job.amp
keeps "--png, the folder" 2 'cannot write p/a/000000.png: .* as data in' p/a/000000.png $pic --input p --png p/a job.amp
keeps "--png, the picture" 2 'cannot write p/a/x.png: ' p/a/x.png $pic --input p/a/x.png --png p/a/x.png job.amp
keeps "--png, somebody's file" 3 'no PNG picture' mine.png $pic --input p --png mine.png job.amp
passes "--png" $pic --input p --png out.png job.amp
passes "--png again" $pic --input p --png out.png job.amp
sed 's/x: u8\[N, 3, 8, 8\]) { return x.to(f32) . 255.0/x: f32[N, 3, 8, 8]) { return x/' job.amp >floats.amp
keeps "--output, the array" 2 'in.npy, data that this command reads' in.npy $pic --input in.npy --output in.npy floats.amp
keeps "--output, its other name" 2 'in.npy, data that' in.npy $pic --input in.npy --output hard.npy floats.amp
keeps "--output, a link to it" 2 'in.npy, data that' in.npy $pic --input in.npy --output ./soft.npy --force floats.amp
keeps "--output, somebody's file" 3 'no NPY file' mine.npy $pic --input in.npy --output mine.npy floats.amp
passes "--output beside it" $pic --input in.npy --output out.npy floats.amp
printf 'a\nb\n' >classes.npy
keeps "--output, the names of classes" 2 'the names of the classes' classes.npy infer --block f --weights w.st --data 'safetensors("data.st", "x")' --classes classes.npy --output classes.npy job.amp

# ---- train, eval and emitted programs -------------------------------------------------------------
keeps "--save, the job" 2 'as the job' job.amp train --save job.amp job.amp
keeps "--save, data" 2 'cannot write data.st: .* data' data.st train --save data.st job.amp
keeps "--save, loaded weights" 2 'weights' w.st train --save w.st loads.amp
keeps "--save, somebody's file" 3 'no checkpoint' mine train --save mine job.amp
passes "--save" train --save run.st --keep-last 1 job.amp
passes "--resume and --save" train --resume run.st --save run.st job.amp
cp data.st run.st.step7
sed 's/data.st/run.st.step7/' job.amp >kept.amp
keeps "--save, a kept name that is data" 2 'data' run.st.step7 train --steps 7 --keep-last 2 --save run.st kept.amp
sed 's/w.st/run.st.step1000/; s/batch=2/batch=2, epochs=3/' loads.amp >loads_old.amp
rm -f run.st.step7
cp w.st run.st.step1000
touch -d yesterday run.st.step1000
passes "--keep-last does not remove what the job reads" train --save run.st --keep-last 1 --save-every 1 loads_old.amp
[ -e run.st.step1000 ] || failed "--keep-last removed the weights that the job loads"
[ "$(ls run.st.step*)" != run.st.step1000 ] || failed "--keep-last keeps nothing"
mkdir logs
printf 'step,a,b\n1,2,3\n4,5,6\n' >logs/metrics.csv
sed 's/safetensors("data.st", "x")/csv("logs\/metrics.csv", columns=["step", "a", "b"])/' job.amp >csv.amp
keeps "--log-dir, data" 2 'data' logs/metrics.csv train --resume run.st --log-dir logs csv.amp
passes "an emitted program" "$ampc" -o prog.c job.amp
passes "its build" sh -c "$("$ampc" --build-line -o prog.c job.amp)"
keeps "./prog --save, data" 2 'data' data.st ./prog -q --device cpu --save data.st
keeps "./prog --save, somebody's file" 3 'no checkpoint' mine ./prog -q --device cpu --save mine
cp mine other
passes "./prog --save --force" ./prog -q --device cpu --save other --force

# ---- probe, report, ampc, the prompt ---------------------------------------------------------------
keeps "probe --json takes no file" 2 'one job' job.amp probe --json job.amp job.amp
keeps "probe --output, the job" 2 'as the job' job.amp probe --json --output job.amp job.amp
keeps "probe --output, data" 2 'data' data.st probe --json --force --output data.st job.amp
keeps "probe --output, somebody's file" 3 'no JSON of amp probe' mine probe --json --output mine job.amp
refuses "probe --output alone" 2 '--output needs --json' probe --output o.json job.amp
passes "probe --json" probe --json job.amp
python3 -c 'import json, sys; json.load(sys.stdin)' <out || failed "probe --json: no JSON on stdout"
passes "probe --output" probe --json --output o.json job.amp
passes "probe --output again" probe --json --output o.json job.amp
keeps "report -o, the job by a link" 2 'it is job.amp|it is soft.amp' job.amp report -o job.amp soft.amp
keeps "report -o, its --probe" 2 'the log of a run' o.json report --probe o.json --force -o o.json job.amp
keeps "report -o, somebody's file" 3 'no page of amp report' mine report -o mine job.amp
passes "report" report -o page.html job.amp
passes "report again" report -o page.html job.amp
keeps "ampc -o --force, an import" 2 'an imported file' part.amp "$ampc" --emit=c --force -o part.amp job.amp
keeps "ampc -o --force, data" 2 'data' data.st "$ampc" --emit=c --force -o data.st job.amp
keeps "ampc -o --force, the job" 2 'as the job' job.amp "$ampc" --emit=c --force -o job.amp job.amp
keeps "ampc --deps --force, data" 2 'data' data.st "$ampc" --emit=c -o fine.c --force --deps data.st job.amp
session() { # session INPUT: runs the prompt; its output is in the file out
  printf '%s\n' "$1" | timeout 100 "$amp" repl --device cpu job.amp >out 2>&1
}
cp data.st before
session ':write! data.st'
grep -q 'cannot write data.st' out || failed ":write!, data: $(cat out)"
session ':save data.st'
grep -q 'cannot write data.st' out || failed ":save, data: $(cat out)"
same "the prompt: the data" before data.st
cat >folder.amp <<EOF
data pictures() {
  image, label = images("$PWD/p", 8)
  return image.to(f32) / 255.0, label
}
model net = Linear(192, 2)
optimizer opt = SGD(net, lr=0.1)
train image, label in pictures() with batch=1 { minimize net(flatten(image, 1)).sum() with opt }
EOF
cp p/a/x.png before.png
printf '%s\n' ':write! p/a/x.png' | timeout 100 "$amp" repl --device cpu folder.amp >out 2>&1
grep -q 'cannot write p/a/x.png: this command reads it' out || failed ":write!, a picture: $(cat out)"
same "the prompt: the picture" before.png p/a/x.png
session ':write! job.amp'
grep -q 'wrote job.amp' out || failed ":write! of the session's job: $(cat out)"
finish
