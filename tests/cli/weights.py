#!/usr/bin/env python3
"""Writes a safetensors file for tests, without a library.
  weights.py FILE < lines "NAME DTYPE SHAPE NUMBERS"
NUMBERS are repeated until the tensor is full; "#X" stands for the element's index times X (1 by default)."""
import json
import struct
import sys

CODES = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "I8": "b", "BOOL": "?"}


def pack(dtype, values):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    if CODES[dtype] in "def":
        return struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
    return struct.pack(f"<{len(values)}{CODES[dtype]}", *map(int, values))


header, data = {}, b""
for line in sys.stdin:
    if not line.strip():
        continue
    name, dtype, shape, *numbers = line.split()
    shape = json.loads(shape)
    n = 1
    for axis in shape:
        n *= axis
    scale = float(numbers[0][1:] or 1) if numbers[0][0] == "#" else None
    values = [i * scale for i in range(n)] if scale else [float(numbers[i % len(numbers)]) for i in range(n)]
    body = pack(dtype, values)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(body)]}
    data += body
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<Q", len(text)) + text + data)
