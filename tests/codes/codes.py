#!/usr/bin/env python3
"""codes.py AMP: moments in 8 bits after a few updates, compared with a plain reference in Python: the definition of the
dynamic map, the optimizer's formula and the nearest value, all in double. The gradients of the job are the rows of a
file, so they are known exactly. One parameter has several blocks, of which the last is partial, one has a few elements."""
import bisect
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

BLOCK, SIZES, STEPS = 256, {"a": 700, "b": 5}, 6
NEAR = 1e-5  # relative; f32 rounds differently: elements that were once this near to the middle of two values are left out

JOB = """module Net {{ a = Parameter([700]); b = Parameter([5]); def forward(x) {{ return (a * x[:, :700]).sum() + (b * x[:, 700:]).sum() }} }}
model net = Net()
data d() {{ return npy("g.npy") }}
optimizer opt = {}
precision f32 {{ moments(u8) }}
train x in d() with batch=1, steps={}, shuffle=false {{ minimize net(x) with opt }}
"""


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


BETA1, BETA2, ALPHA = single(0.9), single(0.999), single(0.99)


def dynamic_map(signed):
    """Dettmers et al., 2022: in each of seven decades the means of neighbouring bounds; 0 and 1."""
    out = [0.0, 1.0]
    for decade in range(7):
        n = 2 ** decade if signed else 2 ** (decade + 1)
        bounds = [0.1 + 0.9 * i / n for i in range(n + 1)]
        means = [10.0 ** (decade - 6) * (x + y) / 2 for x, y in zip(bounds, bounds[1:])]
        out += means + [-x for x in means] * signed
    assert len(out) == 256
    return sorted(out)


MAPS = {signed: dynamic_map(signed) for signed in (False, True)}


def quantized(values, signed, unsure):
    """The nearest values of the map times the number of largest magnitude, block by block. Adds to `unsure` the indices of
    numbers in the middle of two values."""
    out = []
    for begin in range(0, len(values), BLOCK):
        block = values[begin:begin + BLOCK]
        scale = max(block, key=lambda x: (abs(x), x))
        for i, x in enumerate(block, begin):
            share = x / scale if scale else 0.0
            at = bisect.bisect(MAPS[signed], share)
            near = sorted(MAPS[signed][max(at - 1, 0):at + 1], key=lambda value: abs(value - share))
            if abs(abs(near[0] - share) - abs(near[-1] - share)) <= NEAR * abs(share) and len(near) == 2:
                unsure.add(i)
            out.append((MAPS[signed][1] if not signed and x > 0 == near[0] else near[0]) * scale)
    return out


def adamw(gradients, unsure, amsgrad=False):
    m, v, u = ([0.0] * len(gradients[0]) for _ in range(3))
    for g in gradients:
        m = [BETA1 * a + (1 - BETA1) * x for a, x in zip(m, g)]
        v = [BETA2 * a + (1 - BETA2) * x * x for a, x in zip(v, g)]
        u = [max(a, b) for a, b in zip(u, v)]
        m, v, u = quantized(m, True, unsure), quantized(v, False, unsure), quantized(u, False, unsure)
    return [m, v, u] if amsgrad else [m, v]


def momentum(gradients, unsure):
    m = gradients[0]
    for k, g in enumerate(gradients):
        m = quantized([BETA1 * a + x for a, x in zip(m, g)] if k else g, True, unsure)
    return [m]


def rmsprop(gradients, unsure):
    v, u = ([0.0] * len(gradients[0]) for _ in range(2))
    for g in gradients:
        v = quantized([ALPHA * a + (1 - ALPHA) * x * x for a, x in zip(v, g)], False, unsure)
        u = quantized([a + (1 - ALPHA) * (x - a) for a, x in zip(u, g)], True, unsure)
    return [v, u]


CASES = {
    "AdamW(net, lr=1e-3)": (adamw, (1, 2)),
    "Adam(net, lr=1e-3, amsgrad=true)": (lambda *args: adamw(*args, amsgrad=True), (1, 2, 3)),
    "SGD(net, lr=1e-3, momentum=0.9)": (momentum, (1,)),
    "RMSprop(net, lr=1e-3, centered=true)": (rmsprop, (2, 3)),
}


def tensors(path):
    raw = path.read_bytes()
    n, = struct.unpack("<Q", raw[:8])
    for name, entry in json.loads(raw[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, struct.unpack(f"<{(end - begin) // 4}f", raw[8 + n + begin:8 + n + end])


def draw(rng):
    """Gradients of very different sizes; rarely 0."""
    return 0.0 if rng.random() < 0.02 else single(rng.gauss(0, 1) * 10.0 ** rng.uniform(-5, 0))


def write_npy(path, rows):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    head = head.ljust(117) + "\n"
    flat = [x for row in rows for x in row]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(flat)}f", *flat))


def main():
    amp, bad = pathlib.Path(sys.argv[1]).resolve(), 0
    rng = random.Random(8)
    rows = [[draw(rng) for _ in range(sum(SIZES.values()))] for _ in range(STEPS)]
    slots = {"a": slice(0, 700), "b": slice(700, 705)}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        write_npy(work / "g.npy", rows)
        for text, (reference, moments) in CASES.items():
            (work / "job.amp").write_text(JOB.format(text, STEPS), encoding="utf-8")
            done = subprocess.run([amp, "train", "--device", "cpu", "--quiet", "--save", "out", "job.amp"], cwd=work, check=False)
            got = {} if done.returncode else dict(tensors(work / "out"))
            for name, slot in slots.items():
                unsure = set()
                want = reference([row[slot] for row in rows], unsure)
                for k, values in zip(moments, want):
                    own = got.get(f"optimizer.opt.moment{k}/{name}", ())
                    wrong = [(x, y) for i, (x, y) in enumerate(zip(own, values)) if i not in unsure and not abs(x - y) <= NEAR * abs(y)]
                    good = len(own) == len(values) and len(unsure) <= len(own) // 20 and not wrong
                    print(f"{'ok' if good else 'FAILED'}: {text}, moment {k} of {name}", *([] if good else [len(own), len(wrong), wrong[:3]]))
                    bad += not good
    sys.exit(bad > 0)


main()
