#!/usr/bin/env python3
"""cost.py AMP [--rewrite]: compares the cost of kernels on an H200 (`amp inspect --gpu`) with the budget cost.tsv:
kernels of each access pattern, kernels of models, and the sums of models' training steps. A kernel may need no more
instructions per element and no more microseconds than the budget; a kernel bound by memory must remain so.

--rewrite prints the budget for the present kernels. Read the diff before you commit it:   tests/inspect/cost.py build/amp --rewrite >/tmp/cost && mv /tmp/cost tests/inspect/cost.tsv
Exits with status 77 without NVRTC."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SLACK = 1.10  # another version of NVRTC schedules and unrolls differently
MODELS = ["models/fashion_mnist/fashion_mnist.amp", "models/fashion_mnist/mlp.amp"]  # their train blocks
SUMS = MODELS + ["models/mnist_cnn/mnist_cnn.amp"]
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
    """Instructions per element of the largest shape; the bound of the slowest command, and its microseconds."""
    counted = [c for c in commands if "instructions" in c]
    elements = max(c["elements"] for c in counted)
    longest = max(counted, key=lambda c: c["predicted_us"])
    return sum(c["instructions"] for c in counted) / elements, longest["bound"], longest["predicted_us"]


def ops_of(command):
    """The ops of a kernel, each once."""
    return " ".join(dict.fromkeys(n["op"] for n in command["nodes"]))


def measure(amp):
    """{(job, pattern or ops): (instructions per element, bound, us)}; for sums (number, "sum", 0)"""
    out = {}
    blocks = inspect(amp, PATTERNS)
    if blocks is None:
        return None
    for block in blocks:
        out[PATTERNS, block["name"]] = row_of(block["commands"])
    for job in SUMS:
        train = inspect(amp, job)[0]
        same = {}  # kernels by their ops
        for c in train["commands"] if job in MODELS else []:
            if "instructions" in c:
                same.setdefault(ops_of(c), []).append(c)
        for ops, kernels in same.items():
            out[job, ops] = row_of([max(kernels, key=lambda c: c["predicted_us"])])
        out[job, "sum: nodes"] = train["launches"], "sum", 0
        out[job, "sum: MB"] = train["bytes"] / 1e6, "sum", 0
        out[job, "sum: us"] = train["predicted_us"], "sum", 0
    return out


def read_budget():
    with open(os.path.join(HERE, "cost.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {(job, pattern): (float(each), bound, float(us)) for job, pattern, each, bound, us in rows}


def slack_of(key):
    """Nodes and bytes depend on the plan alone, not on NVRTC, so they have no slack."""
    return 1.0 if key[1] in ("sum: nodes", "sum: MB") else SLACK


def faults(key, now, budget):
    """Sentences about what is over budget."""
    (each, bound, us), (most, wanted, most_us) = now, budget
    if each > most * slack_of(key) + 0.1:
        unit = key[1] if wanted == "sum" else "instructions per element"
        yield f"{each:.1f} {unit}, the budget is {most:.1f}"
    if us > most_us * SLACK + 0.1:
        yield f"{us:.1f} us, the budget is {most_us:.1f}"
    if wanted == "memory" and bound != "memory":
        yield f"bound by {bound}, no longer by memory"


def check(now, budget):
    bad = 0
    for key in sorted(set(now) | set(budget)):
        name = " ".join(key)
        if key in now and key in budget:
            found = list(faults(key, now[key], budget[key]))
        else:
            found = ["no line in cost.tsv" if key in now else "cost.tsv has a line for a kernel that no longer exists"]
        for text in found:
            print(f"FAILED: {name}: {text}")
        bad += len(found)
        if not found and list(faults(key, budget[key], now[key])):
            print(f"better: {name}: {now[key]}, the budget is {budget[key]}: rewrite cost.tsv")
    print(f"{len(now)} patterns, kernels and sums, {bad} over budget")
    return 1 if bad else 0


def main():
    now = measure(sys.argv[1])
    if now is None:
        print("skipped: NVRTC is not on this machine")
        return 77
    if "--rewrite" not in sys.argv:
        return check(now, read_budget())
    print("# The cost that kernels may have on an H200: job, pattern or ops, instructions per element, bound, us of the")
    print("# slowest one; for a step, its sums.")
    for (job, pattern), (each, bound, us) in now.items():
        print(f"{job}\t{pattern}\t{each:.1f}\t{bound}\t{us:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
