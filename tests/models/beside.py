"""Shared by tests that compare a model with another program's numbers: random weights, running ampc, comparing."""

import json
import struct
import subprocess
import sys
from array import array


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def names_and_shapes(ampc, job, *options, total=None):
    """The names and shapes that --emit=params lists, including counters of batch norm."""
    lines = run(ampc, "--emit=params", *options, job).splitlines()
    assert total is None or lines[-1] == f"total {total} parameters", lines[-1]
    return {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1].rsplit("]", 1)[0] + "]") for line in lines[:-1]}


def write_weights(path, shapes, drawn):
    """Writes a safetensors file with the numbers drawn(name, shape)."""
    header, body = {}, b""
    for name, shape in shapes.items():
        whole = name.endswith("num_batches_tracked")
        raw = array("q" if whole else "f", drawn(name, shape)).tobytes()
        header[name] = {"dtype": "I64" if whole else "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def write_npy(path, descr, shape, raw):
    """descr: "<f4" and so on; raw: the bytes."""
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + raw)


def compare(what, got, want, bound):
    largest = max(map(abs, want))
    worst = max(abs(a - b) for a, b in zip(got, want, strict=True)) / largest
    print(f"{what}: {len(want)} numbers, worst difference {worst:.2e} of the largest, {largest:.3f}")
    assert worst < bound, what


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)
