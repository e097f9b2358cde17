#!/usr/bin/env python3
"""Makes the small files of this folder, with NumPy and safetensors: what other programs write.

x is 0 to 23 as [4, 3, 2], in several types; y is 10, 20, 30, 40.
usage: tests/data/make_fixtures.py     (the files are committed; tests need neither package)
"""
import gzip
import os

import numpy as np
from safetensors.numpy import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))
x = np.arange(24).reshape(4, 3, 2)
y = np.arange(10, 50, 10)
for name, dtype in [("f8", "<f8"), ("f4", "<f4"), ("f4_big", ">f4"), ("f2", "<f2"), ("i8", "<i8"), ("i4", "<i4"),
                    ("i2_big", ">i2"), ("u4", "<u4"), ("u2", "<u2"), ("u1", "u1"), ("i1", "i1"), ("b1", "?")]:
    np.save(f"{name}.npy", (x - 12 if name[0] == "i" else x % 2 if name == "b1" else x).astype(dtype))
np.save("fortran.npy", np.asfortranarray(x.astype("f4")))
np.save("u8.npy", x.astype("u8"))
np.save("text.npy", np.array(["a", "bc"]))
np.save("records.npy", np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]))
np.save("number.npy", np.float32(3))
np.savez("stored.npz", x=x.astype("f4"), y=y)
np.savez_compressed("deflated.npz", x=x.astype("f4"), y=y)
save_file({"x": x.astype("f4"), "y": y, "h": x.astype("f2")}, "tensors.safetensors", metadata={"by": "a \"test\""})
for name in ("f4.npy", "tensors.safetensors"):
    with open(name, "rb") as f, open(name + ".gz", "wb") as g:
        g.write(gzip.compress(f.read(), mtime=0))
