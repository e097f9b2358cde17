#!/usr/bin/env bash
# Levels of precision. O0 trains like f32 and O1 like f16, to the bit. O2, with a loss scale, and
# O3, without, are near f32. They give the same bytes unfused and from an emitted program, and train
# at the prompt. An unknown level is refused.
#   levels.sh AMPC AMP
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed() { echo "FAIL: $1" >&2; exit 1; }

cat >job.amp <<'AMP'
precision O1
module Net {
  conv = Conv2d(1, 8, 3, padding=1); norm = BatchNorm2d(8); ln = LayerNorm(8); fc = Linear(8, 10)
  def forward(x) { return fc(ln(relu(norm(conv(x))).mean([2, 3]))) }
}
model net = Net()
optimizer opt = SGD(net, lr=0.1)
data d() { return synthetic(64, [1, 12, 12]), synthetic(64, [], dtype=i64, low=0, high=9) }
train x, y in d() with batch=16, steps=6 { minimize cross_entropy(net(x), y) with opt }
AMP

# run NAME [OPTION..]: writes loss and scale of each step to the file NAME
run() {
  local name=$1
  shift
  "$amp" train --device cpu --json --log 1 "$@" job.amp 2>"$name.err" | grep -o '"loss": *[^,}]*\|"scale": *[^,}]*' | paste - - >"$name" ||
    { cat "$name.err" >&2; failed "$name"; }
  [ "$(wc -l <"$name")" -eq 6 ] || failed "$name: not 6 steps"
}

for level in O0 O1 O2 O3 f32 f16; do run $level --set precision=$level --save $level.st; done
cmp O0 f32 || failed "O0 is not f32"
cmp O1 f16 || failed "O1 is not f16"
cmp -s O2 f16 && failed "O2 is f16"
cmp -s O3 f32 && failed "O3 is f32"
grep -q '"scale": *1.0' O3 && ! grep -q '"scale": *1.0' O2 || failed "scales of O2 and O3"
paste O3 f32 | awk -F'[ \t:]+' '{ d = $2 - $6; if (d < 0) d = -d; if (!(d < 0.01)) exit 1 }' || failed "O3 is far from f32"
for level in O2 O3; do
  "$amp" train -q --device cpu -O0 --set precision=$level --save flat.st job.amp
  cmp flat.st $level.st || failed "$level without fusion"
  sed "s/^precision O1/precision $level/" job.amp >text.amp
  "$ampc" --target=cpu -o text.c text.amp
  eval "$("$ampc" --target=cpu --build-line -o text.c text.amp | tail -n 1)"
  ./text --save emitted.st >/dev/null 2>&1
  run text && "$amp" train -q --device cpu --save jit.st text.amp
  cmp emitted.st jit.st || failed "$level emitted"
done
echo ':train 6' | "$amp" repl --set precision=O2 job.amp >repl.out 2>&1 || failed ":train at O2"

"$ampc" --check --set precision=O4 job.amp 2>err && failed "O4 is taken"
grep -q 'a precision is f16, bf16, f32 or tf32, or a level, O0 to O3' err || failed "$(cat err)"
sed 's/^precision O1/precision O4/' job.amp >bad.amp
"$ampc" --check bad.amp 2>err && failed "precision O4 is taken"
grep -q 'unknown precision `O4`' err && grep -q 'there are .f32., .tf32., .f16., .bf16., .O0., .O1., .O2., .O3.' err || failed "$(cat err)"
echo "levels: O0 to O3 train"
