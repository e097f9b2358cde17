#!/usr/bin/env bash
# Programs with only infer blocks compile for both targets: with and without weights, with and
# without kernels, with any names of arguments. Run as a trainer, such a program reports that it has
# no train block.
#   infer_only.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
export PATH=$PATH:/usr/local/cuda/bin
cd "$work" || exit 1
write() { cat >"$1.amp"; } # write NAME: the job on stdin
write model <<'E2'
module Net() {
  fc1 = Linear(8, 4)
  def forward(x) { return fc1(x) }
}
model net = Net()
precision f16
infer answer(x: f32[3, 8]) -> f32[3, 4] { return net(x) }
infer weight() { return net.fc1.weight }
E2
write identity <<'E2'
infer same(x: f32[3, 8], y: bool[3], z: i64[]) { return x, y, z }
E2
write product <<'E2'
infer square(x: f32[4, 4]) { return x @ x }
E2
write names <<'E2'
infer main(double: f32[3], static: f32[3], i: f32[3], t1: f32[3]) { return double + static * i - t1 }
infer program(work: f32[3]) { kernels = work * 2.0; return kernels }
E2
write image <<'E2'
module Net() {
  c = Conv2d(3, 8, 3)
  b = BatchNorm2d(8)
  def forward(x) { return b(c(x)).relu() }
}
model net = Net()
precision bf16
infer look(x: f32[2, 3, 8, 8]) { return net(x), net(x).sum() }
E2
for job in model identity product names image; do
  passes "$job, C" "$ampc" --target=cpu -o $job.c $job.amp
  line=$("$ampc" --build-line --target=cpu -o $job.c $job.amp) || failed "$job, C: the build line"
  passes "$job, cc" bash -c "$line -Wall -Werror"
  passes "$job, CUDA" "$ampc" -o $job.cu $job.amp
  if command -v nvcc >/dev/null; then
    line=$("$ampc" --build-line -o $job.cu $job.amp) || failed "$job, CUDA: the build line"
    passes "$job, nvcc" bash -c "$line"
  fi
  printf ':params\n:memory\n:kernel\n1 + 1\n' | "$amp" repl $job.amp >out 2>&1 || failed "$job, at the prompt"
  refuses "$job, amp train" 2 'has no train block' "$amp" train $job.amp
done
# An input with the name of a kernel's own variable gets another name in the text.
for word in x s_part s_part_sum d_part_sum guess d; do
  echo "infer f($word: f32[2, 8192]) { return layer_norm($word, 8192) }" >word.amp
  "$ampc" --target=cpu --emit=c word.amp >word.c || failed "an input called $word"
  grep -c 'restrict__ '$word'[,)]' word.c >"count.$word"
done
[ "$(cat count.x)" = 1 ] || failed "the input's name is not in the text"
[ "$(cat count.s_part count.s_part_sum count.d_part_sum count.guess count.d | sort -u)" = 0 ] ||
  failed "an input has the name of a variable: $(grep -l 1 count.*)"
sh -c "$("$ampc" --build-line --target=cpu -o model.c model.amp)" || failed "the model again, for the cpu"
refuses "the emitted program" 2 'has no train block' ./model
finish
