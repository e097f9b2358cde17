#!/usr/bin/env bash
# terminal.sh AMPC AMP: on a terminal of 80 columns, the progress line has all fields, from the
# epoch to the remaining time, and is never longer than the terminal.
set -u
amp=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cat >job.amp <<'EOF'
data numbers(n: int) {
  x = synthetic(n, [8])
  y = synthetic(n, [], dtype=i64, low=0, high=10)
  return x, y
}
model net = Linear(8, 10)
optimizer opt = SGD(net, lr=0.01234)
precision f16
train x, y in numbers(64000) with batch=64 {
  minimize cross_entropy(net(x), y) with opt
  metric acc = accuracy(net(x), y)
}
EOF
script -qec "stty cols 80; '$amp' train --device cpu job.amp" typescript >/dev/null </dev/null || {
  cat typescript
  exit 1
}
lines=$(tr '\r' '\n' <typescript | sed 's/\x1b\[K//g' | grep loss)
whole='^ep(och)? 1 (step )?[0-9]+/1000 loss [0-9.]+ acc [0-9.]+ lr 0.01234 '
whole+='(scale |x)65536 skip(ped)? 0 [0-9]+( samples)?/s eta [0-9ms]+$'
if ! grep -qE "$whole" <<<"$lines" || grep -qE '.{80}' <<<"$lines"; then
  echo "FAILED: progress lines on a terminal:"
  echo "$lines"
  exit 1
fi
