#!/usr/bin/env python3
"""Writes conv_lstm.safetensors for test_conv_lstm.c: a convolutional LSTM over videos, in PyTorch.

    make_conv_lstm.py

Script and test compute in float64. Weights and videos come from `mix`, which the test has too. The file has the states of
all steps and the last cells for the first batch, all gradients of the first step, and losses and weights of 20 steps.
Settings are powers of two.
"""
import torch
import torch.nn.functional as F
from torch import nn

from make_fixtures import mix, write
from make_models import signed, start

STEPS, BATCH, FRAMES, CHANNELS, HIDDEN, HEIGHT, WIDTH, CLASSES = 20, 4, 5, 2, 3, 6, 5, 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(CHANNELS, CHANNELS, 1)
        self.gates = nn.Conv2d(CHANNELS + HIDDEN, 4 * HIDDEN, 3, padding=1)
        self.begin = nn.Parameter(torch.empty(HIDDEN, HEIGHT, WIDTH))
        self.out = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        x = self.stem(x.flatten(0, 1)).view(x.shape)
        h, states = self.begin.expand(BATCH, -1, -1, -1), []
        c = torch.zeros_like(h)
        for t in range(FRAMES):
            i, f, o, g = self.gates(torch.cat([x[:, t], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states), c

    def loss(self, x, y):
        states, c = self(x)
        return F.cross_entropy(self.out(c.mean((2, 3))), y) + (states ** 2).mean()


def batch(step):
    """Two batches, used alternately."""
    step %= 2
    shape = (BATCH, FRAMES, CHANNELS, HEIGHT, WIDTH)
    return (torch.tensor(signed(1000 + step, torch.Size(shape).numel()).reshape(shape)),
            torch.tensor((mix(2000 + step, BATCH) * CLASSES).astype("int64")))


def main():
    net, tensors, losses = Net(), {}, []
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(start(name, p))
    net.double()
    optimizer = torch.optim.SGD(net.parameters(), lr=2 ** -2, momentum=0.875)
    tensors["states"], tensors["cells"] = net(batch(0)[0])
    for step in range(STEPS):
        loss = net.loss(*batch(step))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors.update({f"grad/{name}": p.grad.clone() for name, p in net.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensors.update({f"weights/{name}": p for name, p in net.named_parameters()})
    write("conv_lstm.safetensors", tensors, {})
    print(f"losses {losses[0]:.4f} to {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
