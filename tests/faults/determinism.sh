#!/usr/bin/env bash
# The same model and seed give the same bytes: of the emitted text, of a trained model, of JIT and
# emitted program, also with --strict-rounding.
#   determinism.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
small_data "$d"
small_job "$d/job.amp"
job=$d/job.amp

# ---- text: compiled twice, from two folders ---------------------------------------------------------
mkdir "$work/elsewhere"
cp -r "$d" "$work/elsewhere/data"
for kind in c cuda; do
  (cd "$work" && "$ampc" --emit=$kind -o "$work/one.$kind" data/job.amp) || failed "emit $kind"
  (cd "$work/elsewhere" && "$ampc" --emit=$kind -o "$work/two.$kind" data/job.amp) ||
    failed "emit $kind from another folder"
  same "$kind text twice" "$work/one.$kind" "$work/two.$kind"
  if grep -nE "$work|$source_dir|/tmp/|/home/" "$work/one.$kind" >"$work/out"; then
    failed "$kind text has an absolute path"
  fi
done

# ---- training: twice, other seed, in two pieces ------------------------------------------------------
train() { "$amp" train --device cpu --quiet "$@" "$job"; }
passes "train" train --seed 7 --save "$work/a"
passes "train again" train --seed 7 --save "$work/b"
same "same seed, same checkpoint" "$work/a" "$work/b"
passes "train with another seed" train --seed 8 --save "$work/c"
cmp -s "$work/a" "$work/c" && failed "another seed gives the same checkpoint"
passes "train, one thread" env OMP_NUM_THREADS=1 "$amp" train --device cpu \
  --quiet --seed 7 --save "$work/t1" "$job"
same "another number of threads, same checkpoint" "$work/a" "$work/t1"
passes "first half" train --seed 7 --steps 13 --save "$work/half"
passes "second half" train --seed 7 --resume "$work/half" --save "$work/joined"
same "stopped and resumed, same checkpoint" "$work/a" "$work/joined"

# ---- random numbers of a step: the same after a resume, without fusion and in the emitted program -----
cat >"$d/random.amp" <<'AMP'
data small(split: str) {
  return idx(split + "-images.gz").to(f32) / 255.0, idx(split + "-labels.gz").to(i64)
}
module Net {
  conv = Conv2d(1, 4, 3, stride=2); norm = BatchNorm2d(4); fc = Linear(4 * 121, 10)
  def forward(x) {
    if training { x = random_hflip(random_crop(random_shift(x, 2), 24)) } else { x = x[:, 2:26, 2:26] }
    x = stochastic_depth(dropout2d(relu(norm(conv(x.unsqueeze(1)))), 0.2), 0.1, "row")
    return fc(dropout(x + 0.01 * randn_like(x), 0.1).flatten(1))
  }
}
model net = Net()
optimizer opt = SGD(net, lr=0.05, momentum=0.9) { group(BatchNorm2d, "**.bias", weight_decay=0.0, lr=0.02) }
precision f16
train image, label in small("train") with batch=32 { minimize cross_entropy(net(image), label) with opt }
AMP
job=$d/random.amp
passes "train with random moves" train --save "$work/r"
passes "the same without fusion" train -O0 --save "$work/r0"
same "-O0 draws the same numbers" "$work/r" "$work/r0"
passes "first part" train --steps 7 --save "$work/part"
passes "the rest" train --resume "$work/part" --save "$work/whole"
same "resumed, the same numbers" "$work/r" "$work/whole"
job=$d/job.amp

# ---- the emitted program, built by its own line -----------------------------------------------------
cp "$job" "$d/program.amp"
(cd "$d" && "$ampc" -o job.c job.amp) || failed "emit job.c"
line=$(cd "$d" && "$ampc" --build-line -o job.c job.amp)
echo "$line"
passes "emitted program builds" bash -c "cd '$d' && $line"
passes "emitted program trains" bash -c "cd '$d' && ./job --seed 7 --quiet --save '$work/emitted'"
same "emitted program and JIT, same checkpoint" "$work/a" "$work/emitted"
passes "emitted program resumes the JIT's checkpoint" \
  bash -c "cd '$d' && ./job --quiet --resume '$work/half' --seed 7 --save '$work/crossed'"
same "resumed across, same checkpoint" "$work/a" "$work/crossed"

# ---- --strict-rounding: other roundings, but the same in both programs --------------------------
passes "train strictly" train --strict-rounding --seed 7 --save "$work/strict"
cmp -s "$work/a" "$work/strict" && failed "--strict-rounding changes nothing in f16"
passes "train strictly in f32" train --strict-rounding --seed 7 --set precision=f32 --save "$work/strict32"
passes "train in f32" train --seed 7 --set precision=f32 --save "$work/f32"
same "--strict-rounding in f32, same checkpoint" "$work/f32" "$work/strict32"
(cd "$d" && "$ampc" --strict-rounding --force -o job.c job.amp) || failed "emit job.c strictly"
passes "strict program builds" bash -c "cd '$d' && $line"
passes "strict program trains" bash -c "cd '$d' && ./job --seed 7 --quiet --save '$work/strict.emitted'"
same "emitted program and JIT, both strict, same checkpoint" "$work/strict" "$work/strict.emitted"
finish
