"""The autoencoders of models/ in PyTorch, for make_generative.py and tests/models/autoencoders.py. Images are [n, 1, 28, 28] with values in [0, 1]."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, z, hidden, beta=1.0):
        super().__init__()
        self.enc = nn.Sequential(nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, hidden), nn.ReLU(), nn.Linear(hidden, 784), nn.Unflatten(1, (1, 28, 28)))
        self.noise, self.beta = [z], beta

    def loss(self, x, noise):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        logit = self.dec(mu + torch.exp(0.5 * logvar) * noise)
        kl = -0.5 * torch.sum(1 + logvar - mu ** 2 - torch.exp(logvar))
        return (F.binary_cross_entropy_with_logits(logit, x, reduction="sum") + self.beta * kl) / len(x)


class Autoencoder(nn.Module):
    noise = [1]

    def __init__(self, c, code):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, c, 3, 2, 1), nn.ReLU(), nn.Conv2d(c, 2 * c, 3, 2, 1), nn.ReLU(),
                                     nn.Flatten(), nn.Linear(2 * c * 49, code))
        self.decoder = nn.Sequential(nn.Linear(code, 2 * c * 49), nn.ReLU(), nn.Unflatten(1, (2 * c, 7, 7)),
                                     nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.ReLU(),
                                     nn.ConvTranspose2d(c, 1, 4, 2, 1), nn.Sigmoid())

    def loss(self, x, noise):
        return F.mse_loss(self.decoder(self.encoder(x)), x)
