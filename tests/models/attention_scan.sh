#!/bin/bash
# attention_scan.sh AMP: attention with dropout in `scan`. Each iteration draws its own mask. With
# queries of zero and values of one, the mean of the results is 1. The loss is linear in the values,
# so a step of SGD subtracts lr times the loss from their sum if backward uses the mask of forward.
set -euo pipefail
amp=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >job.amp <<'EOF'
const CAUSAL = false
module Net {
  values = Parameter([2, 6, 4], init=ones_())
  layer = TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.5, batch_first=true)
  def forward(x) {
    queries = zeros(2, 6, 4); total = zeros([])
    scan t in range(50) carry total {
      y = scaled_dot_product_attention(queries, queries, values, dropout_p=0.5, is_causal=CAUSAL)
      total = total + y.sum()
      emit each = y[:, :, 0]
    }
    return total, each
  }
  def whole(x) { scan t in range(3) carry x { x = layer(x) }; return x }
}
data rows() { return synthetic(4, [6, 4]) }
model net = Net()
optimizer opt = SGD(net, lr=0.001)
train x in rows() with batch=1, steps=2, log=1 {
  metric before = net.values.sum()
  y, each = net(x)
  metric mean = each.mean()
  metric distinct = (each[1:] != each[:-1]).to(f32).mean()
  metric layer = net.whole(x).square().mean()
  minimize y with opt
}
EOF
for causal in false true; do
  "$amp" train --json --device cpu --log 1 -D CAUSAL=$causal job.amp 2>/dev/null >out
  python3 - out <<'PY'
import json, sys
first, second = [json.loads(line)["metrics"] for line in open(sys.argv[1]) if '"step","block"' in line]
assert abs(first["mean"] - 1) < 0.1 and 0 < first["layer"] < 10, first
assert first["distinct"] > 0.5 and first["mean"] != second["mean"], (first, second)
taken = first["before"] - second["before"]
assert abs(taken / (0.001 * first["loss"]) - 1) < 1e-4, (taken, first["loss"])
PY
done
