#!/usr/bin/env python3
"""cost.py AMP [--rewrite]: what kernels of each access pattern cost on an H200 (`amp inspect --gpu`),
against the budget cost.tsv: no more instructions an element, and memory where it says memory.

--rewrite prints the budget as it would be for the kernels of today: look at the difference before it
is kept:   tests/inspect/cost.py build/amp --rewrite >/tmp/cost && mv /tmp/cost tests/inspect/cost.tsv
Exits with 77 where NVRTC is not."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SLACK = 1.10  # another NVRTC orders and unrolls in another way
# Of the models: the commands that compute these, in their train block.
MODEL_OPS = {
    "models/fashion_mnist/fashion_mnist.amp":
        ["batch_norm", "channel_moments", "channel_mean", "max_pool2d", "batch_norm_sums", "channel_total",
         "max_pool2d_backward", "batch_norm_backward", "mean", "cross_entropy_rows", "grad_norm", "sgd_update"],
    "models/fashion_mnist/mlp.amp": ["drop", "cast", "adam_update"],
}
PATTERNS = "tests/inspect/patterns.amp"


def inspect(amp, job):
    """The blocks of a job; None without NVRTC."""
    done = subprocess.run([amp, "inspect", "--gpu", "h200", "--json", job], cwd=ROOT, text=True, capture_output=True)
    if done.returncode == 4 and "NVRTC" in done.stderr and "not on this machine" in done.stderr:
        return None
    if done.returncode:
        sys.exit(f"FAILED: amp inspect --gpu h200 {job}: status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["blocks"]


def row_of(commands):
    """Instructions an element of the greatest shape, and what bounds the command that takes longest."""
    counted = [c for c in commands if "instructions" in c["cost"]]
    elements = max(c["elements"] for c in counted)
    longest = max(counted, key=lambda c: c["cost"]["us"])
    return sum(c["cost"]["instructions"] for c in counted) / elements, longest["cost"]["bound"]


def measure(amp):
    """{(job, pattern): (instructions an element, bound)}"""
    out = {}
    blocks = inspect(amp, PATTERNS)
    if blocks is None:
        return None
    for block in blocks:
        out[PATTERNS, block["name"]] = row_of(block["commands"])
    for job, ops in MODEL_OPS.items():
        train = inspect(amp, job)[0]["commands"]
        for op in ops:
            found = [c for c in train if any(n["op"] == op for n in c["nodes"]) and "instructions" in c["cost"]]
            if not found:
                sys.exit(f"FAILED: {job} has no kernel of {op}: change MODEL_OPS")
            out[job, op] = row_of([max(found, key=lambda c: c["cost"]["us"])])
    return out


def read_budget():
    with open(os.path.join(HERE, "cost.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {(job, pattern): (float(each), bound) for job, pattern, each, bound in rows}


def check(now, budget):
    bad = 0
    for key in sorted(set(now) | set(budget)):
        name = " ".join(key)
        if key not in now or key not in budget:
            print(f"FAILED: {name}: " + ("no line in cost.tsv" if key in now else "nothing of that name is left"))
            bad += 1
            continue
        (each, bound), (most, wanted) = now[key], budget[key]
        if each > most * SLACK + 0.1:
            print(f"FAILED: {name}: {each:.1f} instructions an element, of {most:.1f}")
            bad += 1
        elif wanted == "memory" and bound != "memory":
            print(f"FAILED: {name}: bound by {bound}, no longer by memory")
            bad += 1
        elif each < most / SLACK - 0.1 or (bound == "memory" and wanted != "memory"):
            print(f"better: {name}: {each:.1f} instructions an element of {most:.1f}, {bound}: rewrite cost.tsv")
    print(f"{len(now)} patterns, {bad} over budget")
    return 1 if bad else 0


def main():
    now = measure(sys.argv[1])
    if now is None:
        print("skipped: NVRTC is not on this machine")
        return 77
    if "--rewrite" not in sys.argv:
        return check(now, read_budget())
    print("# What kernels may cost on an H200: job, pattern or op, instructions an element, what bounds them.")
    for (job, pattern), (each, bound) in now.items():
        print(f"{job}\t{pattern}\t{each:.1f}\t{bound}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
