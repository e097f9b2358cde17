"""Runs the training steps of bench/steps.c in PyTorch: the same net, initial weights, batches and optimizer.

    peer.py NET FOLDER WARM-UP TIMED BATCH [channels_last]

NET is fashion_mnist, mlp, mnist_cnn, or resnet18, resnet50, efficientnet_b0 of torchvision with ten classes.
FOLDER has the files that bench_steps wrote. Prints the milliseconds of a step (median, minimum) and the loss of
the first and of the last step. Everything is f32, on two threads or OMP_NUM_THREADS."""
import json
import math
import os
import statistics
import struct
import sys
import time

import torch
from torch import nn

BATCHES = 8


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    types = {"F32": torch.float32, "I64": torch.int64}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(body[begin:end]), dtype=types[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def cbr(i, o, kernel=3, stride=1, padding=1, bias=False):
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, padding, bias=bias), nn.BatchNorm2d(o), nn.ReLU())


class FashionCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(cbr(1, 32), nn.MaxPool2d(2), cbr(32, 64), cbr(64, 64), nn.MaxPool2d(2),
                                      cbr(64, 128), nn.AdaptiveAvgPool2d(1))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 10))

    def forward(self, x):
        return self.classifier(self.features(x.unsqueeze(1)))


class MLP(nn.Module):
    def __init__(self, hidden=512):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, hidden), nn.Linear(hidden, hidden // 2)
        self.fc3 = nn.Linear(hidden // 2, 10)

    def forward(self, x):
        x = nn.functional.dropout(torch.relu(self.fc1(x.flatten(1))), 0.1)
        x = nn.functional.dropout(torch.relu(self.fc2(x)), 0.1)
        return self.fc3(x)


class MnistCNN(nn.Module):
    BLOCKS = [(1, 32, 3, 1, 1), (32, 64, 3, 1, 1), (64, 64, 2, 2, 0), (64, 128, 3, 1, 1), (128, 128, 3, 1, 1),
              (128, 128, 3, 1, 1), (128, 128, 2, 2, 0), (128, 256, 3, 1, 1), (256, 256, 2, 1, 0),
              (256, 512, 3, 1, 1), (512, 512, 3, 1, 1), (512, 512, 3, 1, 1), (512, 512, 2, 2, 0),
              (512, 1024, 3, 1, 1)]

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(*[cbr(*block, bias=True) for block in self.BLOCKS])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(1024, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(),
                                        nn.Linear(1000, 10))

    def forward(self, x):
        return self.classifier(self.pool(self.features(x.unsqueeze(1))).flatten(1))


def onecycle(step, steps):  # a fraction of the peak; torch.optim.lr_scheduler.OneCycleLR with its defaults
    top, last = 0.3 * steps - 1, steps - 1
    low = 1 / 25 if step <= top else 1 / 250000
    done = 1 - step / top if step <= top else (step - top) / (last - top)
    return low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(done, 1)))


def cosine(step, steps, warmup):
    if step < warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * min((step - warmup) / (steps - warmup), 1)))


VISION = {  # the optimizers of models/, with constant learning rates
    "resnet18": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=1e-4),
    "resnet50": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=1e-4),
    "vit_b_16": lambda p: torch.optim.AdamW(p, lr=1e-4, weight_decay=0.3),
    "efficientnet_b0": lambda p: torch.optim.RMSprop(p, lr=1e-4, alpha=0.9, eps=1e-3, momentum=0.9, weight_decay=1e-5),
}
VISION["efficientnet_b7"] = VISION["efficientnet_b0"]
VISION_SIZE = int(os.environ.get("SIZE", "64"))  # pixels a side


def make(name):
    """The net, its optimizer, the factor of the learning rate at a step, clip_norm."""
    if name in VISION:
        import torchvision
        net = getattr(torchvision.models, name)(num_classes=10)
        return net, VISION[name](net.parameters()), lambda step: 1.0, 1.0 if name == "vit_b_16" else None
    if name == "fashion_mnist":
        net = FashionCNN()
        opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, nesterov=True, weight_decay=5e-4)
        return net, opt, lambda step: onecycle(step, 3 * 468), None
    if name == "mlp":
        net = MLP()
        opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
        return net, opt, lambda step: cosine(step, 8 * 468, 100), 1.0
    net = MnistCNN()
    return net, torch.optim.Adam(net.parameters(), lr=1e-3), lambda step: 1.0, None


PIXELS = ((28, 28), torch.uint8)
SOURCES = {name: [((3, VISION_SIZE, VISION_SIZE), torch.uint8), ((), torch.int64)] for name in VISION}


def read_batches(path, batch, sources):
    """The tensors of each batch. `sources`: the shape of a sample and the type, for each source of the job."""
    batches = []
    with open(path, "rb") as f:
        for _ in range(BATCHES):
            tensors = []
            for shape, dtype in sources:
                size = batch * math.prod(shape) * dtype.itemsize
                tensors.append(torch.frombuffer(bytearray(f.read(size)), dtype=dtype).reshape(batch, *shape))
            batches.append(tuple(tensors))
    return batches


def sources_of(name):
    return SOURCES.get(name, [PIXELS, ((), torch.uint8)])


def main():
    name, folder, warm, timed, batch = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))
    torch.manual_seed(1)
    net, opt, factor, clip = make(name)
    state = read_safetensors(os.path.join(folder, "start.safetensors"))
    net.load_state_dict({key: state[key] for key in net.state_dict()})
    if "channels_last" in sys.argv[6:]:
        net = net.to(memory_format=torch.channels_last)
    scheduler = torch.optim.lr_scheduler.LambdaLR(opt, factor)
    batches = read_batches(os.path.join(folder, "batches.bin"), batch, sources_of(name))
    taken, losses = [], []
    for step in range(warm + timed):
        images, labels = batches[step % BATCHES]
        begin = time.perf_counter()
        x = images.float() / 255
        if name in VISION:
            x = (x - 0.45) / 0.225
            if "channels_last" in sys.argv[6:]:
                x = x.to(memory_format=torch.channels_last)
        elif name != "mnist_cnn":
            x = (x - 0.28604) / 0.35302
        smoothing = 0.1 if name in ("resnet50", "efficientnet_b0") else 0.0
        loss = nn.functional.cross_entropy(net(x), labels.long(), label_smoothing=smoothing)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        opt.step()
        scheduler.step()
        losses.append(loss.item())
        taken.append((time.perf_counter() - begin) * 1e3)
    timed_ones = taken[warm:]
    print(f"{statistics.median(timed_ones):.3f} {min(timed_ones):.3f} {losses[0]:.5f} {losses[-1]:.5f}")


if __name__ == "__main__":
    main()
