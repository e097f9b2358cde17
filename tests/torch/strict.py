#!/usr/bin/env python3
"""strict.py AMP [NET...]: weights of every net of models/ go to PyTorch and back, with load_state_dict(strict=True).

Out: --save-weights of a run without steps, and `amp weights` of its checkpoint. In: a file of torch.save with other
numbers, loaded by `load`, must come back with the same bits. Nets are torchvision's, Hugging Face's or those of other
scripts here. Skipped (77) without PyTorch, torchvision, transformers and safetensors."""
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / folder) for folder in ("bench", "tests/torch", "tests/models")]
try:
    import torch
    from safetensors.torch import load_file
    from torch import nn
    from torchvision import models
    from transformers import BertConfig, BertForPreTraining, BertModel
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import efficientnet_lite0
import gpu_nets
import peer
import silero_vad
from generative_nets import VAE, Autoencoder
from make_generative import Gan

AMP = Path(sys.argv[1]).resolve()


class GPT2(gpu_nets.GPT2):
    """With the tied head, whose weight is an entry of its own in a state_dict."""

    def __init__(self):
        super().__init__(p=0)
        self.lm_head = nn.Linear(768, self.WORDS, bias=False)
        self.lm_head.weight = self.wte.weight


def bert(kind, width, depth, heads):
    return kind(BertConfig(hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads, intermediate_size=4 * width))


# For each net: its file in models/, the net in the job, the net in PyTorch, the shape of a sample, a number to minimize.
IMAGE, TOKENS = "[3, 64, 64]", "[16]"
NETS = {
    "resnet18": ("resnet18/resnet18", "ResNet18()", models.resnet18, IMAGE, "net(x)"),
    "resnet50": ("resnet50/resnet50", "ResNet50()", models.resnet50, IMAGE, "net(x)"),
    "efficientnet_b0": ("efficientnet_b0/efficientnet_b0", "EfficientNet(1.0, 1.0, 0.2)", models.efficientnet_b0, IMAGE, "net(x)"),
    "efficientnet_b7": ("efficientnet_b0/efficientnet_b0", "EfficientNet(2.0, 3.1, 0.5)", models.efficientnet_b7, IMAGE, "net(x)"),
    "efficientnet_lite0": ("efficientnet_lite0/efficientnet_lite0", "EfficientNetLite(32, 1000)",
                           lambda: efficientnet_lite0.reference()[1].float(), IMAGE, "net(x)"),
    "vit_b_16": ("vit_b_16/vit_b_16", "ViT()", models.vit_b_16, "[3, 224, 224]", "net(x)"),
    "unet": ("unet/unet", "UNet()", gpu_nets.UNet, "[1, 64, 64]", "net(x)"),
    "gpt2": ("gpt2/gpt2", "GPT2()", GPT2, TOKENS, "net((x * 0.0).to(i64))"),
    "bert_large": ("bert_large/bert_large", "BertForPreTraining()", lambda: bert(BertForPreTraining, 1024, 24, 16), TOKENS,
                   "net((x * 0.0).to(i64), (x * 0.0).to(i64))[0]"),
    "minilm": ("bert_large/bert", "BertModel(30522, 384, 6, 12)", lambda: bert(BertModel, 384, 6, 12), TOKENS,
               "net((x * 0.0).to(i64), (x * 0.0).to(i64), x == x)[1]"),
    "fashion_mnist": ("fashion_mnist/fashion_mnist", "CNN()", peer.FashionCNN, "[28, 28]", "net(x)"),
    "mlp": ("fashion_mnist/mlp", "MLP()", peer.MLP, "[28, 28]", "net(x)"),
    "mnist_cnn": ("mnist_cnn/mnist_cnn", "MnistCNN()", peer.MnistCNN, "[1, 28, 28]", "net(x)"),
    "autoencoder": ("autoencoder/autoencoder", "Autoencoder()", lambda: Autoencoder(16, 32), "[1, 28, 28]", "net(x)"),
    "vae": ("vae/vae", "VAE()", lambda: VAE(20, 400), "[1, 28, 28]", "net.dec(net.enc(x).chunk(2, dim=1)[0])"),
    "dcgan generator": ("dcgan/dcgan", "Generator()", lambda: Gan(100, 64).gen, "[100, 1, 1]", "net(x)"),
    "dcgan discriminator": ("dcgan/dcgan", "Discriminator()", lambda: Gan(100, 64).disc, "[1, 28, 28]", "net(x)"),
    "convlstm": ("convlstm/convlstm", "Predictor()", lambda: nn.ModuleDict({
        "stem": nn.Conv2d(1, 8, 4), "head": nn.ConvTranspose2d(16, 1, 4), "memory": nn.ModuleDict({
            "input_gates": nn.Conv2d(8, 64, 3), "hidden_gates": nn.Conv2d(16, 64, 3, bias=False)})}), "[5, 1, 32, 32]", "net(x)"),
    "silero_vad": ("silero_vad/silero_vad", "SileroVad()", silero_vad.reference, "[1024]", "net(x)"),
}  # fmt: skip


def amp(*arguments):
    done = subprocess.run([AMP, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) and a[key].dtype == b[key].dtype for key in a)


def check(name, work):
    path, net, make, shape, value = NETS[name]
    job, weights, checkpoint, pth = (work / end for end in ("job.amp", "w.safetensors", "c.safetensors", "net.pth"))

    def save(clause, *options):
        job.write_text(f'import "{ROOT}/models/{path}.amp"\nmodel net = {net}{clause}\noptimizer opt = SGD(net, lr=0.1)\n'
                       f"data samples() {{ return synthetic(2, {shape}) }}\n"
                       f"train x in samples() with batch=2 {{ minimize mean({value}) with opt }}\n")
        amp("train", "--device", "cpu", "-q", "--steps", 0, "--save-weights", weights, *options, job)
        return load_file(weights)

    out = save("", "--save", checkpoint)
    peer_net = make()
    peer_net.load_state_dict(out, strict=True)
    amp("weights", "-q", checkpoint, weights)
    assert same(load_file(weights), out), "amp weights of the checkpoint"
    with torch.no_grad():
        for t in peer_net.state_dict().values():
            t.uniform_(0.5, 1) if t.is_floating_point() else t.fill_(7)
    torch.save({"model": peer_net.state_dict(), "epoch": 3}, pth)
    back = save(f' {{ load("{pth}") }}')
    assert same(back, peer_net.state_dict()), "other bits come back"
    make().load_state_dict(back, strict=True)
    print(f"{name}: {len(out)} tensors, strict both ways", flush=True)


for wanted in sys.argv[2:] or NETS:
    with tempfile.TemporaryDirectory() as folder:
        check(wanted, Path(folder))
