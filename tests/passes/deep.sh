#!/usr/bin/env bash
# A net of 400 residual blocks compiles in little memory, with and without optimization: no pass
# stores anything for each pair of nodes.
#   deep.sh AMPC
set -u
ampc=$1
job=$(mktemp --suffix=.amp)
trap 'rm -f "$job"' EXIT
cat >"$job" <<'AMP'
module Block(c: int) {
  conv = Conv2d(c, c, 3, padding=1)
  bn = BatchNorm2d(c)
  def forward(x) { return x + relu(bn(conv(x))) }
}
module Deep() {
  blocks = Sequential(*[Block(8) for i in range(400)])
  out = Linear(8, 4)
  def forward(x) { return out(blocks(x).mean(dim=[2, 3])) }
}
model net = Deep()
optimizer opt = SGD(net, lr=0.1)
precision f16
data images() { return synthetic(64, [8, 8, 8]), synthetic(64, [], i64, 0, 4) }
train x, y in images() with batch=32 { minimize cross_entropy(net(x), y) with opt }
AMP
for level in 0 2; do
  (ulimit -v 400000 && "$ampc" -O$level --emit=plan --target=sm_90 "$job" >/dev/null) ||
    { echo "deep.sh: -O$level: status $?"; exit 1; }
done
