#!/usr/bin/env python3
"""Writes models.safetensors for test_models.c: twenty steps of the nets of models/, in PyTorch.

    make_models.py [NET...]          these nets (default: all); the numbers of the others stay

Needs PyTorch 2 and torchvision. The nets are torchvision's, except the U-Net and GPT-2. Script and test compute in
float64, because deep nets amplify rounding errors. Weights, batches and the factors of gradients come from `mix`, which
the test has too. For each parameter's first gradient, and for its change in 20 steps, the file has two numbers: the inner
product with fixed numbers in [-1, 1), and the norm.
"""
import sys
from functools import partial

import numpy as np
import torch
import torchvision
from torch import nn
import torch.nn.functional as F

from make_fixtures import mix, read, write

STEPS, MOMENTUM = 20, 0.875


def double_conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, c, depth, classes):
        super().__init__()
        self.down = nn.ModuleList(double_conv(1 if i == 0 else c << (i - 1), c << i) for i in range(depth))
        self.mid = double_conv(c << (depth - 1), c << depth)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(c << (i + 1), c << i, 2, stride=2) for i in range(depth))
        self.up = nn.ModuleList(double_conv(c << (i + 1), c << i) for i in range(depth))
        self.out = nn.Conv2d(c, classes, 1)

    def forward(self, x):
        skip = []
        for d in self.down:
            x = d(x)
            skip.append(x)
            x = F.max_pool2d(x, 2)
        x = self.mid(x)
        for i in reversed(range(len(skip))):
            x = self.up[i](torch.cat([skip[i], self.grow[i](x)], 1))
        return self.out(x)


class Attention(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, 2))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(c), Attention(c, heads), nn.LayerNorm(c), MLP(c)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, layers, heads, c, length, words):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, c), nn.Embedding(length, c)
        self.h = nn.ModuleList(Block(c, heads) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(c), nn.Linear(c, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x)).transpose(1, 2)


def efficientnet():
    setting, last = torchvision.models.efficientnet._efficientnet_conf("efficientnet_b0", width_mult=0.5, depth_mult=0.5)
    return torchvision.models.EfficientNet(setting, dropout=0.0, stochastic_depth_prob=0.0, num_classes=10, last_channel=last,
                                           norm_layer=partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01))


# As in test_models.c: the net; the learning rate; the shape of the images or words; whether each
# pixel or word has a class. Rates are exact in float32. They are small because batch norm over four
# numbers amplifies the last bit: with larger steps, nothing could be compared after ten of them.
NETS = {
    "resnet18": (lambda: torchvision.models.resnet18(num_classes=10), 2.0 ** -13, (4, 3, 32, 32), False),
    "resnet50": (lambda: torchvision.models.resnet50(num_classes=10), 2.0 ** -26, (4, 3, 32, 32), False),
    "efficientnet": (efficientnet, 2.0 ** -13, (4, 3, 32, 32), False),
    "unet": (lambda: UNet(8, 3, 10), 2.0 ** -13, (2, 1, 32, 32), True),
    "vit": (lambda: torchvision.models.VisionTransformer(32, 8, 2, 4, 48, 96, num_classes=10), 2.0 ** -13,
            (4, 3, 32, 32), False),
    "gpt2": (lambda: GPT2(2, 3, 24, 9, 10), 2.0 ** -7, (5, 9), True),
}


def seed_of(name):
    """FNV-1a, 32 bits."""
    h = 2166136261
    for byte in name.encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return h


def signed(seed, n):
    return 2 * mix(seed, n) - 1


def start(name, p):
    """Numbers in [-a, a). With several axes, a is sqrt(6 / fan in); else 1/8, and the weights of a norm are around 1."""
    u = signed(seed_of(name), p.numel())
    if p.dim() > 1:
        u *= np.sqrt(6 / (p.numel() // p.shape[0]))
    else:
        u = u / 8 + (1 if name.endswith("weight") else 0)
    return torch.tensor(u.astype(np.float32).reshape(p.shape))


def projections(net, values):
    """Rows [inner product, norm], one for each parameter."""
    return np.array([[np.dot(v, signed(seed_of(name) + 1, v.size)), np.linalg.norm(v)]
                     for (name, _), v in zip(net.named_parameters(), values)])


def run(make, rate, shape, pixels):
    net = make().train()
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(start(name, p))
    net.double()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=MOMENTUM)
    flat = lambda: [p.detach().numpy().ravel().copy() for p in net.parameters()]
    before, losses, first = flat(), [], None
    labels = (shape[0],) + (shape[-1:] if len(shape) == 2 else shape[2:] if pixels else ())
    for step in range(STEPS):
        x = mix(1000 + step, int(np.prod(shape))).reshape(shape)
        x = torch.tensor(4 * x - 2 if len(shape) > 2 else np.floor(10 * x).astype(np.int64))
        y = torch.tensor(np.floor(10 * mix(2000 + step, int(np.prod(labels)))).astype(np.int64).reshape(labels))
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        if first is None:
            first = projections(net, [p.grad.numpy().ravel() for p in net.parameters()])
        optimizer.step()
        losses.append(loss.item())
    change = projections(net, [a - b for a, b in zip(flat(), before)])
    return np.array(losses), first, change, [name for name, _ in net.named_parameters()]


def main():
    names = sys.argv[1:] or list(NETS)
    tensors, metadata = read("models.safetensors")
    tensors, kept = dict(tensors), {k: v for k, v in metadata.items() if k in NETS}
    for name in names:
        losses, first, change, parameters = run(*NETS[name])
        tensors.update({f"{name}/losses": losses, f"{name}/first": first, f"{name}/change": change})
        kept[name] = " ".join(parameters)
        print(f"{name:14} {len(parameters)} parameters, loss {losses[0]:.4f} to {losses[-1]:.4f}")
    write("models.safetensors", tensors, kept)


if __name__ == "__main__":
    main()
