#!/usr/bin/env python3
"""Compares precisions of the models: memory, bytes of casts, predicted and measured times, deviations from f32.

    precision.py [BUILD] [NET]...     BUILD: a Release build, default build; NETs: some of the table's

Prints a table and, if no NET is named, also writes it to bench/results/precision-<date>.md. Times on the CPU, deviations
and the result of `amp tune` are only for nets whose steps take less than about 5 s on a CPU; these are marked SMALL. The
deviations are those of `amp tune --check`, after 10 steps of f32 on one batch. A row of - only: the net has errors with
this precision.
"""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURES = ["SIZE=64", "CLASSES=10"]
SMALL = True
# For each net: the job, its consts, its settings, whether it is small.
NETS = {
    "mlp": ("fashion_mnist/mlp.amp", [], [], SMALL),
    "fashion_mnist": ("fashion_mnist/fashion_mnist.amp", [], [], SMALL),
    "autoencoder": ("autoencoder/autoencoder.amp", [], [], SMALL),
    "vae": ("vae/vae.amp", [], [], SMALL),
    "dcgan, batch 32": ("dcgan/dcgan.amp", [], ["train.batch=32"], SMALL),
    "mnist_cnn, batch 32": ("mnist_cnn/mnist_cnn.amp", [], ["train.batch=32"], SMALL),
    "kjv": ("gpt2/kjv.amp", [], [], SMALL),
    "resnet18, 8 of 64 x 64": ("resnet18/resnet18.amp", PICTURES, ["train.batch=8"], SMALL),
    "unet, 8 of 64 x 64": ("unet/unet.amp", ["SIZE=64", "WIDTH=16"], ["train.batch=8"], SMALL),
    "resnet50, batch 128": ("resnet50/resnet50.amp", ["CLASSES=10"], ["train.batch=128"], not SMALL),
    "efficientnet_b0, batch 128": ("efficientnet_b0/efficientnet_b0.amp", ["CLASSES=10"], ["train.batch=128"], not SMALL),
    "vit_b_16, batch 128": ("vit_b_16/vit_b_16.amp", ["CLASSES=10"], ["train.batch=128"], not SMALL),
    "gpt2": ("gpt2/gpt2.amp", [], [], not SMALL),
    "bert_large": ("bert_large/bert_large.amp", [], [], not SMALL),
}
# The declaration of each variant; LOW is the job's own 16-bit type, None: what `amp tune` finds.
VARIANTS = {
    "f32": "precision f32",
    "autocast": "precision LOW",
    "O2": "precision O2",
    "fewest casts": "precision LOW { fewest_casts(true) }",
    "tune": None,
    "pure bf16": "precision bf16 { params(bf16, masters=false); moments(bf16) }",
}
DECLARATION = re.compile(r"^precision .*$", re.M)
STEPS = ["--steps", "10", "--batches", "1"]


def run(*command, good=True):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if good and done.returncode:
        sys.exit(f"precision.py: {' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def pictures(folder):
    """A folder of random pictures in ten classes."""
    if not (folder / "pictures").exists():
        run(ROOT / "tests/models/pictures.py", folder / "pictures", "20", "64")
    return f"DIR={folder}/pictures/"


def kjv(folder):
    if not (folder / "kjv").exists():
        run(ROOT / "models/gpt2/kjv.sh", folder / "kjv")
    return f"DIR={folder}/kjv/"


class Net:
    def __init__(self, name, build, folder):
        path, consts, settings, self.small = NETS[name]
        self.name, self.build, self.folder, self.source = name, build, folder, ROOT / "models" / path
        if name == "kjv":
            consts = consts + [kjv(folder)]
        if "CLASSES=10" in consts or "SIZE=64" in consts:
            consts = consts + [pictures(folder)]
        self.options = ["-I", self.source.parent, "--data-dir", self.source.parent]
        for const in consts:
            self.options += ["-D", const]
        for setting in settings:
            self.options += ["--set", setting]
        self.text = self.source.read_text()
        found = DECLARATION.search(self.text)
        word = found[0].split()[1] if found else "bf16"
        self.low = word if word in ("f16", "bf16") else "bf16"

    def job(self, declaration):
        """Writes the job with another precision."""
        text, n = DECLARATION.subn(lambda _: declaration, self.text, count=1)
        path = self.folder / self.source.name
        path.write_text(text if n else text + declaration + "\n")
        return path

    def tuned(self):
        """The declaration that `amp tune` finds, without comments."""
        saved, state = self.folder / "found.amp", self.folder / "found.json"
        state.unlink(missing_ok=True)
        run(self.build / "amp", "tune", "-q", *STEPS, "--save", saved, "--state", state, *self.options,
            self.job(f"precision {self.low}"))
        return re.sub(r" *#.*\n", "\n", saved.read_text()).strip()

    def row(self, declaration):
        """Memory and casts in MB, milliseconds on h200, l4 and this CPU, deviations of gradients and loss."""
        job = self.job(declaration)
        texts = {gpu: run(self.build / "ampc", "--explain=json", "--gpu", gpu, *self.options, job, good=False)
                 for gpu in ("h200", "l4")}
        if not texts["l4"]:
            return [None] * 7  # the job has errors with this precision
        told = {gpu: json.loads(text) for gpu, text in texts.items()}
        out = [told["h200"]["memory_bytes"] / 1e6, told["h200"]["cast_bytes"] / 1e6,
               *(told[gpu]["predicted"]["us"] / 1e3 for gpu in told)]
        if not self.small:
            return out + [None, None, None]
        timed = json.loads(run(self.build / "amp", "profile", "--steps", "10", "--json", *self.options, job))
        says = run(self.build / "amp", "tune", "-q", *STEPS, "--check", "--bound", "10", *self.options, job, good=False)
        found = re.search(r"deviate by (\S+) from f32, the loss by ([^;]+);", says)
        return out + [timed["plain_us"] / 1e3, *(map(float, found.groups()) if found else (None, None))]


def cells(values):
    return [f"{v:.3g}" if v is not None else "-" for v in values]


def rows_of(build, nets, folder):
    for name in nets:
        net = Net(name, build, folder)
        for variant, declaration in VARIANTS.items():
            if declaration is None and not net.small:
                continue
            declaration = (declaration or net.tuned()).replace("LOW", net.low)
            row = [name, variant, *cells(net.row(declaration))]
            print(" | ".join(row), file=sys.stderr)
            yield "| " + " | ".join(row) + " |\n"


HEAD = ("| net | precision | memory, MB | casts, MB | h200, ms | l4, ms | CPU, ms | gradients | loss |\n"
        "|---|---|---|---|---|---|---|---|---|\n")


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    nets = sys.argv[2:] or list(NETS)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(rows_of(build, nets, pathlib.Path(folder)))
    sys.stdout.writelines([HEAD, *rows])
    if sys.argv[2:]:
        return
    day = datetime.date.today()
    model = next(line for line in open("/proc/cpuinfo") if line.startswith("model name")).split(":")[1].strip()
    (ROOT / f"bench/results/precision-{day}.md").write_text(
        f"# Precisions of the models, {day}\n\n"
        "`bench/precision.py`: memory and bytes of casts of a training step for an H200; predicted times; the time of a\n"
        "step on the CPU; how far the gradients and the loss of a batch deviate from f32, after 10 steps of f32\n"
        "(`amp tune --check`). A row of - only: ViT-B/16 mixes f16 weights and f32 tensors in O2, which is an error.\n"
        "Where rows of a net have equal memory and casts, they are mostly one program: their times show the noise.\n\n"
        f"Machine: {model}, {os.cpu_count()} cores. ampc {run('git', '-C', ROOT, 'rev-parse', '--short', 'HEAD').strip()}."
        "\n\n" + HEAD + "".join(rows))


main()
