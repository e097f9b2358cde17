#!/usr/bin/env python3
"""The demo's first 20 steps on 64-bit Arm, in qemu with oneDNN for Arm, have the losses of this machine.
usage: emulated.py AMP"""
import json
import os
import subprocess
import sys

OPTIONS = "--json --device cpu --steps 20 --set eval.steps=1 --set train.batch=16 --set precision=f32"
# Products are summed in another order. The first steps had relative differences of 1e-7 to 5e-7. Then Adam amplified them:
# the signs of its first updates are those of the gradients. The largest was 9e-3.
FIRST, FIRST_BOUND, BOUND = 5, 5e-6, 3e-2


def losses(amp, path):
    command = [amp, "train", *OPTIONS.split(), "models/fashion_mnist/fashion_mnist.amp"]
    out = subprocess.run(command, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, check=True, text=True).stdout
    events = [json.loads(line) for line in out.splitlines()]
    return [event["metrics"]["loss"] for event in events if event["event"] == "step" and event["block"] == "train"]


def main(amp):
    subprocess.run(["tests/built.sh", "aarch64", "ampc", "amp"], check=True)
    path = os.environ["PATH"]
    here, arm = losses(amp, path), losses("build-aarch64/emulated/amp", f"build-aarch64/emulated:{path}")
    assert len(here) == len(arm) == 20, (here, arm)
    apart = [abs(a - b) / a for a, b in zip(here, arm)]
    print("relative differences of losses:", *(f"{number:.1e}" for number in apart))
    return max(apart[:FIRST]) > FIRST_BOUND or max(apart) > BOUND


sys.exit(main(*sys.argv[1:]))
