#!/usr/bin/env python3
"""Writes follow.safetensors for test_follow.c: twenty steps with models that follow another one, in PyTorch.

    make_follow.py

Script and test compute in float64. Weights and batches come from `mix`, which the test has too. For each run, the file
has the losses of all bodies and the final values of all parameters and buffers. Settings are powers of two.
"""
import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from make_fixtures import mix, write

STEPS, BATCH = 20, 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.bn, self.fc2 = nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x):
        return self.fc2(torch.tanh(self.bn(self.fc1(x))))


class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.gen, self.main = nn.Linear(6, 99), Net()

    def forward(self, x, z):
        made = torch.tanh(self.gen(z.mean(0)))
        given = {"fc1.weight": made[:96].view(16, 6), "fc2.bias": made[96:]}
        return functional_call(self.main, given, (x,))


def follow(target, net, decay):
    with torch.no_grad():
        for p, q in zip(target.parameters(), net.parameters()):
            p.copy_(decay * p + (1 - decay) * q)


def copy_buffers(target, net):
    for p, q in zip(target.buffers(), net.buffers()):
        p.copy_(q)


def begin(net):
    """Sets parameter i of the program to numbers in [-0.5, 0.5); buffers count, too."""
    trained = dict(net.named_parameters())
    for i, name in enumerate(net.state_dict()):
        if name in trained:
            p = trained[name]
            p.data = torch.tensor((2 * mix(i + 1, p.numel()) - 1).reshape(p.shape) * 0.5)


def batch(body):
    return [torch.tensor((2 * mix(1000 * (i + 1) + body, BATCH * 6) - 1).reshape(BATCH, 6)) for i in (0, 1)]


def values(*nets):
    return np.concatenate([v.double().numpy().ravel() for net in nets for v in net.state_dict().values()])


def run(net, loss_of, bodies=1, target=None, before=None, after=None):
    """`before` and `after` are called once a step: before its first body, after its update."""
    opt = torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.5)
    losses = []
    for step in range(STEPS):
        if before:
            before(step)
        for i in range(bodies):
            loss = loss_of(*batch(step * bodies + i))
            (loss / bodies).backward()
            losses.append(loss.item())
        opt.step()
        opt.zero_grad()
        if after:
            after(step)
    return {"losses": np.array(losses), "values": values(*(n for n in (net, target) if n is not None))}


def pair(make):
    torch.set_default_dtype(torch.float64)
    net = make()
    begin(net)
    return net, copy.deepcopy(net).requires_grad_(False)


def dqn():
    net, target = pair(Net)

    def loss(s, t):
        return F.mse_loss(net(s)[:, 0], 0.5 * target(t).amax(1) + s.mean(1))

    def after(step):
        if (step + 1) % 4 == 0:
            target.load_state_dict(net.state_dict())
    return run(net, loss, target=target, after=after)


def moving(bodies, early=False, decay=lambda step: 0.875):
    net, target = pair(Net)

    def update(step):
        follow(target, net, decay(step))
    return run(net, lambda x, z: F.mse_loss(net(x), target(z)), bodies, target, update if early else None,
               None if early else update)


def part():
    net, target = pair(Net)

    def before(step):
        target.fc1.weight.data = 0.75 * target.fc1.weight + 0.25 * net.fc1.weight.detach()
    return run(net, lambda x, z: F.mse_loss(net(x), target(z)), target=target, before=before)


def moco():
    net, target = pair(Encoder)

    def loss(x, z):
        return F.cross_entropy(net(x) @ target(z).T / 0.5, torch.arange(BATCH))
    return run(net, loss, target=target, before=lambda step: follow(target, net, 0.875))


def synced():
    net, target = pair(Encoder)
    target.eval()

    def after(step):
        follow(target, net, 0.875)
        copy_buffers(target, net)
    return run(net, lambda x, z: F.mse_loss(net(x), target(z)), target=target, after=after)


def teacher(bodies):
    net, target = pair(Net)

    def loss(x, z):
        return F.mse_loss(net(x), z[:, :3]) + F.mse_loss(net(z), target(z))
    return run(net, loss, bodies, after=lambda step: follow(target, net, 0.875 if step else 0))


def hyper():
    net, _ = pair(Hyper)
    return run(net, lambda x, z: F.mse_loss(net(x, z), z[:, :3]))


def main():
    runs = {"dqn": dqn(), "moving": moving(1), "bodies": moving(2), "early": moving(2, early=True),
            "rising": moving(1, decay=lambda step: 1 - 0.5 / (step + 1)), "part": part(), "moco": moco(), "synced": synced(),
            "teacher": teacher(1), "teacher2": teacher(2), "hyper": hyper()}
    write("follow.safetensors", {f"{name}/{key}": torch.tensor(v) for name, r in runs.items() for key, v in r.items()}, {})


if __name__ == "__main__":
    main()
