#!/usr/bin/env python3
"""Norms in logs: of gradients, weights and updates, compared with the weights in checkpoints before and after a step.
usage: norms.py AMP

SGD without momentum moves a weight by lr times its gradient, so the weights also give the gradients. Jobs: groups with
their own rates, accumulation, clipping, several optimizers, LAMB, bf16 weights, members, steps that overflow.
"""
import array
import csv
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

AMP = pathlib.Path(sys.argv[1]).resolve()
READER = pathlib.Path(__file__).resolve().with_name("read_events.py")
NET = """
data d() {{ x = synthetic(640, [8]); return x, x.sum(1) }}
module Net {{ fc1 = Linear(8, 33); fc2 = Linear(33, 1); def forward(x) {{ return fc2(relu(fc1(x)))[:, 0] }} }}
model net = Net()
{optimizer}
{precision}
train x, y in d() with batch=32, epochs=2 {{ minimize mse_loss(net(x), y) with {names} }}
"""
SGD = 'optimizer opt = SGD(net, lr=0.02) { group("**.bias", lr=0.5) }'


def amp(*args):
    done = subprocess.run([AMP, "train", "--device", "cpu", "-q", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, (args, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def weights(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        body = f.read()
    return {k: array.array("f", body[slice(*e["data_offsets"])]) for k, e in header.items() if k.startswith("fc")}


def norm(tensors):
    return math.sqrt(math.fsum(float(x) ** 2 for t in tensors for x in t))


def close(what, got, want, bound):
    assert got is not None and math.isclose(got, want, rel_tol=bound), (what, got, want)


def write(name, optimizer=SGD, precision="precision f32", names="opt"):
    pathlib.Path(name).write_text(NET.format(optimizer=optimizer, precision=precision, names=names))
    return name


def step_of(job, *args):
    """The line of step 3, and the weights before and after it."""
    amp(job, "--steps", 2, "--save", "before", *args)
    line = [e for e in amp(job, "--resume", "before", "--steps", 3, "--save", "after", "--json", *args) if e["event"] == "step"]
    assert len(line) == 1 and line[0]["step"] == 3
    amp(job, "--resume", "before", "--steps", 3, "--save", "plain", *args)
    assert pathlib.Path("plain").read_bytes() == pathlib.Path("after").read_bytes(), "norms change the weights"
    return line[0], weights("before"), weights("after")


def check(line, before, after, parts, bound=2e-6):
    """parts: key of a group -> the names of its parameters. Without several of them there is only the sum."""
    groups = {"." + key: names for key, names in parts.items()} if len(parts) > 1 else {}
    for suffix, names in {"": list(before), **groups}.items():
        change = [[b - a for a, b in zip(before[k], after[k])] for k in names]
        close("weight_norm" + suffix, line["weight_norm" + suffix], norm(after[k] for k in names), bound)
        close("update_norm" + suffix, line["update_norm" + suffix], norm(change), 100 * bound)
    names = [k for k in line if "_norm" in k]
    assert len(names) == 3 * (1 + len(groups)), names


def check_steps():
    both = {"opt": ["fc1.weight", "fc2.weight"], "opt.group1": ["fc1.bias", "fc2.bias"]}
    line, before, after = step_of(write("plain.amp"))
    check(line, before, after, both)
    assert math.isclose(line["lr.opt"], 0.02, rel_tol=1e-6) and line["lr.opt.group1"] == 0.5, line
    for key, names in both.items():
        gradient = [[(a - b) / line["lr." + key] for a, b in zip(before[k], after[k])] for k in names]
        close("grad_norm." + key, line["grad_norm." + key], norm(gradient), 2e-4)
    close("grad_norm", line["grad_norm"], math.hypot(*(line["grad_norm." + key] for key in both)), 1e-6)

    # before clipping, the same gradients; members have slices of the groups and other sums
    clipped, *_ = step_of(write("clip.amp", SGD.replace("lr=0.02", "lr=0.02, clip_norm=1e6")))
    assert clipped["grad_norm"] == line["grad_norm"]
    first = [amp(job, "--steps", 1, "--json", *more)[0] for job, more in (
        ("plain.amp", ()), (write("clip.amp", SGD.replace("lr=0.02", "lr=0.02, clip_norm=0.1")), ()),
        ("plain.amp", ("--set", "train.shards=4")))]
    assert first[1]["grad_norm"] == first[0]["grad_norm"] and first[1]["update_norm"] < first[0]["update_norm"]
    for name in (k for k in first[0] if "_norm" in k):
        close("four members, " + name, first[2][name], first[0][name], 1e-5)

    # three batches to a step; several optimizers; LAMB; weights that are stored in bf16
    check(*step_of(write("accumulate.amp", SGD.replace("lr=0.02", "lr=0.02, accumulate=3"))), both)
    two = {"a": ["fc1.weight", "fc1.bias"], "b": ["fc2.weight", "fc2.bias"]}
    text = "optimizer a = SGD(net.fc1, lr=0.1)\noptimizer b = Adam(net.fc2, clamp=[0.1, 0.2])"  # padding is no weight
    check(*step_of(write("two.amp", text, names="a, b")), two, 1e-5)
    check(*step_of(write("lamb.amp", 'optimizer opt = LAMB(net, weight_decay=0.1, clamp=[0.05, 2.0]) { group("**.bias") }')), both, 1e-5)
    line, before, after = step_of(write("bf16.amp", precision='precision bf16 { params(bf16, masters=false) }'))
    close("bf16 weights", line["weight_norm"], norm(after.values()), 1e-2)


def check_sinks():
    """The three sinks have the same numbers. A skipped step has no norms; a row of several steps has their mean."""
    job = write("f16.amp", precision="precision f16 { scaler(init=2.0 ** 24, max=2.0 ** 24) }")
    lines = [e for e in amp(job, "--json", "--log", 1, "--log-dir", "each") if e["event"] == "step"]
    rows = list(csv.DictReader(open("each/metrics.csv")))
    events = json.loads(subprocess.run([READER, "each"], capture_output=True, check=True).stdout)
    columns = list(rows[0])[3:]
    fields = [c for c in columns if c != "train.loss"]
    assert [k for k in lines[0] if k in fields] == fields and len(lines) == len(rows) == 40, (fields, lines[0])
    skipped = sum(1 for e in lines if e["grad_norm"] is None)
    assert 0 < skipped < 20 and skipped == lines[-1]["skipped"], skipped
    for name in fields:
        own = [r[name] for r in rows]
        assert all(r == "" if e[name] is None else r for e, r in zip(lines, own)), name
        told = [float(r) for r in own if r]
        tag = [t for t in events if t.replace("/", ".") in (name, *(s + "." + name for s in ("speed", "scaler", "norms")))]
        assert len(tag) == 1, (name, tag, list(events))
        near = {"seconds": 0.01, "samples_per_second": 0.5, "data_wait": 1}.get(name, 0)
        assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=near)
                   for (_, a), b in zip(events[tag[0]], told, strict=True)), name
        assert all(e[name] is None or math.isclose(e[name], float(r), rel_tol=1e-8, abs_tol=near)
                   for e, r in zip(lines, own)), name
    assert all(0 <= e["data_wait"] <= 1 for e in lines)

    amp(job, "--log", 8, "--log-dir", "eighth")
    for i, row in enumerate(csv.DictReader(open("eighth/metrics.csv"))):
        parts = [e["grad_norm"] for e in lines if e["grad_norm"] is not None and any(
            i == k for k, at in enumerate((8, 16, 20, 24, 32, 40)) if (0, 8, 16, 20, 24, 32)[k] < e["step"] <= at)]
        if parts:
            close(f"row {i}", float(row["grad_norm"]), math.sqrt(math.fsum(x * x for x in parts) / len(parts)), 1e-6)
        else:
            assert row["grad_norm"] == "", row


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_steps()
        check_sinks()
    print("ok: norms are those of the weights in checkpoints, in all three logs")


if __name__ == "__main__":
    main()
