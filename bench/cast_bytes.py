#!/usr/bin/env python3
"""Counts the bytes that casts between float types move in one forward and backward pass, and those of torch.autocast("cuda").

    bench/cast_bytes.py AMPC [--out FILE.md]

PyTorch: the bytes that each aten._to_copy reads and writes, if it changes a float type. The program runs with fake tensors
(tests/parity), with the net, the batch and the sizes of the job. Weights are cast once a step (autocast's cache).

ampc: counted in the graph after pass fuse, which decides which nodes share a kernel.
 - For a cast that is alone in its kernel: the bytes that it reads and writes.
 - For a cast in a kernel that computes with the value anyway: nothing, or the bytes that it writes if both forms of the value
   are in memory.
 - For working copies of weights, which the optimizer's kernel writes with the masters: the bytes of the copies.
The column `each by itself` counts every cast of the graph as a kernel of its own, as in PyTorch."""
import argparse
import datetime
import logging
import math
import os
import subprocess
import sys
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "parity"))
import ours  # noqa: E402

JOBS = "resnet50/resnet50", "bert_large/bert_large", "gpt2/gpt2"
SIZE = {"f32": 4, "f16": 2, "bf16": 2}


# ---- ours -----------------------------------------------------------------------------------------------

def group_of(node):
    words = [w for w in node.rest.split() if w.startswith("group=")]
    return words[0] if words else None


def readers_in(nodes):
    """{id: the groups that read it}, also through views that belong to no command."""
    found = {i: set() for i in nodes}
    for i in reversed(nodes):
        node, group = nodes[i], group_of(nodes[i])
        for value in node.inputs:
            found[value] |= {group} if group else found[i]
    return found


def memory_of(nodes, i):
    """The id of the value in memory of which this one is a view, or of itself."""
    while nodes[i].op in ours.VIEWS and nodes[i].op != "cast" and not group_of(nodes[i]):
        i = nodes[i].inputs[0]
    return i


def own_bytes(ampc, job, precision):
    """Bytes of casts alone in a kernel, of second forms in memory, of working copies, and of all casts as single kernels."""
    nodes = ours.first_block(ampc, job, precision, "fuse")
    read, members = readers_in(nodes), {}
    for i, node in nodes.items():
        members.setdefault(group_of(node), []).append(node)
    alone = both = copies = each = 0
    for i, node in nodes.items():
        if node.op != "cast" or node.type not in SIZE or nodes[node.inputs[0]].type not in SIZE:
            continue
        source, group, n = memory_of(nodes, node.inputs[0]), group_of(node), math.prod(node.sizes)
        moved = n * (SIZE[node.type] + SIZE[nodes[source].type])
        if nodes[source].op == "param" and not group:
            copies += n * SIZE[node.type]
            continue
        each += moved
        if group and all(other.op in ours.VIEWS for other in members[group]):
            alone += moved
        elif group and read[i] - {group}:
            kept = group_of(nodes[source]) != group or bool(read[source] - {group})
            both += n * SIZE[node.type] * kept
    return alone, both, copies, each + copies


# ---- PyTorch's ------------------------------------------------------------------------------------------

def torch_bytes(job, precision):
    """Bytes of casts in forward and in backward, and the number of casts."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    import nets

    class Count(TorchDispatchMode):
        total, calls = 0, 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if function is torch.ops.aten._to_copy.default:
                x = args[0]
                if x.is_floating_point() and out.is_floating_point() and x.dtype != out.dtype:
                    self.total += x.numel() * (x.element_size() + out.element_size())
                    self.calls += 1
            return out

    make, loss_of = nets.NETS[job]
    with FakeTensorMode(), torch.device("cuda"), Count() as count:
        net = make().train()
        with torch.autocast("cuda", dtype=getattr(torch, {"f16": "float16", "bf16": "bfloat16"}[precision])):
            loss = loss_of(net)
        forward = count.total
        loss.backward()
    return forward, count.total - forward, count.calls


# ---- the table ----------------------------------------------------------------------------------------

HEAD = """# Bytes of casts in a step, compared with torch.autocast

{date}. `bench/cast_bytes.py` explains what is counted; ampc {ampc}, PyTorch {torch}. MB of 10^6 bytes, for a forward and
a backward pass over the batch of each job. Both sides count bytes and no time, so no GPU is used.

| Job | Precision | PyTorch forward | backward | casts | ampc: alone | both forms kept | working copies | sum | of PyTorch's | each by itself |
|---|---|---|---|---|---|---|---|---|---|---|
"""


def row(ampc, job, precision):
    forward, backward, calls = torch_bytes(job, precision)
    alone, both, copies, each = own_bytes(ampc, job, precision)
    total = alone + both + copies
    cells = [f"{forward / 1e6:.0f}", f"{backward / 1e6:.0f}", str(calls), f"{alone / 1e6:.1f}", f"{both / 1e6:.1f}",
             f"{copies / 1e6:.1f}", f"{total / 1e6:.1f}", f"{100 * total / (forward + backward):.1f} %", f"{each / 1e6:.0f}"]
    return f"| {job.split('/')[1]} | {precision} | " + " | ".join(cells) + " |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ampc")
    parser.add_argument("--out", help="write the table there")
    arguments = parser.parse_args()
    import make_table
    import torch
    make_table.with_one_gpu()
    warnings.simplefilter("ignore")
    logging.disable()
    make_table.pretend_cuda()
    version = subprocess.run([arguments.ampc, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    text = HEAD.format(date=datetime.date.today(), ampc=version.removeprefix("ampc "), torch=torch.__version__)
    text += "".join(row(arguments.ampc, job, p) for job in JOBS for p in ("f16", "bf16"))
    print(text)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
