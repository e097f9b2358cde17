#!/usr/bin/env python3
"""labels.py AMPC AMP: batches with ignored labels. A batch without any other label trains nothing, and is in no mean:
the run is the one on the data without it. A step of K batches is one with a batch K times as large, also if the labels
that count are not spread evenly."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from array import array

AMPC, AMP = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
work = tempfile.TemporaryDirectory()
os.chdir(work.name)


def write_npy(path, kind, rows, shape):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (117 - len(header)) + "\n"
    flat = array({"<f4": "f", "<i8": "q"}[kind], rows)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + flat.tobytes())


def write_data(folder, x, y, m):
    os.makedirs(folder)
    write_npy(f"{folder}/x.npy", "<f4", [v for row in x for v in row], (len(x), 4))
    write_npy(f"{folder}/y.npy", "<i8", y, (len(y),))
    write_npy(f"{folder}/m.npy", "<f4", m, (len(m),))


def tensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {k: array("f", data[slice(*e["data_offsets"])]) for k, e in header.items() if e["dtype"] == "F32"}


def run(name, loss, *options, precision="f32", data="data", block="batch=8", optimizer="SGD(net, lr=0.5)", samples=2):
    """Trains; returns the weights, the events and stderr."""
    with open(f"{name}.amp", "w", encoding="utf-8") as f:
        f.write(f"""data d() {{ return npy("{data}/x.npy"), npy("{data}/y.npy"), npy("{data}/m.npy") }}
model net = Linear(4, 3)
optimizer opt = {optimizer}
precision {precision}
train x, y, m in d() with {block}, shuffle=false, drop_last=false, epochs=2 {{ minimize {loss} with opt }}
eval x, y, m in d() with batch={samples} {{ metric e = cross_entropy(net(x), y) }}
""")
    command = [AMP, "train", f"{name}.amp", "--device", "cpu", "--quiet", "--json", "--log", "1", "--save-weights",
               f"{name}.safetensors", *options]
    p = subprocess.run(command, capture_output=True, text=True, check=False)
    assert p.returncode == 0, (name, p.returncode, p.stderr)
    return tensors(f"{name}.safetensors"), [json.loads(line) for line in p.stdout.splitlines()], p.stderr


def close(name, a, b, most):
    worst = max(abs(x - y) for k in a for x, y in zip(a[k], b[k]))
    assert a.keys() == b.keys() and worst <= most, (name, worst)
    print(f"ok: {name}: {worst:.1e}")


def losses(events):
    return [e["metrics"]["loss"] for e in events if e["event"] == "step"]


# ---- batches without labels --------------------------------------------------------------------------------
draw = random.Random(3)
N = 48
x = [[draw.gauss(0, 1) for _ in range(4)] for _ in range(N)]
y = [draw.choice([0, 1, 2, -100]) for _ in range(N)]
y[0:2] = [-100] * 2
y[20:24] = [-100] * 4
m = [draw.random() * (label >= 0) for label in y]
write_data("data", x, y, m)
kept = [i for k in range(0, N, 2) if y[k:k + 2] != [-100, -100] for i in (k, k + 1)]
write_data("kept", [x[i] for i in kept], [y[i] for i in kept], [m[i] for i in kept])
empty = N // 2 - len(kept) // 2
for precision in "f32", "bf16", "f16":
    a, events, err = run("all", "cross_entropy(net(x), y)", precision=precision, block="batch=2")
    b, short, _ = run("short", "cross_entropy(net(x), y)", precision=precision, block="batch=2", data="kept")
    close(f"{precision}: batches without labels change nothing", a, b, 0)
    assert err.count("no element of a batch enters its loss") == 1, err
    steps = [e for e in events if e["event"] == "step"]
    assert steps[-1]["empty"] == 2 * empty and steps[-1]["skipped"] == 0 and steps[-1]["scale"] >= 1, steps[-1]
    assert [v for v in losses(events) if v is not None] == losses(short) and losses(events)[0] is None
    last = [[e["metrics"]["e"] for e in run if e["event"] == "eval"][-1] for run in (events, short)]
    assert abs(last[0] - last[1]) < 1e-6, last

# ---- a step of several batches -----------------------------------------------------------------------------
CASES = {
    "ignored": "cross_entropy(net(x), y)",
    "class weights": "-0.5 * cross_entropy(net(x), y, weight=tensor([0.1, 1.0, 3.0]), label_smoothing=0.1) * -1.0",
    "a mask": "((net(x) - 1.0) ** 2 * m.unsqueeze(1)).sum() / clamp(m.sum(), min=1.0)",
    "two terms": "cross_entropy(net(x), y) + nll_loss(log_softmax(2.0 * net(x), 1), y) + 0.01 * (net.weight ** 2).sum()",
}
for name, loss in CASES.items():
    big, events, _ = run("big", loss, block="batch=8")
    for batch in 1, 2:
        part, parts, _ = run("part", loss, block=f"batch={batch}", optimizer=f"SGD(net, lr=0.5, accumulate={8 // batch})")
        close(f"{name}: {8 // batch} batches of {batch}", big, part, 1e-6)
        if name != "a mask":  # the report weights the batches by their divisors, at least 1 each
            assert max(abs(p - q) for p, q in zip(losses(events), losses(parts), strict=True)) < 1e-6
ADAM = "AdamW(net, lr=0.01, clip_norm=0.1{})"
big, _, _ = run("big", CASES["ignored"], block="batch=20", optimizer=ADAM.format(""))
four = {"block": "batch=5", "optimizer": ADAM.format(", accumulate=4")}
part, _, _ = run("part", CASES["ignored"], **four)
close("clipped, with a smaller last step and batch", big, part, 1e-6)
run("part", CASES["ignored"], "--steps", "2", "--save", "two.ckpt", **four)
again, _, _ = run("part", CASES["ignored"], "--resume", "two.ckpt", **four)
close("resumed", part, again, 0)
shards, _, _ = run("part", CASES["ignored"], block="batch=5, shards=4", optimizer=four["optimizer"], samples=20)
close("with shards", big, shards, 1e-6)
big, _, _ = run("big", CASES["ignored"], precision="f16")
part, parts, _ = run("part", CASES["ignored"], precision="f16", block="batch=2", optimizer="SGD(net, lr=0.5, accumulate=4)")
close("f16", big, part, 1e-3)
assert parts[-2]["event"] == "eval" and [e for e in parts if e["event"] == "step"][-1]["skipped"] == 0

# ---- a loss of which this does not hold, and the cure that the warning names -----------------------------------
MIXED = "cross_entropy(net(x), y) + ((net(x) - 1.0) ** 2).mean()"
big, _, err = run("big", MIXED)
assert "W611" not in err
_, _, err = run("part", MIXED, block="batch=2", optimizer="SGD(net, lr=0.5, accumulate=4)")
assert "W611" in err and "a batch 4 times as large" in err, err
shards, _, err = run("part", MIXED, block="batch=8, shards=4", samples=8)  # 4 members, as on 4 ranks
assert "W611" not in err
close("the cure of W611", big, shards, 1e-6)

# ---- an emitted program ------------------------------------------------------------------------------------
part, _, _ = run("part", CASES["ignored"], block="batch=2", optimizer="SGD(net, lr=0.5, accumulate=4)")
build = subprocess.run([AMPC, "--build-line", "-o", "part.c", "part.amp"], capture_output=True, text=True, check=True)
subprocess.run([AMPC, "-o", "part.c", "part.amp"], check=True, capture_output=True)
subprocess.run(build.stdout, shell=True, check=True)
subprocess.run(["./part", "--quiet", "--save-weights", "emitted.safetensors"], check=True, capture_output=True)
close("emitted", part, tensors("emitted.safetensors"), 0)
