#!/usr/bin/env python3
"""Trains models/gpt2/kjv.amp in PyTorch, in f32: the same net, rules for initial values, optimizer, schedule and sizes.

    kjv_peer.py FOLDER [UPDATES [SEED]]     FOLDER has kjv_train.bin and kjv_val.bin

Prints the mean loss of every 50 steps, the time of a step, and the loss over all windows of kjv_val.bin, which `amp train` prints
as `eval loss`. Each side draws its own windows, so losses differ as much as between seeds.
"""
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/torch"))
from make_models import GPT2  # noqa: E402

BLOCKS, HEADS, WIDTH, SPAN, SENTENCES = 4, 4, 128, 128, 32


def rate(step, updates, peak=3e-3, warmup=100, floor=3e-4):
    if step < warmup:
        return peak * step / warmup
    return floor + (peak - floor) * (1 + math.cos(math.pi * (step - warmup) / (updates - warmup))) / 2


def start(net):
    for name, p in net.named_parameters():
        if name.endswith("c_proj.weight"):
            torch.nn.init.normal_(p, std=0.02 / math.sqrt(2 * BLOCKS))
        elif p.dim() > 1:
            torch.nn.init.normal_(p, std=0.02)
        else:
            torch.nn.init.constant_(p, 1.0 if name.endswith("weight") else 0.0)


def loss_of(net, ids):
    return F.cross_entropy(net(ids[:, :-1]), ids[:, 1:])


def main():
    folder, updates = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    torch.manual_seed(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    train, val = (torch.from_numpy(np.fromfile(folder / f"kjv_{name}.bin", np.uint8).astype(np.int64)) for name in ("train", "val"))
    net = GPT2(BLOCKS, HEADS, WIDTH, SPAN, 256)
    start(net)
    decayed = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=1.0, betas=(0.9, 0.95))
    begin, losses = time.monotonic(), []
    for step in range(updates):
        at = torch.randint(len(train) - SPAN, (SENTENCES, 1))
        loss = loss_of(net, train[at + torch.arange(SPAN + 1)])
        for group in optimizer.param_groups:
            group["lr"] = rate(step, updates)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {sum(losses[-50:]) / 50:.4f}  {1000 * (time.monotonic() - begin) / (step + 1):.0f} ms a step", flush=True)
    windows = val.unfold(0, SPAN + 1, SPAN)
    with torch.no_grad():
        total = sum(loss_of(net, part).item() * len(part) for part in windows.split(SENTENCES))
    print(f"val loss {total / len(windows):.4f}")


if __name__ == "__main__":
    main()
