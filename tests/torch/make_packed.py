#!/usr/bin/env python3
"""Writes packed.safetensors for test_packed.c: matrices in NF4, quantized by bitsandbytes on the CPU, and in int8.

    make_packed.py                    # needs PyTorch 2 and bitsandbytes

Also checks the values of NF4 against their definition in the paper of QLoRA (Dettmers et al., 2023): quantiles of the
normal distribution, 8 below 0 and 9 from 0 on, scaled to [-1, 1]. int8 is the formula of LLM.int8() in f32: a row times
127 / absmax, rounded to the nearest even integer.
"""
from pathlib import Path

import torch
from bitsandbytes import functional
from safetensors.torch import save_file

OFFSET = 0.9677083  # of the outermost quantile, in the paper's code


def quantiles():
    above = torch.special.ndtri(torch.linspace(OFFSET, 0.5, 9, dtype=torch.float64)[:-1])
    below = -torch.special.ndtri(torch.linspace(OFFSET, 0.5, 8, dtype=torch.float64)[:-1])
    return torch.cat([below / above.max(), torch.zeros(1), above.flip(0) / above.max()])


torch.manual_seed(4)
w = torch.randn(24, 80) * torch.logspace(-4, 2, 24)[:, None]
w[3] = 0
blocks = w.view(-1, 64)  # on a CPU, bitsandbytes 0.50 mistakes the scales of rows that are no whole blocks
codes, state = functional.quantize_4bit(blocks, blocksize=64, quant_type="nf4", compress_statistics=False)
assert (state.code.double() - quantiles()).abs().max() < 1e-6
most = w.abs().amax(1)
rounded = torch.round(w * (127 / torch.where(most > 0, most, 1))[:, None])
save_file({
    "w": w,
    "nf4.codes": codes.flatten().long(),
    "nf4.scales": state.absmax,
    "nf4.values": functional.dequantize_4bit(codes, state),
    "int8.codes": (rounded.to(torch.int8).long() + 128).flatten(),
    "int8.scales": most,
    "int8.values": rounded * (1 / torch.tensor(127.0)) * most[:, None],
}, Path(__file__).with_name("packed.safetensors"))
