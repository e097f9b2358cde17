#!/usr/bin/env python3
"""Exports nets of torchvision and transformers, imports them with `amp import`, and compares the results of `amp infer`
in f32 with PyTorch's. usage: torch_nets.py BUILD [PART OF A NAME]. Exit status 77: a package is not installed."""
import os
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import onnx  # noqa: F401: the exporter needs it
    import onnxscript  # noqa: F401
    import torch
    import torchvision
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
warnings.filterwarnings("ignore")

BOUND = 1e-4  # of the largest result: sums of f32 in another order
IMAGES = {  # names in torchvision.models: size of the images; arguments that make the nets small
    "alexnet": (96, {}), "resnet18": (64, {}), "resnet50": (64, {}), "mobilenet_v2": (64, {}),
    "mobilenet_v3_small": (64, {}), "vgg11_bn": (32, {}), "squeezenet1_1": (64, {}), "shufflenet_v2_x0_5": (64, {}),
    "densenet121": (64, {}), "googlenet": (64, {"init_weights": False, "aux_logits": False}),
    "inception_v3": (96, {"init_weights": False, "aux_logits": False}), "mnasnet0_5": (64, {}),
    "efficientnet_b0": (64, {}), "regnet_y_400mf": (64, {}), "convnext_tiny": (64, {}), "swin_t": (64, {}),
    "maxvit_t": (224, {})}


def image_net(name):
    size, options = IMAGES[name]
    return getattr(torchvision.models, name)(weights=None, **options), [torch.randn(2, 3, size, size)]


def small_vit():
    net = torchvision.models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10)
    torch.nn.init.normal_(net.heads.head.weight)
    return net, [torch.randn(2, 3, 32, 32)]


def language_net(name):
    import transformers as t
    ids, mask = torch.randint(0, 100, (2, 8)), torch.ones(2, 8, dtype=torch.long)
    mask[1, 5:] = 0
    if name.startswith("bert"):
        config = t.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                              vocab_size=100, max_position_embeddings=32)
        return t.BertForSequenceClassification(config), [ids, mask] if name == "bert_mask" else [ids]
    kind = {"attn_implementation": "eager"} if name == "gpt_eager" else {}
    return t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=100, n_positions=32,
                                          use_cache=False, **kind)), [ids]


class Recurrent(torch.nn.Module):
    def __init__(self, kind, both):
        super().__init__()
        self.cells = getattr(torch.nn, kind)(5, 7, num_layers=2, batch_first=True, bidirectional=both)
        self.out = torch.nn.Linear(14 if both else 7, 3)

    def forward(self, x):
        return self.out(self.cells(x)[0])


class Parts(torch.nn.Module):
    """Layers that no net above has."""

    def __init__(self):
        super().__init__()
        f = torch.nn
        self.down = f.Sequential(f.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), f.GroupNorm(2, 8), f.PReLU(8),
                                 f.MaxPool2d(3, 2, 1, ceil_mode=True), f.InstanceNorm2d(8, affine=True), f.ELU(0.5))
        self.up = f.Sequential(f.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1), f.Softplus(),
                               f.Upsample(scale_factor=2, mode="bilinear"), f.Hardswish(), f.PixelShuffle(2), f.Mish())

    def forward(self, x):
        y = self.up(self.down(x))
        z = torch.nn.functional.interpolate(y, size=(9, 11), mode="nearest").logsumexp((2, 3))
        return torch.cat([y.flatten(1), z, torch.cumsum(y.mean(1).flatten(1), 1), y.flatten(2).topk(3).values.flatten(1)], 1)


NETS = {name: (lambda name=name: image_net(name)) for name in IMAGES}
NETS["small_vit"] = small_vit
NETS["parts"] = lambda: (Parts(), [torch.randn(2, 3, 16, 16)])
for _kind in ("LSTM", "GRU", "RNN"):
    NETS[_kind.lower()] = lambda kind=_kind: (Recurrent(kind, False), [torch.randn(2, 6, 5)])
    NETS[_kind.lower() + "_both"] = lambda kind=_kind: (Recurrent(kind, True), [torch.randn(2, 6, 5)])
for _name in ("bert_mask", "bert", "gpt", "gpt_eager"):
    NETS[_name] = lambda name=_name: language_net(name)


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr + done.stdout).strip())


def set_statistics(net):
    """Draws the buffers of batch norms, so that they differ from their initial values."""
    for layer in net.modules():
        if hasattr(layer, "running_var") and layer.running_var is not None:
            torch.nn.init.normal_(layer.running_mean, std=0.1)
            torch.nn.init.uniform_(layer.running_var, 0.8, 1.2)


def largest_difference(amp, name, folder):
    torch.manual_seed(0)
    net, inputs = NETS[name]()
    net = net.eval()
    set_statistics(net)
    with torch.no_grad():
        expected = net(*inputs)
    if hasattr(expected, "logits"):
        expected = expected.logits
    path = lambda file: os.path.join(folder, file)
    names = "abc"[:len(inputs)]
    torch.onnx.export(net, tuple(inputs), path("net.onnx"), dynamo=True, optimize=False, external_data=False, verbose=False,
                      opset_version=23, input_names=[f"in_{n}" for n in names], dynamic_shapes=tuple({0: "N"} for _ in inputs))
    call(amp, "import", "-q", path("net.onnx"), "-o", path("net.amp"))
    options = []
    for n, x in zip(names, inputs):
        np.save(path(n + ".npy"), x.numpy())
        options += ["--input", f"in_{n}={path(n + '.npy')}"]
    call(amp, "infer", "-q", "--device", "cpu", "--set", "precision=f32", "-D", f"BATCH={len(inputs[0])}", *options,
         "--output", path("out.npy"), path("net.amp"))
    got = torch.from_numpy(np.load(path("out.npy")))
    if got.shape != expected.shape:
        raise RuntimeError(f"shape {list(got.shape)}, not {list(expected.shape)}")
    return float((got - expected).abs().max() / expected.abs().max())


def main():
    amp = os.path.join(sys.argv[1], "amp")
    failed = 0
    for name in NETS:
        if not any(part in name for part in sys.argv[2:] or [""]):
            continue
        try:
            with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as quiet:
                out, sys.stdout = sys.stdout, quiet
                try:
                    difference = largest_difference(amp, name, folder)
                finally:
                    sys.stdout = out
        except ImportError as e:
            print(f"{name}: skipped: {e}")
            continue
        except Exception as e:  # the exporter raises many types
            print(f"{name}: FAILED: {e}")
            failed += 1
            continue
        good = difference <= BOUND
        failed += not good
        print(f"{name}: {'pass' if good else 'FAILED'}, largest difference {difference:.1e}", flush=True)
    sys.exit(1 if failed else 0)


main()
