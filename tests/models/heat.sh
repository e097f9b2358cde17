#!/bin/bash
# heat.sh AMPC AMP: examples/heat, whose loss contains derivatives of the net by its inputs, finds
# the solution of its equation. At -O0, at -O2, and as an emitted program with poison it writes the
# same checkpoint. It also trains in 16 bits and with recomputed blocks.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
job=$(realpath "$(dirname "$0")/../../examples/heat/heat.amp")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$job" heat.amp

"$amp" train -q --json --device cpu heat.amp | python3 -c '
import json, sys
told = [line["metrics"] for line in map(json.loads, sys.stdin) if line["event"] == "eval"][-1]
print("off by", told)
sys.exit(not (told["error"] < 5e-4 and told["worst"] < 2e-3))'

short() { "$amp" train -q --device cpu --steps 30 --set train.steps=30 "$@" heat.amp >/dev/null; }
short -O0 --save o0
short -O2 --save o2
"$ampc" --set train.steps=30 --target=cpu --poison -o poison.c heat.amp
eval "$("$ampc" --set train.steps=30 --target=cpu --build-line -o poison.c heat.amp | tail -n 1)"
./poison --save poisoned >/dev/null 2>&1
cmp o0 o2
cmp poisoned o2

for precision in f16 bf16; do short --set precision=$precision -O2; done
mkdir again
sed 's/net(cat/checkpoint(net, cat/' heat.amp >again/heat.amp
grep -q checkpoint again/heat.amp
(cd again && short -O2 --save ../again.safetensors)
cmp again.safetensors o2
echo "the same bytes at -O0 and -O2, emitted, and recomputed"
