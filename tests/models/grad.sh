#!/bin/bash
# grad.sh AMPC AMP: in grad.amp, second derivatives that are computed in several ways agree. -O0, -O2
# and an emitted program with poison write the same checkpoint.
set -euo pipefail
ampc=$(realpath "$1") amp=$(realpath "$2")
job=$(cd "$(dirname "$0")" && pwd)/grad.amp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$job" grad.amp

"$amp" train -q --json --device cpu --save o2 grad.amp | python3 -c '
import json, sys
told = [line["metrics"] for line in map(json.loads, sys.stdin) if line["event"] == "step"]
worst = {name: max(step[name] for step in told) for name in ("forward", "summed", "scanned", "kept", "differs")}
print(len(told), "steps, apart by", worst)
sys.exit(not (len(told) == 8 and max(worst.values()) < 2e-5))'
"$amp" train -q --device cpu -O0 --save o0 grad.amp >/dev/null
"$ampc" --target=cpu --poison -o poison.c grad.amp
eval "$("$ampc" --target=cpu --build-line -o poison.c grad.amp | tail -n 1)"
./poison --save poisoned >/dev/null 2>&1
cmp o0 o2
cmp poisoned o2
