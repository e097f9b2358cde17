"""Runs the training steps of bench/steps.c --json in PyTorch: the same net, initial weights, batches, optimizer.

    gpu_peer.py NET FOLDER WARM-UP TIMED BATCH PRECISION MODE DEVICE
    gpu_peer.py --data FOLDER       writes data in the format of Fashion-MNIST
    gpu_peer.py --tokens FOLDER     writes shards of random tokens, for gpt2; needs NumPy
    gpu_peer.py --pictures FOLDER   writes random JPEG files in ten classes, for nets of images; needs NumPy, Pillow
    gpu_peer.py --texts FOLDER      writes pairs of random texts, for bert_large; needs NumPy
    gpu_peer.py --cells FOLDER      writes random pictures and masks, for unet; needs NumPy
    gpu_peer.py --gpu               prints the name of the GPU; fails if there is none

NET is one of bench/peer.py or gpu_nets.py; FOLDER has the files that bench_steps wrote. PRECISION is f32, tf32, f16 or bf16
(torch.autocast, f16 with a GradScaler). MODE is eager, compile (torch.compile) or graphs (torch.compile
with mode "reduce-overhead": CUDA graphs). Optimizers are fused, convolutions channels_last and chosen by
cudnn.benchmark. DEVICE is cuda, or cpu for a trial without a GPU. Prints one object with the keys of
bench_steps --json. Its ready_seconds count from the end of PyTorch's import."""
import contextlib
import gzip
import inspect
import json
import math
import os
import random
import statistics
import struct
import sys
import time

GROUPS = 5
SMOOTHING = {"resnet50": 0.1, "efficientnet_b7": 0.1, "vit_b_16": 0.11}  # of labels, as in models/
READY = 3  # steps until everything is compiled and recorded


def write_data(folder, samples=2048, seed=1):
    """Noise around one of ten pictures of 4 x 4 patches, so a net can learn the label."""
    rng = random.Random(seed)
    pictures = [[rng.randrange(256) for _ in range(49)] for _ in range(10)]
    for split in ("train", "t10k"):
        labels = bytes(rng.randrange(10) for _ in range(samples))
        images = bytearray()
        for label in labels:
            noise = rng.randbytes(784)
            images += bytes((pictures[label][i // 112 * 7 + i % 28 // 4] * 3 + noise[i]) // 4 for i in range(784))
        for kind, head, body in (("images-idx3", struct.pack(">4I", 0x803, samples, 28, 28), images),
                                 ("labels-idx1", struct.pack(">2I", 0x801, samples), labels)):
            with gzip.open(os.path.join(folder, f"{split}-{kind}-ubyte.gz"), "wb") as f:
                f.write(head + bytes(body))


def write_tokens(folder, words=50257):
    """Token ids are in order of frequency, as in text (Zipf)."""
    import numpy
    rng = numpy.random.default_rng(1)
    for split, count in (("train", 3_000_000), ("val", 400_000)):
        ids = (rng.zipf(1.2, count) - 1) % words
        ids.astype("<u2").tofile(os.path.join(folder, f"fineweb_{split}_000.bin"))


def write_pictures(folder, classes=10, pictures=112, size=256):
    import numpy
    from PIL import Image
    rng = numpy.random.default_rng(1)
    for split, count in (("train", pictures), ("val", 4)):
        for k in range(classes):
            place = os.path.join(folder, "imagenet", split, f"class{k}")
            os.makedirs(place, exist_ok=True)
            for i in range(count):
                rough = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=numpy.uint8))
                rough.resize((size, size), Image.BICUBIC).save(os.path.join(place, f"{i}.jpg"))


def write_texts(folder, samples=400, length=512, words=30522):
    """[CLS] a .. [SEP] b .. [SEP] and padding. Half of the texts fill all positions."""
    import numpy
    rng = numpy.random.default_rng(1)
    for split in ("train", "val"):
        ids = 999 + rng.zipf(1.2, (samples, length)) % (words - 999)
        ends = numpy.where(rng.random(samples) < 0.5, length, rng.integers(64, length, samples))[:, None]
        middle, at = ends // 2, numpy.arange(length)
        ids[:, 0] = 101
        ids[(at == middle) | (at == ends - 1)] = 102
        ids[at >= ends] = 0
        numpy.save(os.path.join(folder, f"{split}_ids.npy"), ids.astype("<i4"))
        numpy.save(os.path.join(folder, f"{split}_segment.npy"), ((at > middle) & (at < ends)).astype("u1"))
        numpy.save(os.path.join(folder, f"{split}_next.npy"), rng.integers(0, 2, samples).astype("<i8"))


def write_cells(folder, samples=64, size=512):
    import numpy
    rng = numpy.random.default_rng(1)
    for split in ("train", "val"):
        images = rng.integers(0, 256, (samples, 1, size, size), dtype="u1")
        numpy.save(os.path.join(folder, f"{split}_images.npy"), images)
        numpy.save(os.path.join(folder, f"{split}_masks.npy"), (images[:, 0] > 127).astype("u1"))


def rebuilt(opt, **more):
    """The same optimizer for the same parameters, which may have moved to a GPU."""
    known = inspect.signature(type(opt)).parameters
    groups = [{"params": group["params"], "weight_decay": group["weight_decay"]} for group in opt.param_groups]
    return type(opt)(groups, **{k: v for k, v in (opt.defaults | more).items() if k in known})


class Training:
    def __init__(self, argv):
        import torch
        import gpu_nets
        import peer
        self.torch = torch
        self.name, self.folder = argv[0], argv[1]
        self.batch, self.precision, self.mode, self.device = int(argv[4]), argv[5], argv[6], argv[7]
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.precision != "f32"
        torch.backends.cudnn.benchmark = True
        make, sources = gpu_nets.NETS.get(self.name, (lambda: peer.make(self.name), peer.sources_of(self.name)))
        net, opt, factor, self.clip = make()
        state = peer.read_safetensors(os.path.join(self.folder, "start.safetensors"))
        net.load_state_dict({key: state[key] for key in net.state_dict()})
        self.net = net.to(self.device)
        if self.name not in ("mlp", "gpt2", "gpt2_dropout", "bert_large"):
            self.net = self.net.to(memory_format=torch.channels_last)
        on_gpu = self.device == "cuda"
        self.opt = rebuilt(opt, **({"fused": True} if on_gpu else {}))  # its step in one kernel
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.opt, factor)
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.precision == "f16")
        self.smoothing = SMOOTHING.get(self.name, 0.0)
        self.vision, self.with_loss = self.name in peer.VISION, self.name in gpu_nets.NETS
        batches = peer.read_batches(os.path.join(self.folder, "batches.bin"), self.batch, sources)
        self.batches = [tuple(t.pin_memory() if on_gpu else t for t in one) for one in batches]
        self.loss_of = self.forward
        if self.mode != "eager":
            self.loss_of = torch.compile(self.forward, mode="reduce-overhead" if self.mode == "graphs" else None)

    def autocast(self):
        types = {"f16": self.torch.float16, "bf16": self.torch.bfloat16}
        if self.precision not in types:
            return contextlib.nullcontext()
        return self.torch.autocast(self.device, dtype=types[self.precision])

    def forward(self, *batch):
        if self.with_loss:
            return self.net.loss(*batch)
        images, labels = batch
        x = images.float() / 255
        if self.vision:
            x = ((x - 0.45) / 0.225).to(memory_format=self.torch.channels_last)
        elif self.name != "mnist_cnn":
            x = (x - 0.28604) / 0.35302
        return self.torch.nn.functional.cross_entropy(self.net(x), labels.long(), label_smoothing=self.smoothing)

    def step(self, number):
        batch = (t.to(self.device, non_blocking=True) for t in self.batches[number % len(self.batches)])
        with self.autocast():
            loss = self.loss_of(*batch)
        self.opt.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        if self.clip:
            self.scaler.unscale_(self.opt)
            self.torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)
        self.scaler.step(self.opt)
        self.scaler.update()
        self.scheduler.step()
        return loss

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def group(self, first, n):
        """Milliseconds of a step, and the last loss. The host waits only at the end."""
        begin = time.perf_counter()
        for i in range(n):
            loss = self.step(first + i)
        last = loss.clone()
        self.wait()
        return (time.perf_counter() - begin) * 1e3 / n, last.item()


def finite(x):
    """JSON cannot represent numbers that are not finite."""
    return x if math.isfinite(x) else None


def measure(argv):
    import peer  # PyTorch with it
    begin = time.perf_counter()
    t = Training(argv)
    warm, timed = int(argv[2]), int(argv[3])
    first = t.step(0).item()
    t.group(1, READY - 1)
    ready = time.perf_counter() - begin
    if warm > READY:
        t.group(READY, warm - READY)
    groups = [t.group(max(warm, READY) + i * timed, timed) for i in range(GROUPS)]
    took = sorted(ms for ms, _ in groups)
    gpu = t.device == "cuda"
    return {"step_ms": statistics.median(took), "least_ms": took[0],
            "samples_per_second": round(t.batch / statistics.median(took) * 1e3), "first_loss": finite(first),
            "last_loss": finite(groups[-1][1]), "ready_seconds": round(ready, 3),
            "memory_bytes": t.torch.cuda.max_memory_reserved() if gpu else 0,
            "device": t.torch.cuda.get_device_name() if gpu else "cpu"}


def main():
    writers = {"--data": write_data, "--tokens": write_tokens, "--pictures": write_pictures, "--texts": write_texts,
               "--cells": write_cells}
    if sys.argv[1] in writers:
        writers[sys.argv[1]](sys.argv[2])
    elif sys.argv[1] == "--gpu":
        import torch
        if not torch.cuda.is_available():
            sys.exit("no GPU that PyTorch can use")
        print(torch.cuda.get_device_name())
    else:
        print(json.dumps(measure(sys.argv[1:])))


if __name__ == "__main__":
    main()
