#!/bin/sh
# amp selftest job.amp compares the gradients of a job with own ops with differences in doubles.
# Correct gradients pass. One that is 1 % too large fails and is named. Jobs without a train block,
# or with several losses, are refused with the reason.
set -e
amp=$2 # $1 is ampc, as in all scripts of this folder
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

job() # FACTOR of the backward
{
  cat <<END
op wave(x: float[N, D], w: float[D], rate: float) -> (y: float[N, D]) {
  host = """
    for (int64_t i = 0; i < N * D; i++) {
      float t = rate * x[i] * w[i % D];
      y[i] = sinf(t) + 0.5f * t * t;
    }
  """
  def backward(dy) {
    t = rate * x * w
    dt = dy * (cos(t) + t) * rate
    return dt * w, $1 * (dt * x).sum(0)
  }
}
module Net {
  fc = Linear(3, 5); w = Parameter([5], init=normal_()); out = Linear(5, 2)
  def forward(x) { return out(dropout(wave(fc(x), w, rate=1.25), 0.25)) }
}
data d() { return synthetic(64, [3]), synthetic(64, [], dtype=i64, low=0, high=2) }
model net = Net()
optimizer opt = AdamW(net, lr=1e-2, clip_norm=0.5)
precision bf16
train x, y in d() with batch=8 { minimize cross_entropy(net(x), y) with opt }
END
}

status() # status EXPECTED COMMAND...: the command must exit with EXPECTED; its output is in $work/out
{
  want=$1
  shift
  got=0
  "$@" > "$work/out" 2>&1 || got=$?
  [ $got = "$want" ] || { cat "$work/out"; echo "FAILED: status $got, not $want: $*"; exit 1; }
}
says()
{
  grep -qFe "$1" "$work/out" || { cat "$work/out"; echo "FAILED: the output lacks: $1"; exit 1; }
}

job 1.0 > "$work/right.amp"
sed 's/STEPS: int = 128/STEPS: int = 6/; s/WIDTH: int = 256/WIDTH: int = 8/' "$examples/recurrence/recurrence.amp" > "$work/recurrence.amp"
status 0 "$amp" selftest "$work/right.amp" "$work/recurrence.amp" "$examples/oscillators/oscillators.amp"
says "23 passed, 0 failed"
job 1.01 > "$work/wrong.amp"
status 5 "$amp" selftest "$work/wrong.amp"
says "along a random direction of w the loss rises by"
says "4 passed, 1 failed"

# Where values tie, the loss has different slopes on the two sides. A gradient between them is
# correct, any other is wrong.
tie() # tie FACTOR: the factor in the backward of `same`
{
  cat <<END
op same(x: float[N]) -> (y: float[N]) {
  host = "for (int64_t i = 0; i < N; i++) y[i] = x[i];"
  def backward(dy) { return $1 * dy }
}
module Net {
  shift = Parameter([8])
  def forward(x) { return square(amin(same(shift), dim=0) + 0.0 * x.sum() - 0.3) }
}
data d() { return synthetic(8, [8]) }
model net = Net()
optimizer opt = SGD(net, lr=0.1)
train x in d() with batch=2 { minimize net(x) with opt }
END
}
tie 1.0 > "$work/tie.amp"
status 0 "$amp" selftest "$work/tie.amp"
tie 90.0 > "$work/tie.amp"
status 5 "$amp" selftest "$work/tie.amp"

job 1.0 | sed 's/^train.*//' > "$work/none.amp"
status 3 "$amp" selftest "$work/none.amp"
says "none.amp: there is no train block"
job 1.0 | sed 's/^train.*/train x, y in d() with batch=8 {\n  z = net(x)\n  minimize cross_entropy(z, y) with opt\n  minimize mean(net(x) ** 2) with opt\n}/' \
  > "$work/two.amp"
status 3 "$amp" selftest "$work/two.amp"
says "minimizes several values"
status 2 "$amp" selftest --filter relu "$work/right.amp"
says "--filter picks ops"
status 0 "$amp" selftest --filter ceil --brief --verbose
says "ok: ceil: "
echo "gradients of jobs: right ones pass, a wrong one is found"
