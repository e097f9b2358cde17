#!/usr/bin/env python3
"""Prints the samples per second of PyTorch's DataLoader with torchvision: same pictures, arguments and bytes as bench/loader.c.

usage: loader_peer.py FOLDER train|eval BATCH BATCHES WORKERS"""
import sys
import time

import torch
from torchvision import datasets, transforms


def transform(train):
    if train:
        steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()]
    else:
        steps = [transforms.Resize(256), transforms.CenterCrop(224)]
    return transforms.Compose(steps + [transforms.PILToTensor()])


def batches(loader):
    while True:
        yield from loader


def main():
    folder, mode, batch, count, workers = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    torch.set_num_threads(1)
    data = datasets.ImageFolder(folder, transform(mode == "train"))
    loader = torch.utils.data.DataLoader(data, batch, shuffle=mode == "train", num_workers=workers, drop_last=True,
                                         persistent_workers=True)
    source = batches(loader)
    for _ in range(2 * workers + 1):  # batches that were prepared ahead are not counted
        next(source)
    begin = time.perf_counter()
    for _ in range(count):
        image, _ = next(source)
    print(f"{batch * count / (time.perf_counter() - begin):.1f}")
    assert image.shape == (batch, 3, 224, 224) and image.dtype == torch.uint8


main()
