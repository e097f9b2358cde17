#!/usr/bin/env python3
"""weight_casts.py AMPC: tests that no step of a model casts a weight, in the graph from which the plan is made.

If an op needs an f32 weight in 16 bits, the graph has a cast node. The optimizer's kernel writes that 16-bit copy, so the
node belongs to no command: it has no group= in the dump after pass fuse. A cast of a weight with group= would run in each
step."""
import subprocess
import sys
import tempfile

import ours

MODELS = "gpt2/gpt2", "bert_large/bert_large", "resnet50/resnet50"
PRECISIONS = "f16", "bf16"
PLANTED = """module M {
  w = Parameter([64, 32]); fc = Linear(64, 10)
  def forward(x) { return fc(relu(linear(x, w.view(32, 64).transpose(0, 1)))) }
}
model net = M()
optimizer opt = SGD(net, lr=0.1)
data numbers() { return synthetic(100, [32]), synthetic(100, [], dtype=i64, low=0, high=10) }
precision f16
train x, y in numbers() with batch=10 { minimize cross_entropy(net(x), y) with opt }
"""


def count(nodes):
    """Counts the weights that have a 16-bit copy, and the casts of weights that belong to a command."""
    of_weight, copies, casts = set(), set(), []
    for i, node in nodes.items():
        if node.op == "param" and node.type == "f32":
            of_weight.add(i)
        elif node.op in ours.VIEWS and node.inputs and node.inputs[0] in of_weight:
            if node.op != "cast":
                of_weight.add(i)
            elif "group=" in node.rest:
                casts.append(i)
            else:
                copies.add(node.inputs[0])
    return len(copies), len(casts)


def main():
    ampc, = sys.argv[1:]
    failed = False
    with tempfile.NamedTemporaryFile("w", suffix=".amp") as f:
        f.write(PLANTED)
        f.flush()
        text = subprocess.run([ampc, "--dump-after=fuse", f.name], capture_output=True, text=True, check=True).stdout
    if count(ours.nodes_of(text)) != (2, 1):  # two copies of fc; a cast of a transposed view, which PyTorch runs in each step, too
        print("the planted cast of a transposed weight is not found")
        failed = True
    for job in MODELS:
        for precision in PRECISIONS:
            copies, casts = count(ours.first_block(ampc, job, precision, "fuse"))
            print(f"{job} {precision}: {copies} weights with a 16-bit copy, {casts} casts of weights in the step")
            failed = failed or not copies or casts
    sys.exit(failed)


if __name__ == "__main__":
    main()
