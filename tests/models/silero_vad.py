#!/usr/bin/env python3
"""Silero VAD compared with the same net in PyTorch.

  silero_vad.py AMPC AMP            random weights: names, shapes and results must be those of the fixture
  silero_vad.py AMPC AMP --weights  the package's weights: results. Skipped (77) without the package
  silero_vad.py --fixture           makes silero_vad.json from PyTorch and the package

The package is PyPI's silero-vad, installed, or its file silero_vad_16k.safetensors, named by SILERO_VAD."""

import hashlib
import importlib.util
import json
import math
import os
import random
import struct
import sys
import tempfile
from array import array
from pathlib import Path

from beside import compare, names_and_shapes, run, skip, write_npy, write_weights

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
JOB = ROOT / "models/silero_vad/silero_vad.amp"
FIXTURE = HERE / "silero_vad.json"
SHA256 = "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1"
CHUNKS, SAMPLES = 32, 512
BOUND = 1e-4  # relative to the largest result: f32 through 32 steps of the cell, sums in another order


# ---- random weights and a recording: the same numbers on every machine ------------------------------


def drawn(name, shape):
    uniform = random.Random(name).random
    scale = math.sqrt(12 / math.prod(shape[1:])) if len(shape) > 1 else 0.3
    return [scale * (2 * uniform() - 1) for _ in range(math.prod(shape))]


def wave():
    """A signal similar to a voice, with pauses."""
    def sample(i):
        return math.sin(0.05 * i + 3 * math.sin(i * 0.0007)) * (i // 3000 % 2) * 0.3 * (1 + math.sin(i * 0.011))

    return array("f", (sample(i) for i in range(CHUNKS * SAMPLES)))


# ---- ampc ------------------------------------------------------------------------------------------


def speech(amp, weights):
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "wave.npy"
        write_npy(data, "<f4", (1, CHUNKS * SAMPLES), wave().tobytes())
        text = run(amp, "infer", "-q", "--device", "cpu", "-D", f"WEIGHTS={weights}", "--input", data, JOB)
    return [float(v) for v in text.split()]


def check_drawn(ampc, amp):
    fixture = json.loads(FIXTURE.read_text())
    shapes = names_and_shapes(ampc, JOB, total=309633)
    assert shapes == fixture["shapes"], "names or shapes differ from the package's"
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "drawn.safetensors"
        write_weights(weights, shapes, drawn)
        compare("drawn weights", speech(amp, weights), fixture["drawn"], BOUND)


def package_file():
    found = importlib.util.find_spec("silero_vad") if not os.environ.get("SILERO_VAD") else None
    path = Path(found.origin).parent / "data/silero_vad_16k.safetensors" if found else Path(os.environ.get("SILERO_VAD", ""))
    if not path.is_file():
        skip("no weights: pip download silero-vad, or SILERO_VAD=FILE.safetensors")
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    assert sha == SHA256, f"{path} is another file: its SHA-256 is {sha}, not {SHA256}"
    return path.resolve()


# ---- the fixture -------------------------------------------------------------------------------------


def reference():
    """The net in PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stft_conv = nn.Conv1d(1, 258, 256, 128, bias=False)
            self.conv1, self.conv2 = nn.Conv1d(129, 128, 3, 1, 1), nn.Conv1d(128, 64, 3, 2, 1)
            self.conv3, self.conv4 = nn.Conv1d(64, 64, 3, 2, 1), nn.Conv1d(64, 128, 3, 1, 1)
            self.lstm_cell, self.final_conv = nn.LSTMCell(128, 128), nn.Conv1d(128, 1, 1)

        def forward(self, frame, state):
            x = self.stft_conv(F.pad(frame, (0, 64), "reflect").unsqueeze(1))
            x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
            for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
                x = conv(x).relu()
            state = self.lstm_cell(x.squeeze(-1), state)
            return self.final_conv(state[0].unsqueeze(-1).relu()).sigmoid().item(), state

    return Net()


def make_fixture():
    import torch
    from torch.nn import functional as F

    raw = package_file().read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = {name: t for name, t in json.loads(raw[8 : 8 + size]).items() if name != "__metadata__"}
    shapes = {name: t["shape"] for name, t in header.items()}
    package = {n: array("f", raw[8 + size + t["data_offsets"][0] : 8 + size + t["data_offsets"][1]]) for n, t in header.items()}
    out, net = {"shapes": shapes}, reference().double().eval()
    samples = F.pad(torch.tensor(wave()).double()[None], (64, 0))
    for key, numbers in (("drawn", {n: array("f", drawn(n, s)) for n, s in shapes.items()}), ("package", package)):
        net.load_state_dict({n: torch.tensor(v).reshape(shapes[n]).double() for n, v in numbers.items()})
        out[key], state = [], None
        with torch.no_grad():
            for i in range(64, samples.shape[1], SAMPLES):
                p, state = net(samples[:, i - 64 : i + SAMPLES], state)
                out[key].append(float(f"{p:.7g}"))
    FIXTURE.write_text(json.dumps(out, separators=(",", ":")).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--fixture"]:
        make_fixture()
    elif "--weights" in sys.argv:
        compare("the package's weights", speech(sys.argv[2], package_file()), json.loads(FIXTURE.read_text())["package"], BOUND)
    else:
        check_drawn(*sys.argv[1:3])
