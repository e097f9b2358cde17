#!/usr/bin/env python3
"""Writes runner/selftest/scaler_patterns.def: how torch.amp.GradScaler changes its scale.

    tests/torch/make_scaler.py [--check]     writes the file, or compares it with a new result

Needs PyTorch 2.3 or newer. Patterns of overflows are random, from a fixed seed. They run through scale, step
and update of PyTorch's scaler. No pattern reaches the minimum or maximum of ampc's scale: PyTorch has neither.
"""
import pathlib
import random
import struct
import sys

import torch

STEPS, EACH = 16, 33
# init, growth, backoff, interval
SETTINGS = [
    (65536.0, 1.7, 0.3, 2),
    (65536.0, 2.0, 0.5, 2000),  # the defaults
    (65536.0, 2.0, 0.5, 3),
    (1000.0, 1.1, 0.9, 1),
    (3.0, 1.001, 0.999, 1),
    (12345.678, 3.141592653589793, 0.36787944117144233, 4),
    (2.0**120, 1e10, 0.7, 2),  # PyTorch skips a growth beyond f32
    (1e-20, 1.5, 0.1, 3),
    (7.3, 10.0, 0.123, 1),
]
OUT = pathlib.Path(__file__).resolve().parents[2] / "runner/selftest/scaler_patterns.def"


def bits(value):
    return struct.pack(">f", value).hex()


def run(setting, pattern):
    """Returns the scale after each step that changes it, as "STEP BITS", and the growth tracker at the end."""
    init, growth, backoff, interval = setting
    scaler = torch.amp.GradScaler("cpu", init_scale=init, growth_factor=growth, backoff_factor=backoff,
                                  growth_interval=interval)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    changes, before = [], init
    for step, letter in enumerate(pattern):
        scaler.scale(torch.ones(()))
        weight.grad = torch.full((1,), float("inf") if letter == "x" else 0.0)
        scaler.step(optimizer)
        scaler.update()
        if bits(scaler.get_scale()) != bits(before):
            changes.append(f"{step:x}{bits(scaler.get_scale())}")
        before = scaler.get_scale()
    return " ".join(changes), scaler.state_dict()["_growth_tracker"]


def main():
    draw = random.Random(1)
    text = ("/* The scale of torch.amp.GradScaler after patterns of steps that overflow (x) or not (.).\n"
            " * tests/torch/make_scaler.py made this file with PyTorch " + torch.__version__.split("+")[0] + ":\n"
            " *   SCALER(init, growth, backoff, interval)   of the patterns that follow\n"
            " *   PATTERN(pattern, changes, tracker)        each change: the step as a hex digit, the f32 bits */\n"
            "/* clang-format off */\n")
    for setting in SETTINGS:
        text += "SCALER(%r, %r, %r, %r)\n" % setting
        for i in range(EACH):
            share = (0.05, 0.2, 0.5, 0.8)[i % 4]
            pattern = "".join("x" if draw.random() < share else "." for _ in range(STEPS))
            text += 'PATTERN("%s", "%s", %d)\n' % (pattern, *run(setting, pattern))
    text += "/* clang-format on */\n#undef SCALER\n#undef PATTERN\n"
    if "--check" in sys.argv[1:]:
        sys.exit(0 if OUT.read_text() == text else f"{OUT} differs from PyTorch's results on this machine")
    OUT.write_text(text)


main()
