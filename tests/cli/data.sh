#!/usr/bin/env bash
# Data sources from the job to the checkpoint. amp train, the emitted program, a resumed run and
# runs with other numbers of loader threads write the same bytes. A damaged image ends a run or is
# skipped.
#   data.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
cp -r "$source_dir/tests/data" . && cp data/pictures/cat/colour.jpg data/pictures/dog/colour.jpg

cat >data/job.amp <<'AMP'
data all(split: str) {
  image, label = images(split, [20, 16], resize=24, scale=[0.4, 1.0], hflip=0.5, samples=9)
  x = cat([image.to(f32).flatten(1) / 255.0, npy("wide.npy"), tokens("words_*.bin", length=3, samples=9).to(f32) / 64.0], dim=1)
  return x, label
}
module Net { fc = Linear(3 * 320 + 6 + 3, 2); def forward(x) { return fc(x) } }
model net = Net()
optimizer opt = AdamW(net, lr=0.01)
train x, y in all("pictures") with batch=4 { minimize cross_entropy(net(x), y) with opt }
AMP
python3 - <<'PY' || exit 1
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 6), }"
with open("data/wide.npy", "wb") as f:
    f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<54f", *[i / 54 for i in range(54)]))
for name, n in (("0", 9), ("1", 11)):  # 4 and 5 windows
    with open(f"data/words_{name}.bin", "wb") as f:
        f.write(struct.pack(f"<{n}H", *range(n)))
PY

run() { # run NAME CHECKPOINT COMMAND...
  local name=$1 checkpoint=$2
  shift 2
  "$@" --save "$checkpoint" -q >out 2>&1 || { failed "$name: $(cat out)" && return; }
  cmp -s whole.ckpt "$checkpoint" && echo "ok: $name" || failed "$name: another checkpoint"
}
train=("$amp" train data/job.amp --device cpu)
"${train[@]}" --steps 7 --save whole.ckpt -q || failed "a run"
run "once more" again.ckpt "${train[@]}" --steps 7
run "one processor" one.ckpt taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')" "${train[@]}" --steps 7
for n in 1 4 128; do
  run "--data-threads $n" threads.ckpt "${train[@]}" --steps 7 --data-threads $n
done
refuses "no threads" 2 '--data-threads 0: expected a whole number from 1 to 128' "${train[@]}" --data-threads 0
"${train[@]}" --steps 3 --save part.ckpt -q || failed "a part"
run "resumed within an epoch" resumed.ckpt "${train[@]}" --steps 7 --resume part.ckpt
run "resumed with other threads" resumed.ckpt "${train[@]}" --steps 7 --resume part.ckpt --data-threads 3
"$ampc" data/job.amp -o job.c && eval "$("$ampc" data/job.amp -o job.c --build-line | tail -1)" || failed "the emitted program"
run "emitted" emitted.ckpt ./job --data-dir data --steps 7
run "emitted, --data-threads" emitted.ckpt ./job --data-dir data --steps 7 --data-threads=4
refuses "no threads, emitted" 2 '--data-threads x: expected a whole number from 1 to 128' ./job --data-threads x

head -c 900 data/pictures/cat/colour.jpg >data/pictures/dog/colour.jpg
refuses "a damaged picture" 3 'dog/colour.jpg is damaged: Premature end.*corrupt="skip"' "${train[@]}" --steps 7
sed -i 's/hflip=0.5/hflip=0.5, corrupt="skip"/' data/job.amp
"${train[@]}" --steps 7 -q 2>err || failed "one left out: $(cat err)"
[ "$(grep -c 'left out 1 of 9 pictures: .*dog/colour.jpg' err)" = 1 ] || failed "what is left out: $(cat err)"
rm data/pictures/dog/*
refuses "an empty class" 3 'class dog is empty' "${train[@]}" --steps 7
exit $((failures > 0))
