#!/usr/bin/env python3
"""Writes the files of tests/data/torch/ with PyTorch 2.15; the tests do not need PyTorch.

Element i of each tensor of floats is i / 8, unless its comment says otherwise.
"""
import argparse
import collections
import datetime
import decimal
import enum
import fractions
import functools
import uuid
import zipfile
from pathlib import Path, PurePosixPath

import numpy
import torch
from torch import nn

HERE = Path(__file__).parent / "torch"


def numbers(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 8


def state():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    net.load_state_dict({key: numbers(*t.shape) if t.is_floating_point() else t + 7 for key, t in net.state_dict().items()})
    return net


def training():
    """A checkpoint as training programs write it: only `model` has the weights."""
    net = state()
    opt = torch.optim.Adam(net.parameters())
    before = {key: t.clone() for key, t in net.state_dict().items()}
    net(numbers(4, 3)).sum().backward()
    opt.step()
    schedule = torch.optim.lr_scheduler.MultiStepLR(opt, [1, 2])
    return {"model": before, "optimizer": opt.state_dict(), "schedule": schedule.state_dict(), "epoch": 3, "loss": 0.5,
            "seed": 2**70, "name": "net", "sizes": torch.Size([1, 2]), "type": torch.float16, "device": torch.device("cpu"),
            "seen": {1, 2}, "raw": b"ab", "flags": (True, None), "steps": [300, 70000]}  # fmt: skip


def kinds():
    storage = numbers(12)
    whole = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
    return {
        **{str(t).removeprefix("torch."): torch.arange(3).to(t) for t in whole},
        **{str(t).removeprefix("torch."): numbers(3).to(t) for t in (torch.float64, torch.float16, torch.bfloat16)},
        "bool": torch.tensor([True, False]), "scalar": torch.tensor(1.5), "empty": torch.zeros(0, 3),
        "parameter": nn.Parameter(numbers(2)), 5: numbers(1),
        "turned": numbers(3, 2).t().contiguous().t(),  # [3, 2], stored as [2, 3]
        "channels_last": numbers(2, 3, 2, 2).to(memory_format=torch.channels_last),
        "whole": storage, "rows": storage[4:8].reshape(2, 2), "every_third": storage[1::3],  # one storage
    }  # fmt: skip


class Color(enum.Enum):
    RED = 1


class Settings(dict):
    pass


class Odd:
    __slots__ = ("a",)

    def __reduce__(self):
        return Odd, (), (None, {"a": 1}), iter([1, 2]), iter([("k", 3)])


class Keyed:
    def __getnewargs_ex__(self):
        return (), {"a": 1}

    def __new__(cls, a=0):
        return super().__new__(cls)


def objects():
    """A checkpoint with objects beside the weights, as training scripts write it."""
    self = []
    self.append((self, "itself"))
    return {
        "args": argparse.Namespace(lr=0.1, path=PurePosixPath("/x")), "best": numpy.float64(0.93), "array": numpy.arange(3),
        "when": datetime.datetime(2026, 1, 2), "color": Color.RED, "count": collections.Counter("aab"), "id": uuid.UUID(int=5),
        "by": collections.defaultdict(list, {"a": [1]}), "queue": collections.deque([1, 2]), "part": fractions.Fraction(1, 3),
        "price": decimal.Decimal("1.5"), "odd": Odd(), "keyed": Keyed(), "range": range(3), "slice": slice(1, 2), "z": 1 + 2j,
        "frozen": frozenset({1}), "set": {1, 2}, "bytes": b"ab", "more": bytearray(b"cd"), "type": dict, "call": functools.partial(print, 1),
        "self": self, "long": 1 << 5000, "text": "\u00e9" * 300, "net": nn.ReLU(), "none": [None, -1, 1.5],
        "model": Settings(state().state_dict()),
    }  # fmt: skip


def strange():
    """Tensors of kinds that are not read, beside those that are."""
    named = nn.Parameter(numbers(2))
    named.note = "an attribute"
    return {"w": numbers(2), "named": named, "buffer": nn.Buffer(numbers(2)), "sparse": numbers(2, 2).to_sparse(),
            "complex": torch.ones(2, dtype=torch.complex64), "wide": torch.ones(2, dtype=torch.uint16),
            "float8": torch.ones(2).to(torch.float8_e4m3fn), "who": argparse.Namespace(a=1)}  # fmt: skip


def main():
    HERE.mkdir(exist_ok=True)
    net = state()
    torch.save(net.state_dict(), HERE / "state.pth")
    torch.save(training(), HERE / "training.pth")
    torch.save({"model": net.state_dict(), "ema": {key: t * 2 for key, t in net.state_dict().items()}}, HERE / "two.pth")
    torch.save({"best": {"kinds": kinds(), "epoch": 1}}, HERE / "kinds.pth")
    torch.save({"x": torch.ones(1).expand(4)}, HERE / "expanded.pth")
    torch.save([net.state_dict()], HERE / "list.pth")
    torch.save(net, HERE / "program.pth")
    torch.save({"x": torch.ones(1)}, HERE / "protocol4.pth", pickle_protocol=4)
    for protocol in (2, 3, 5):
        torch.save(objects(), HERE / f"objects{protocol}.pth", pickle_protocol=protocol)
    torch.save(strange(), HERE / "strange.pth")
    torch.save(net.state_dict(), HERE / "old.pth", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(HERE / "state.pth") as stored, zipfile.ZipFile(HERE / "deflated.pth", "w", zipfile.ZIP_DEFLATED) as out:
        for name in stored.namelist():
            out.writestr(zipfile.ZipInfo(name), stored.read(name), zipfile.ZIP_DEFLATED)


main()
