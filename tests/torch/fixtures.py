#!/usr/bin/env python3
"""make_fixtures.py --halves NAME keeps the rows of other cases: they may come from a machine that sums in another order.
Skipped without PyTorch 2.
    fixtures.py
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    sys.exit(77)
if int(torch.__version__.split(".")[0]) < 2:
    sys.exit(77)
HERE = pathlib.Path(__file__).parent


def rows(path):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    errors = json.loads(header.pop("__metadata__")["errors"])
    begin = 8 + size
    return {key: data[begin + e["data_offsets"][0]:begin + e["data_offsets"][1]] for key, e in header.items()} | errors


with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    for name in ("make_fixtures.py", "cases.py", "rounding.py", "cases.def", "ops.safetensors", "halves.safetensors", "rounding.def"):
        shutil.copy(HERE / name, work)
    halves, bounds = work / "halves.safetensors", work / "rounding.def"
    data = bytearray(halves.read_bytes())
    data[-1] ^= 1  # a number of the last case that no machine computes
    halves.write_bytes(data)
    bounds.write_text(bounds.read_text().replace('ROUNDING("f16/gru_both/grad/x", ', 'ROUNDING("f16/gru_both/grad/x", 9'))
    before, bounded = rows(halves), bounds.read_text()
    subprocess.run([sys.executable, work / "make_fixtures.py", "--halves", "softmax"], check=True, timeout=300)
    after = rows(halves)
    changed = [key for key in before.keys() | after.keys() if key.split("/")[1] != "softmax" and before.get(key) != after.get(key)]
    assert list(before) == list(after) and not changed, f"rows of other cases changed: {changed}"
    assert bounds.read_text() == bounded, "bounds of other cases changed"
    subprocess.run([sys.executable, work / "make_fixtures.py", "--halves"], check=True, timeout=300)
    assert rows(halves) == after, "without names, cases that the file has were computed again"
