#!/usr/bin/env python3
"""The autoencoders of models/ compared with PyTorch: their losses on the test images after the same number of epochs.

    autoencoders.py AMP [EPOCHS [PRECISION]]     Python with PyTorch and numpy; without them the test is skipped

Each side draws its own initial values, order and noise; PyTorch computes in f32. The VAE's negative ELBO must be within 2 %
of PyTorch's: three seeds of the VAE gave 250.3 to 250.6. The autoencoder's error varies more with the seed; it may be at most
10 % above PyTorch's.
"""
import gzip
import re
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.append(str(Path(__file__).resolve().parents[1] / "torch"))
from generative_nets import VAE, Autoencoder  # noqa: E402

DATA = "/usr/share/datasets/fashion-mnist/"


def pictures(split):
    with gzip.open(DATA + split + "-images-idx3-ubyte.gz") as f:
        return torch.tensor(np.frombuffer(f.read()[16:], np.uint8).reshape(-1, 1, 28, 28) / np.float32(255))


def loss(net, x):
    return net.loss(x, torch.randn(len(x), *net.noise))


def train(net, epochs, batch=128):
    data, optimizer = pictures("train"), torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(epochs):
        order = torch.randperm(len(data))
        for at in range(0, len(data) - batch + 1, batch):
            optimizer.zero_grad()
            loss(net, data[order[at:at + batch]]).backward()
            optimizer.step()
    with torch.no_grad():
        return np.mean([loss(net, x).item() for x in pictures("t10k").split(1000)])


def main():
    amp, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    precision = sys.argv[3] if len(sys.argv) > 3 else "bf16"
    torch.manual_seed(0)
    torch.set_num_threads(2)
    bad = 0
    for name, metric, net, bound in (("vae", "nelbo", VAE(20, 400), 0.02), ("autoencoder", "mse", Autoencoder(16, 32), 0.1)):
        out = subprocess.run([amp, "train", "--json", "--device", "cpu", "-D", f"EPOCHS={epochs}", "--set", f"precision={precision}",
                              "--set", "eval.batch=1000", f"models/{name}/{name}.amp"], capture_output=True, text=True)
        found = re.findall(rf'"event":"eval".*"{metric}":([0-9.e-]+)', out.stdout)  # one for each epoch
        if not found:
            sys.exit(f"FAILED: {name}: {out.stdout}{out.stderr}")
        ours, theirs = float(found[-1]), train(net, epochs)
        good = ours / theirs - 1 <= bound and (name != "vae" or ours / theirs - 1 >= -bound)
        bad += not good
        print(f"{name}: {metric} {ours:.5g} in {precision}, PyTorch {theirs:.5g}, {ours / theirs - 1:+.2%} after {epochs} "
              f"epochs (bound {bound:.0%}): {'ok' if good else 'FAILED'}")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
