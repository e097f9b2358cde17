#!/usr/bin/env bash
# Weights stored in 16 bits. If a region reads them in that type anyway, nothing changes. All levels
# of fusion give the same bits. An emitted program writes the same checkpoint.
#   store.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
job() { # job PRECISION CLAUSES
  cat >job.amp <<EOF
data points() { return synthetic(64, [3, 8, 8]), synthetic(64, [], dtype=i64, low=0, high=3) }
module Net {
  conv = Conv2d(3, 8, 3, padding=1); norm = BatchNorm2d(8); fc = Linear(8, 8); tied = Linear(8, 8); head = Linear(8, 3)
  tied.weight = fc.weight
  def forward(x) { x = adaptive_avg_pool2d(relu(norm(conv(x))), 1).flatten(1); return head(tied(relu(fc(x)))) }
}
model net = Net() { $2 }
optimizer opt = Adam(net, lr=1e-2, clip_norm=1.0)
precision $1
train x, y in points() with batch=16, epochs=3 { minimize cross_entropy(net(x), y) with opt }
EOF
}
run() { "$amp" train -q --device cpu job.amp "$@"; }
job f16 ''
passes "as autocast casts them" run --save plain
job f16 'store(f16, "conv", "fc", "head.*", "tied")'
passes "stored so" run --save stored
same "the same step" plain stored
for precision in f32 bf16; do
  job $precision 'store(bf16, "**")'
  for level in 0 1 2; do passes "$precision, -O$level" run -O$level --save $precision.$level; done
  same "$precision: -O0 and -O2" $precision.0 $precision.2
  same "$precision: -O1 and -O2" $precision.1 $precision.2
done
cmp -s f32.2 plain && failed "stored in bf16 nothing changed"
passes "emitted" "$ampc" --target=cpu -o job.c job.amp
sh -c "$("$ampc" --target=cpu --build-line -o job.c job.amp)" || failed "the build line"
passes "emitted: runs" ./job -q --save emitted
same "emitted and amp write the same" emitted bf16.2
[ $failures -eq 0 ]
