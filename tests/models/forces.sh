#!/bin/bash
# forces.sh AMPC AMP: examples/forces, whose loss contains gradients of the net by its inputs, learns
# forces. At -O0, at -O2, and as an emitted program with poison it writes the same checkpoint. It
# also trains in 16 bits and with recomputed blocks.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
job=$(realpath "$(dirname "$0")/../../examples/forces/forces.amp")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$job" forces.amp

for precision in f32 f16 bf16; do
  "$amp" train -q --json --device cpu --set precision=$precision forces.amp | python3 -c '
import json, sys
told = [line["metrics"] for line in map(json.loads, sys.stdin) if line["event"] == "eval"][-1]
print(sys.argv[1], "off by", told)
sys.exit(not told["force_error"] < (0.03 if sys.argv[1] == "f32" else 0.06))' $precision
done

short() { "$amp" train -q --device cpu --steps 30 --set train.steps=30 "$@" forces.amp >/dev/null; }
short -O0 --save o0
short -O2 --save o2
"$ampc" --set train.steps=30 --target=cpu --poison -o poison.c forces.amp
eval "$("$ampc" --set train.steps=30 --target=cpu --build-line -o poison.c forces.amp | tail -n 1)"
./poison --save poisoned >/dev/null 2>&1
cmp o0 o2
cmp poisoned o2

mkdir again
sed 's/net(squared_distances(x).unsqueeze(-1))/checkpoint(net, squared_distances(x).unsqueeze(-1))/' forces.amp >again/forces.amp
grep -q checkpoint again/forces.amp
(cd again && short -O2 --save ../again.safetensors)
cmp again.safetensors o2
echo "the same bytes at -O0 and -O2, emitted, and recomputed"
