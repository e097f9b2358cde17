#!/usr/bin/env python3
"""Damaged and hostile ONNX models: `amp import` refuses them with a message, and writes nothing; names of a file never
become code. usage: hostile.py AMP [--times]   --times prints how long each takes
"""
import os
import struct
import subprocess
import sys
import tempfile
import time

FLOAT, INT64 = 1, 7
LIMIT = 60  # seconds, on a machine that does other work


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(tag, value):
    """A field of a message: an int, or bytes, or a str."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, kind=FLOAT, data=None, external=None):
    out = b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name)
    if external:
        entries = b"".join(field(13, field(1, k) + field(2, v)) for k, v in external.items())
        return out + entries + field(14, 1)
    if data is None:
        count = 1
        for d in dims:
            count *= d
        data = bytes(4 * count)
    return out + field(9, data)


def attribute(name, kind, tag, value):
    return field(5, field(1, name) + field(20, kind) + field(tag, value))


def node(op, inputs, outputs, attributes=b"", name="n", scopes=None):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    out += field(3, name) + field(4, op) + attributes
    if scopes:
        names, classes = scopes
        out += field(9, field(1, "pkg.torch.onnx.name_scopes") + field(2, str(names + ["op"])))
        out += field(9, field(1, "pkg.torch.onnx.class_hierarchy") + field(2, str(classes + ["aten.op"])))
    return out


def value(name, dims):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, shape)))


def model(nodes, tensors=(), inputs=None, outputs=None):
    inputs = [value("x", ["N", 4])] if inputs is None else inputs
    outputs = [value("y", ["N", 4])] if outputs is None else outputs
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, t) for t in tensors)
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(2, 20))


def linear(weight="w", scopes=None, name="n", x="x", y="y"):
    return node("Gemm", [x, weight], [y], attribute("transB", 2, 3, 1), name, scopes)


def nested(depth):
    graph = b""
    for _ in range(depth):
        graph = field(1, node("If", ["x"], ["y"], attribute("then_branch", 5, 6, graph)))
    return field(1, 8) + field(7, graph) + field(8, field(2, 20))


EVIL = 'a"\n} model x = y { load("/etc/passwd") } # \\'
W = tensor("w", [4, 4])
MANY = 50_000
MODULES = 10_000
REFUSED = {
    "empty": b"",
    "noise": bytes(range(256)) * 40,
    "cut": model([linear()], [W])[:-20],
    "length": b"\x3a" + varint(1 << 60) + b"abc",
    "varint": b"\xff" * 40,
    "nested": nested(2_000),
    "cycle": model([node("Add", ["x", "b"], ["a"]), node("Add", ["x", "a"], ["b"]), node("Relu", ["a"], ["y"])]),
    "itself": model([node("Add", ["x", "y"], ["y"])]),
    "missing": model([node("Relu", ["z"], ["y"])]),
    "no result": model([node("Relu", ["x"], ["z"])]),
    "twice": model([node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["y"])]),
    "sizes": model([linear()], [tensor("w", [1 << 60, 1 << 60], data=b"")]),
    "size": model([linear()], [tensor("w", [1 << 60, 4], data=b"")]),
    "negative": model([linear()], [tensor("w", [-4, -4], data=bytes(64))]),
    "short": model([linear()], [tensor("w", [4, 4], data=bytes(60))]),
    "axes": model([linear()], [tensor("w", [1] * 5000, data=bytes(4))]),
    "type": model([linear()], [tensor("w", [4, 4], kind=99, data=bytes(64))]),
    "names": model([linear()], [W, W]),
    "outside": model([linear()], [tensor("w", [4, 4], external={"location": "../secret"})]),
    "absolute": model([linear()], [tensor("w", [4, 4], external={"location": "/etc/passwd"})]),
    "link": model([linear()], [tensor("w", [4, 4], external={"location": "link"})]),
    "device": model([linear()], [tensor("w", [4, 4], external={"location": "pipe"})]),
    "behind": model([linear()], [tensor("w", [4, 4], external={"location": "beside", "offset": str(1 << 62)})]),
    "before": model([linear()], [tensor("w", [4, 4], external={"location": "beside", "offset": "-8"})]),
    "unknown op": model([node(EVIL, ["x"], ["y"], name=EVIL)]),
    "axis before the first": model([node("LayerNormalization", ["x", "w"], ["y"], attribute("axis", 2, 3, -5))],
                                   [tensor("w", [4, 4, 4, 4, 4])]),
    "too many elements": model([node("Relu", ["x"], ["y"])], inputs=[value("x", [1 << 31] * 3)]),
    "a Scan without a body": model([node("Scan", ["x", "x"], ["a", "y"], attribute("num_scan_inputs", 2, 3, 1))]),
    "a Scan without results": model([node("Scan", ["x", "x"], ["a", "y"], attribute("num_scan_inputs", 2, 3, 1) + attribute(
        "body", 5, 6, field(1, node("Relu", ["p"], ["r"])) + field(11, value("p", [4])) + field(11, value("q", [4])) +
        field(12, value("r", [4])) + field(12, value("z", [4]))))]),
    "an If without branches": model([node("Less", ["x", "w"], ["c"]), node("If", ["c"], ["y"])], [tensor("w", [1])],
                                    [value("x", [1])]),
    "sizes that do not fit": model([node("Concat", ["s", "t"], ["u"], attribute("axis", 2, 3, 0)),
                                    node("Reshape", ["u", "v"], ["z"]), node("Reshape", ["x", "z"], ["y"])],
                                   [tensor("s", [2], INT64, struct.pack("<2q", 1, 2)), tensor("t", [1], INT64, struct.pack("<q", 1)),
                                    tensor("v", [3], INT64, struct.pack("<3q", -1, -1, -1))]),
    "negative sizes": model([node("Reshape", ["s", "v"], ["u"]), node("Add", ["u", "s"], ["z"]), node("Reshape", ["x", "z"], ["y"])],
                            [tensor("s", [4], INT64, struct.pack("<4q", 1, 2, 3, 4)),
                             tensor("v", [2], INT64, struct.pack("<2q", -2, -2))]),
    "lists of other axes": model([node("Reshape", ["s", "v"], ["u"]), node("Concat", ["u", "s"], ["z"], attribute("axis", 2, 3, 0)),
                                  node("Reshape", ["x", "z"], ["y"])],
                                 [tensor("s", [2], INT64, struct.pack("<2q", 1, 2)), tensor("v", [2], INT64, struct.pack("<2q", 1, 2))]),
    "too many axes": model([node("Reshape", ["s", "v"], ["u"]), node("Reshape", ["u", "w"], ["z"]), node("Reshape", ["x", "z"], ["y"])],
                           [tensor("s", [2], INT64, struct.pack("<2q", -1, 4)),
                            tensor("v", [7], INT64, struct.pack("<7q", 2, 1, 1, 1, 1, 1, 1)),
                            tensor("w", [1], INT64, struct.pack("<q", 2))]),
    "expand": model([node("Expand", ["x", "s"], ["y"])], [tensor("s", [2], INT64, struct.pack("<2q", 1 << 60, 1 << 60))]),
}
LONG = ".".join("m" * 3 for _ in range(20_000))
ACCEPTED = {
    "a size of 0": model([node("Relu", ["x"], ["y"])], inputs=[value("x", [0, 4])]),
    "beside": model([linear()], [tensor("w", [4, 4], external={"location": "beside", "offset": "0", "length": "64"})]),
    "names as code": model(
        [linear(EVIL, (["", EVIL, EVIL + "." + EVIL], [EVIL, "x." + EVIL, EVIL]), EVIL, EVIL + "x", EVIL + "y")],
        [tensor(EVIL, [4, 4])], [value(EVIL + "x", [EVIL, 4])], [value(EVIL + "y", [EVIL, 4])]),
    "words of the language": model(
        [linear("forward.weight", (["", "forward"], ["def", "torch.nn.modules.linear.Linear"]), y="if"),
         linear("relu.weight", (["", "relu"], ["def", "torch.nn.modules.linear.Linear"]), x="if", y="a"),
         node("Relu", ["a"], ["y"], scopes=([""], ["def"]))],
        [tensor("forward.weight", [4, 4]), tensor("relu.weight", [4, 4])]),
    "many nodes": model([node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}" if i + 1 < MANY else "y"]) for i in range(MANY)]),
    "many values": model([node("Relu", ["x"], [f"v{i}"]) for i in range(5000)] +
                         [node("Concat", [f"v{i}" for i in range(5000)], ["y"], attribute("axis", 2, 3, 1))],
                         outputs=[value("y", ["N", 20000])]),
    "many tensors": model([linear()], [W] + [tensor(f"t{i}", [1]) for i in range(MANY)]),
    "norm of an axis without a number": model(
        [node("LayerNormalization", ["x", "w"], ["y"], attribute("axis", 2, 3, -1))], [tensor("w", [16])],
        [value("x", ["N", "C"])], [value("y", ["N", "C"])]),
    "slashes": model([linear(name="a/" * 3000)], [W]),
    "many modules": model([node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}" if i + 1 < MODULES else "y"],
                                scopes=(["", f"m{i}"], ["Net", "M"])) for i in range(MODULES)]),
    "many layers": model([linear(f"w{i}", x=f"v{i}" if i else "x", y=f"v{i + 1}" if i < 4999 else "y") for i in range(5000)],
                         [tensor(f"w{i}", [4, 4]) for i in range(5000)]),
    "long names": model([linear(LONG + ".weight", (["", LONG], ["Net", "Net"]))], [tensor(LONG + ".weight", [4, 4])]),
}


def run(amp, folder, name, data):
    path = os.path.join(folder, "m.onnx")
    with open(path, "wb") as file:
        file.write(data)
    start = time.monotonic()
    done = subprocess.run([amp, "import", "--force", path, "-o", f"{folder}/m.amp"], capture_output=True, timeout=LIMIT, check=False)
    if "--times" in sys.argv:
        print(f"{time.monotonic() - start:6.2f} s  {done.returncode}  {name}: {done.stderr.decode(errors='replace')[:150]!r}")
    return done


def main():
    amp = sys.argv[1]
    bad = []
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "models")
        os.mkdir(folder)
        with open(f"{top}/secret", "wb") as file:
            file.write(bytes(64))
        with open(f"{folder}/beside", "wb") as file:
            file.write(bytes(64))
        os.symlink("../secret", f"{folder}/link")
        os.mkfifo(f"{folder}/pipe")
        for name, data in REFUSED.items():
            done = run(amp, folder, name, data)
            written = [f for f in os.listdir(folder) if f not in ("m.onnx", "beside", "link", "pipe")]
            plain = all(c >= 32 or c == 10 for c in done.stderr)
            if done.returncode not in (1, 3) or b"error" not in done.stderr or written or not plain:
                bad.append(f"{name}: exit status {done.returncode}, files {written}: {done.stderr[:300]}")
        for name, data in ACCEPTED.items():
            done = run(amp, folder, name, data)
            if done.returncode:
                bad.append(f"{name}: exit status {done.returncode}: {done.stderr[:600]}")
                continue
            with open(f"{folder}/m.amp", encoding="utf-8") as file:
                text = file.read()
            if text.count("load(") > 1 or "passwd" in text.partition("load(")[2].split(")")[0]:
                bad.append(f"{name}: a name of the file became code")
    print("\n".join(bad) or f"{len(REFUSED)} models refused, {len(ACCEPTED)} imported")
    sys.exit(bool(bad))


main()
