#!/bin/bash
# derivatives.sh AMPC AMP heat|forces: an example whose loss contains derivatives of the net by its
# inputs, by jvp or by grad, learns what it should. At -O0, at -O2, and as an emitted program with
# poison it writes the same checkpoint. It also trains in 16 bits and with recomputed blocks.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2") name=$3
example=$(realpath "$(dirname "$0")/../../examples/$name")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$example/$name.amp" .

learns() { # learns CONDITION [OPTION...]: the condition holds for `m`, the metrics of the last evaluation
  "$amp" train -q --json --device cpu "${@:2}" "$name.amp" | python3 -c '
import json, sys
m = [line["metrics"] for line in map(json.loads, sys.stdin) if line["event"] == "eval"][-1]
print(sys.argv[1:], m)
sys.exit(not eval(sys.argv[1]))' "$@"
}
short() { "$amp" train -q --device cpu --steps 30 --set train.steps=30 "$@" "$name.amp" >/dev/null; }

case $name in
heat)
  call='net(cat' recomputed='checkpoint(net, cat'
  learns 'm["error"] < 5e-4 and m["worst"] < 2e-3'
  for precision in f16 bf16; do short --set precision=$precision -O2; done
  ;;
forces)
  call='net(squared_distances(x).unsqueeze(-1))' recomputed='checkpoint(net, squared_distances(x).unsqueeze(-1))'
  learns 'm["force_error"] < 0.03'
  for precision in f16 bf16; do learns 'm["force_error"] < 0.06' --set precision=$precision; done
  ;;
esac

short -O0 --save o0
short -O2 --save o2
"$ampc" --set train.steps=30 --target=cpu --poison -o poison.c "$name.amp"
eval "$("$ampc" --set train.steps=30 --target=cpu --build-line -o poison.c "$name.amp" | tail -n 1)"
./poison --save poisoned >/dev/null 2>&1
cmp o0 o2
cmp poisoned o2

mkdir again
sed "s/$call/$recomputed/" "$name.amp" >"again/$name.amp"
grep -q checkpoint "again/$name.amp"
(cd again && short -O2 --save ../again.safetensors)
cmp again.safetensors o2
echo "the same bytes at -O0 and -O2, emitted, and recomputed"
