#!/usr/bin/env python3
"""check_gpu.py JSON [JSON-WITH-CUDNN]: checks the output of `amp inspect --gpu h200 --json` for small.amp: its
keys, its sums, and counts made by hand. With a second file, the first one is the output with --no-cudnn and
must have the same number of nodes and bytes, because a stem has no columns.
check_gpu.py --columns JSON: the bytes of --no-cudnn's columns in convolutions.amp.
check_gpu.py --unavoidable JSON: the unavoidable bytes of unavoidable.amp.
check_gpu.py --residual JSON: the unavoidable bytes of residual.amp."""

import json
import sys

BLOCK = {"name", "batch", "remainder", "every", "launches", "bytes", "unavoidable", "instructions", "predicted_us", "commands"}
COST = {"launches", "bytes", "predicted_us", "bound", "roof", "l2_bytes", "threads"}
KERNEL = {"instructions", "instructions_per_element", "slots", "longest", "walked"}
TIMES = ["dram_us", "l2_us", "issue_us", "latency_us", "tensor_us"]


def check(what, good, *seen):
    if not good:
        print("FAILED:", what, *seen)
        sys.exit(1)


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1)


def check_cost(cost, node_us):
    name = cost["name"]
    check(f"keys of {name}", COST | set(TIMES) <= set(cost), list(cost))
    if cost["kind"] == "kernel":
        check(f"kernel {name}", KERNEL <= set(cost) and "tensor" not in cost, list(cost))
        check(f"time of {name}", near(cost["predicted_us"], max(cost[t] for t in TIMES) + node_us), cost)
        check(f"slots of {name}", cost["slots"] * 32 >= cost["instructions"] > 0, cost)
        check(f"bytes of {name}", cost["bytes"] == cost["read"] + cost["written"], cost)
    else:
        check(f"product {name}", "tensor" in cost, list(cost))
        check(f"reason of {name}", cost["tensor"] == ("why_not" not in cost), cost)
    check(f"roof of {name}", 0 <= cost["roof"] <= 1, cost)


def check_block(block, node_us):
    check("keys of a block", BLOCK <= set(block), list(block))
    commands = block["commands"]
    for c in commands:
        check_cost(c, node_us)
    for key in ("launches", "bytes", "predicted_us"):
        check(f"sum of {key}", near(block[key], sum(c[key] for c in commands)), block[key])
    check("unavoidable", 0 < block["unavoidable"] <= block["bytes"], block["unavoidable"], block["bytes"])


def check_columns():
    """Layer `wide`, f32: x [32, 6, 6, 24], w [384, 3, 3, 24], y [32, 2, 2, 384]. Its columns are written and
    read; for the gradient of x, so are those of dy, and the weights are transposed first. Forward has a bias. The
    gradient of the weights is added to its slot."""
    job = json.load(open(sys.argv[2], encoding="utf-8"))
    for block in job["blocks"]:
        check_block(block, job["gpu"]["node_us"])
    x, w, y = (4 * n for n in (32 * 36 * 24, 384 * 9 * 24, 32 * 4 * 384))
    columns, back = 32 * 4 * 9 * 24 * 4, 32 * 36 * 9 * 384 * 4
    want = {"conv2d": x + 2 * columns + w + 4 * 384 + y, "conv2d_data": y + 2 * back + 3 * w + x,
            "conv2d_weight": x + 2 * columns + y + 2 * w}
    for c in job["blocks"][0]["commands"]:
        op = c["nodes"][0]["op"]
        if c["kind"] == "conv" and c["name"].startswith("wide"):
            check(f"bytes of {op}", c["bytes"] == want.pop(op), c["bytes"])
            check(f"launches of {op}", c["launches"] == 2, c["launches"])
    check("the three convolutions of `wide`", not want, want)
    print("ok: --gpu --no-cudnn: columns")


def check_unavoidable():
    """Values of [64, 256], f32. The first walk reads h and writes r and h * r. The second reads h, from which it
    recomputes r, and both results, and writes one value. The third reads that value for the mean. Products read and
    write their operands; those of a are x [64, 128], w [256, 128] and h. The mean is written and read."""
    job = json.load(open(sys.argv[2], encoding="utf-8"))
    value, square = 4 * 64 * 256, 4 * 256 * 256
    products = 4 * 128 * (64 + 256) + value + 3 * (2 * value + square)
    got = job["blocks"][0]["unavoidable"]
    check("unavoidable", got == products + (3 + 4 + 1) * value + 2 * 4, got)
    print("ok: --gpu: unavoidable bytes")


def check_residual():
    """Values of [64, 256], f32. Products compute x0 and r1 .. r5, whose sum is x5. The walks before the products read: x0;
    x0, r1; x0, r1, r2; x2, r3 for x3 = x2 + r3, where the walk before stores x2; x2, r3, r4. x4 = x3 + r4 is stored in the
    same way and read with r5 for the mean. Each of the five walks writes an operand of a product. The operands of a product
    are two values and a square."""
    job = json.load(open(sys.argv[2], encoding="utf-8"))
    value, square = 4 * 64 * 256, 4 * 256 * 256
    products = 5 * (2 * value + square)
    got = job["blocks"][0]["unavoidable"]
    check("unavoidable", got == products + (1 + 2 + 3 + 2 + 3 + 2 + 2 + 5) * value + 2 * 4, (got - products) / value)
    print("ok: --gpu: unavoidable bytes of a residual stream")


def main():
    if sys.argv[1] == "--unavoidable":
        return check_unavoidable()
    if sys.argv[1] == "--residual":
        return check_residual()
    if sys.argv[1] == "--columns":
        return check_columns()
    job = json.load(open(sys.argv[1], encoding="utf-8"))
    check("keys", {"job", "precision", "gpu", "cudnn", "blocks"} <= set(job), list(job))
    for block in job["blocks"]:
        check_block(block, job["gpu"]["node_us"])
    train = job["blocks"][0]
    # A stem of one channel, padded to eight, with four results; a layer of three: rows of 8 and 6 bytes.
    why = {c["nodes"][0]["op"]: c.get("why_not") for c in train["commands"] if c["kind"] != "kernel"}
    own = {c["nodes"][0]["op"]: c.get("own") for c in train["commands"] if c["kind"] == "conv"}
    no_cudnn = len(sys.argv) > 2
    check("tensor cores", why["conv2d"] and "16 bytes" in why["conv2d"], why)
    check("own kernels", "no cuDNN" in own["conv2d"] if no_cudnn else own["conv2d"] is None, own)
    reason = "no cuDNN" if no_cudnn else "no engine for odd channels"
    check("no engine", reason in own["conv2d_weight"], own)
    if no_cudnn:
        cudnn = json.load(open(sys.argv[2], encoding="utf-8"))["blocks"][0]
        check("a padded stem has columns", train["launches"] == cudnn["launches"] + 1 and train["bytes"] > cudnn["bytes"],
              train["bytes"], cudnn["bytes"])
    print("ok: --gpu --json")


main()
