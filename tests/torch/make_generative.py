#!/usr/bin/env python3
"""Writes generative.safetensors for test_generative.c: twenty steps of the generative models, in PyTorch.

    make_generative.py

Script and test compute in float64. Weights, images and noise come from `mix`, which the test has too. For the change of
each parameter and each running statistic, the file has two numbers: its inner product with fixed numbers in [-1, 1), and
its norm. Settings are powers of two.
"""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from generative_nets import VAE, Autoencoder
from make_fixtures import mix, write
from make_models import seed_of, signed, start

STEPS, BATCH = 20, 4


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=2 ** -8, betas=(0.5, 0.875), eps=2 ** -10)


class Gan(nn.Module):
    noise = [8, 1, 1]

    def __init__(self, z=8, c=4):
        super().__init__()
        self.gen, self.disc = nn.Module(), nn.Module()
        self.gen.main = nn.Sequential(
            nn.ConvTranspose2d(z, 2 * c, 7, bias=False), nn.BatchNorm2d(2 * c), nn.ReLU(),
            nn.ConvTranspose2d(2 * c, c, 4, 2, 1, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
            nn.ConvTranspose2d(c, 1, 4, 2, 1, bias=False), nn.Tanh())
        self.disc.main = nn.Sequential(
            nn.Conv2d(1, c, 4, 2, 1, bias=False), nn.LeakyReLU(0.2), nn.Conv2d(c, 2 * c, 4, 2, 1, bias=False),
            nn.BatchNorm2d(2 * c), nn.LeakyReLU(0.2), nn.Conv2d(2 * c, 1, 7, bias=False), nn.Flatten())

    def begin(self):
        self.optimizers = adam(self.disc), adam(self.gen)

    def step(self, real, z):
        def bce(logit, target):
            return F.binary_cross_entropy_with_logits(logit, torch.full_like(logit, target))

        opt_d, opt_g = self.optimizers
        fake = self.gen.main(z)
        says = self.disc.main(fake.detach())
        loss_d = bce(self.disc.main(real), 0.875) + bce(says, 0.0)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = bce(self.disc.main(fake), 1.0)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        return loss_d.item(), loss_g.item()


class Lone:
    """One model, one optimizer, one loss; its input is in [-1, 1)."""
    def begin(self):
        self.optimizer = adam(self)

    def step(self, x, noise):
        loss = self.loss((x + 1) / 2, noise)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return [loss.item()]


class LoneVAE(Lone, VAE):
    pass


class LoneAutoencoder(Lone, Autoencoder):
    pass


def state(net):
    """Parameters and running statistics, by name."""
    return {name: v.detach().numpy().ravel().copy() for name, v in net.state_dict().items() if v.is_floating_point()}


def run(net):
    net.train()
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(start(name, p))
    net.double()
    net.begin()
    before, losses = state(net), []
    for step in range(STEPS):
        x = torch.tensor(signed(1000 + step, BATCH * 784).reshape(BATCH, 1, 28, 28))
        noise = torch.tensor(2 * signed(2000 + step, BATCH * net.noise[0]).reshape(BATCH, *net.noise))
        losses.append(net.step(x, noise))
    change = {name: v - before[name] for name, v in state(net).items()}
    return np.array(losses), np.array([[np.dot(v, signed(seed_of(name) + 1, v.size)), np.linalg.norm(v)]
                                       for name, v in change.items()]), " ".join(change)


def main():
    tensors, metadata = {}, {}
    for name, net in (("dcgan", Gan()), ("vae", LoneVAE(4, 16, 0.5)), ("autoencoder", LoneAutoencoder(4, 8))):
        tensors[f"{name}/losses"], tensors[f"{name}/change"], metadata[name] = run(net)
        print(f"{name}: losses {tensors[f'{name}/losses'][0]} to {tensors[f'{name}/losses'][-1]}")
    write("generative.safetensors", tensors, metadata)


if __name__ == "__main__":
    main()
