#!/usr/bin/env python3
"""Bytes of casts in a training step under three policies: autocast, the colouring of TensorFlow's grappler
(auto_mixed_precision), and `fewest_casts(true)`.

    bench/cast_policies.py AMPC [--out FILE.md] [JOB ...]

The job is compiled in f16; `forward` is its first block after pass precision, without the casts of that pass. Grappler's
lists name ops of TensorFlow. Here an op of category low is on its allow list, one of category f32 on its deny list, one that
moves or picks elements on its clear list, any other one on its infer list. So the three policies differ only in the ops that
autocast leaves free.

`each by itself`: every cast of an activation is a kernel that reads its operand and stores its result, and backward casts the
gradient back. All readers share the cast of a value. Casts of weights are not counted.

`moved`: what `ampc --explain` counts in the compiled step: casts that are kernels of their own, and values that memory holds
in both forms. Types of grappler cannot be compiled, so they have no such number."""
import argparse
import datetime
import glob
import json
import math
import os
import re
import subprocess
from collections import namedtuple

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SIZE = {"f32": 4, "f16": 2, "bf16": 2}
CLEAR = set("""detach reshape expand transpose permute slice cat pad flip_axis index_select gather neg abs sign floor ceil round relu
maximum minimum where clamp amax amin max_along min_along max_pool2d full full_like like drop carry next turn stack""".split())
LINE = re.compile(r"^%(\d+) = (\w+) (\w+)\[(.*?)\](?: nhwc)?((?: %\d+)*)(.*?)\s+# \S+ (.*)$", re.M)
Node = namedtuple("Node", "op type elements inputs reason")


def run(ampc, *command):
    return subprocess.run([ampc, *command], capture_output=True, text=True, check=True).stdout


def categories(ampc):
    return dict(re.findall(r"^(\w+) +(low|f32|promote|none|fixed)\b", run(ampc, "--list-ops"), re.M))


def forward(ampc, job, *options):
    """{id: Node} of the first block. A value that pass precision has cast is read without the cast."""
    nodes, source = {}, {}
    for m in LINE.finditer(run(ampc, "--dump-after=precision", *options, job).split("\n# ")[0]):
        sizes = [int(n) for n in m[4].split(",") if n.strip()]
        inputs = [source.get(i, i) for i in map(int, re.findall(r"%(\d+)", m[5]))]
        if m[2].startswith("batch_norm"):
            inputs = inputs[:1]  # its statistics and weights are f32 in any case
        if m[2] == "cast" and m[7].startswith("for "):
            source[int(m[1])] = inputs[0]
        else:
            nodes[int(m[1])] = Node(m[2], m[3], math.prod(sizes), inputs, m[7])
    return nodes


AS_IS = re.compile("channel_|running_|index_select|check_index|metric|minimize")  # take each operand in its type


def live(nodes):
    """The nodes that the loss depends on, and of these the ones whose gradients are computed."""
    needed = {i for i, n in nodes.items() if n.op == "minimize"}
    for i in reversed(nodes):
        if i in needed:
            needed |= set(nodes[i].inputs)
    trained = set()
    for i, n in nodes.items():
        if n.op == "param" or (n.type in SIZE and trained & set(n.inputs)):
            trained.add(i)
    return needed, trained & needed


def computes(nodes, i):
    """The type in which an op takes its floats, under the policy of the dump."""
    n, reason = nodes[i], nodes[i].reason
    if " runs in f32" in reason or reason == "state is f32":
        return "f32"
    return n.type if n.type in SIZE else None  # comparisons and integers take what they get


def each_by_itself(nodes, takes):
    """Bytes of the casts of a policy. takes: {id: the type in which the op takes its floats; None: any}"""
    needed, trained = live(nodes)
    gives = {i: n.type if n.op in ("source", "param") or AS_IS.match(n.op) else takes[i] for i, n in nodes.items()}
    wanted = {i: set() for i in nodes}
    for r in needed:
        for x in nodes[r].inputs if not AS_IS.match(nodes[r].op) else []:
            wanted[x].add(takes[r])
    total = 0
    for i, n in nodes.items():
        if i in needed and n.type in SIZE and n.op not in ("param", "number", "setting") and gives[i]:
            moved = sum(n.elements * (SIZE[w] + SIZE[gives[i]]) for w in wanted[i] - {None, gives[i]})
            total += moved * (2 if i in trained else 1)
    return total


# ---- grappler ---------------------------------------------------------------------------------------------

def grappler(nodes, category, low):
    """{id: type}: the four passes of auto_mixed_precision.cc, from the lists to the colours."""
    kind = {}
    for i, n in nodes.items():
        free = category.get(n.op) in ("none", "promote", "low", "f32")
        fixed = not free or n.op in ("source", "param") or "pin " in n.reason or n.type not in SIZE
        kind[i] = None if fixed else {"low": "allow", "f32": "deny"}.get(category[n.op], "clear" if n.op in CLEAR else "infer")
    readers = {i: [] for i in nodes}
    for i, n in nodes.items():
        for x in n.inputs:
            readers[x].append(i)
    allow = {i for i in nodes if kind[i] == "allow"}
    if not allow:
        return {i: "f32" for i in nodes}
    # deny: forward through infer and clear; a clear op only on the way to an infer or deny op
    below = set()
    for i, n in nodes.items():
        if any(kind[x] == "deny" or x in below for x in n.inputs) and kind[i] in ("infer", "clear", "deny"):
            below.add(i)
    deny = {i for i in nodes if kind[i] == "deny"} | {i for i in below if kind[i] == "infer"}
    for i in reversed(nodes):
        if i in below and kind[i] == "clear" and any(r in deny for r in readers[i]):
            deny.add(i)
    # allow: between allow ops, through clear and infer; then in both directions through clear
    through = {i for i in nodes if kind[i] in ("clear", "infer") and i not in deny}
    down, up = set(), set()
    for i, n in nodes.items():
        if i in through and any(x in allow or x in down for x in n.inputs):
            down.add(i)
    for i in reversed(nodes):
        if i in through and any(r in allow or r in up for r in readers[i]):
            up.add(i)
    allow |= down & up
    todo = list(allow)
    while todo:
        i = todo.pop()
        for j in readers[i] + nodes[i].inputs:
            if kind[j] == "clear" and j not in deny and j not in allow:
                allow.add(j)
                todo.append(j)
    return {i: None if kind[i] is None and nodes[i].type not in SIZE else low if i in allow else "f32" for i in nodes}


# ---- the table ----------------------------------------------------------------------------------------------

HEAD = """# Bytes of casts under three policies

{date}. `bench/cast_policies.py` explains what is counted; ampc {ampc}. MB of 10^6 bytes; one training step
in f16; times are predicted.

| Job | each by itself: autocast | grappler | fewest | moved: autocast | fewest | memory: autocast | fewest | all bytes: autocast | fewest | ms, H200: autocast | fewest |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def explained(ampc, job, *options):
    found = json.loads(run(ampc, "--explain=json", *options, job))
    return [found["cast_bytes"] / 1e6, found["memory_bytes"] / 1e6, (found["read"] + found["written"]) / 1e6,
            found["predicted"]["us"] / 1e3]


def row(ampc, job, category):
    options = ["--set", "precision=f16"]
    fewest = options + ["--set", "fewest_casts=true"]
    nodes, narrow = forward(ampc, job, *options), forward(ampc, job, *fewest)
    if not any(n.op == "minimize" for n in nodes.values()):
        return ""
    each = [each_by_itself(nodes, {i: computes(nodes, i) for i in nodes}), each_by_itself(nodes, grappler(nodes, category, "f16")),
            each_by_itself(narrow, {i: computes(narrow, i) for i in narrow})]
    cells = [f"{b / 1e6:.1f}" for b in each]
    for name, a, b in zip(("moved", "memory", "bytes", "ms"), explained(ampc, job, *options), explained(ampc, job, *fewest)):
        digits = 2 if name in ("moved", "ms") else 0
        cells += [f"{a:.{digits}f}", f"{b:.{digits}f}"]
    name = os.path.relpath(job, os.path.join(ROOT, "models")).removesuffix(".amp")
    return f"| {name} | " + " | ".join(cells) + " |\n"


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("ampc")
    reader.add_argument("jobs", nargs="*", metavar="JOB", help="default: all models that train")
    reader.add_argument("--out", help="write the table there")
    options = reader.parse_args()
    jobs = options.jobs or sorted(glob.glob(os.path.join(ROOT, "models", "*", "*.amp")))
    version = run(options.ampc, "--version").split("\n")[0]
    text = HEAD.format(date=datetime.date.today(), ampc=version.removeprefix("ampc "))
    category = categories(options.ampc)
    for job in jobs:
        if re.search(r"^train ", open(job, encoding="utf-8").read(), re.M):
            text += row(options.ampc, job, category)
    print(text)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
