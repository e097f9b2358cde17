#!/usr/bin/env python3
"""Time and memory of a compile: the models of models/ at full size, then nets of a thousand to a million nodes.

    bench/compile.py [--ampc build/ampc] [--runs 10] [--most 1000000] [--out bench/results/compile-DATE.md]

Each figure is the minimum over several runs of the whole process: it reads the job, runs all passes and writes the .cu.
--out writes the tables to a file, and next to it a plot of time and memory over nodes, as .svg."""
import argparse
import datetime
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = ["fashion_mnist/mlp", "mnist_cnn/mnist_cnn", "resnet18/resnet18", "resnet50/resnet50",
          "efficientnet_b0/efficientnet_b0", "efficientnet_b7/efficientnet_b7", "vit_b_16/vit_b_16", "unet/unet",
          "gpt2/gpt2"]

# N blocks, each with its own parameters, as in a transformer.
BLOCKS = """const N = 8
module Block(width: int) {
  norm = LayerNorm(width)
  fc1 = Linear(width, 2 * width)
  fc2 = Linear(2 * width, width)
  def forward(x) { return x + fc2(gelu(fc1(norm(x)))) }
}
module Net {
  blocks = Sequential(*[Block(64) for i in range(N)])
  head = Linear(64, 10)
  def forward(x) { return head(blocks(x)) }
}
"""
# A long chain of small operations, which the compiler fuses: N times three.
CHAIN = """const N = 8
module Net {
  w = Parameter([64])
  head = Linear(64, 10)
  def forward(x) {
    for i in range(N) { x = (x + w).tanh() * w }
    return head(x)
  }
}
"""
STEP = """model net = Net()
optimizer opt = AdamW(net, lr=1e-3)
precision f16
data samples() { return synthetic(1024, [64]), synthetic(1024, [], i64, 0, 10) }
train x, y in samples() with batch=32 { minimize cross_entropy(net(x), y) with opt }
"""
# name, job, nodes for each of the N; a job that unrolls to more statements than docs/grammar.md allows is refused
NETS = [("blocks of layers", BLOCKS + STEP, 40, 160000), ("chain of operations", CHAIN + STEP, 10, 1000000)]


def run(command):
    """Seconds, peak bytes and the output."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"{' '.join(command)}\n{said}")
    return seconds, used.ru_maxrss * 1024, said


def measure(args, job, define=()):
    """The minimum over the runs: seconds, bytes; and nodes, lines of the .cu."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "job.cu")
        seconds = peak = math.inf
        begin = time.perf_counter()
        for i in range(args.runs):
            if os.path.exists(out):
                os.remove(out)  # otherwise ampc would read the old file, to check whether it was edited
            s, p, said = run([args.ampc, "-v", *define, job, "-o", out])
            seconds, peak = min(seconds, s), min(peak, p)
            if time.perf_counter() - begin > 20:
                break
        nodes = int(re.search(r"(\d+) nodes", said)[1])
        with open(out, "rb") as text:
            lines = sum(1 for _ in text)
    return seconds, peak, nodes, lines


def measure_models(args):
    rows = ["| Model | nodes | lines of .cu | ms | MB |", "|---|---|---|---|---|"]
    for model in MODELS:
        job = os.path.join(ROOT, "models", model + ".amp")
        seconds, peak, nodes, lines = measure(args, job)
        rows.append(f"| {os.path.basename(model)} | {nodes:,} | {lines:,} | {seconds * 1e3:.0f} | {peak / 1e6:.0f} |")
        print(rows[-1], flush=True)
    return rows


def measure_nets(args):
    points = {}
    rows = ["| Net | nodes | lines of .cu | s | MB | us a node | KB a node |", "|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, text, each, most in NETS:
            job = os.path.join(folder, "net.amp")
            with open(job, "w") as file:
                file.write(text)
            nodes = 1000
            while nodes <= min(most, args.most):
                seconds, peak, n, lines = measure(args, job, ["-D", f"N={nodes // each}"])
                points.setdefault(name, []).append((n, seconds, peak))
                rows.append(f"| {name} | {n:,} | {lines:,} | {seconds:.3f} | {peak / 1e6:.0f} | "
                            f"{seconds / n * 1e6:.1f} | {peak / n / 1e3:.1f} |")
                print(rows[-1], flush=True)
                nodes *= 10 if nodes * 10 <= most else 4
    return rows, points


# ---- the plot: time and memory over nodes, both axes logarithmic ----

WIDTH, HEIGHT, LEFT, TOP, SIDE = 820, 380, 60, 40, 300
COLOURS = ["#1f6feb", "#d1570c"]


def panel(points, which, scale, title, unit, x0):
    values = [p[which] * scale for series in points.values() for p in series]
    nodes = [p[0] for series in points.values() for p in series]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.floor(math.log10(min(nodes))), math.ceil(math.log10(max(nodes)) - 0.01)

    def at(n, v):
        return (x0 + SIDE * (math.log10(n) - first) / (last - first),
                TOP + SIDE * (high - math.log10(v)) / (high - low))

    out = [f'<text x="{x0}" y="{TOP - 14}" font-weight="bold">{title}</text>']
    for e in range(low, high + 1):
        _, y = at(10**first, 10.0**e)
        out.append(f'<path d="M{x0} {y:.0f}h{SIDE}" stroke="#ccc"/>'
                   f'<text x="{x0 - 6}" y="{y + 4:.0f}" text-anchor="end">{10.0**e:g} {unit}</text>')
    for e in range(first, last + 1):
        x, _ = at(10**e, 10.0**low)
        out.append(f'<path d="M{x:.0f} {TOP}v{SIDE}" stroke="#ccc"/>'
                   f'<text x="{x:.0f}" y="{TOP + SIDE + 18}" text-anchor="middle">1e{e}</text>')
    for colour, (name, series) in zip(COLOURS, points.items()):
        path = [at(p[0], p[which] * scale) for p in series]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in path)
        out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in path]
    return out


def plot(points):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    out += panel(points, 1, 1, "Time of a compile over nodes", "s", LEFT + 20)
    out += panel(points, 2, 1e-6, "Memory over nodes", "MB", LEFT + SIDE + 130)
    for i, (colour, name) in enumerate(zip(COLOURS, points)):
        x = LEFT + 30 + i * 200
        out.append(f'<circle cx="{x}" cy="{HEIGHT - 10}" r="4" fill="{colour}"/>'
                   f'<text x="{x + 10}" y="{HEIGHT - 6}">{name}</text>')
    return "\n".join(out + ["</svg>\n"])


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ampc", default=os.path.join(ROOT, "build", "ampc"))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--most", type=int, default=1000000, help="nodes")
    parser.add_argument("--out", help="a .md for the tables; the plot is beside it")
    args = parser.parse_args()
    models = measure_models(args)
    rows, points = measure_nets(args)
    if not args.out:
        return
    picture = os.path.splitext(args.out)[0] + ".svg"
    with open(picture, "w") as file:
        file.write(plot(points))
    with open(args.out, "w") as file:
        file.write(f"# Time and memory of a compile, {datetime.date.today()}\n\n{processor()}, one thread; `bench/compile.py`. "
                   "The minimum of up to ten runs, each a process from its start to the written .cu.\n"
                   "Memory is the peak of the process; it cannot be less than that of the Python that starts it.\n\n")
        file.write("\n".join(models) + "\n\n" + "\n".join(rows))
        file.write(f"\n\n![time and memory over nodes]({os.path.basename(picture)})\n")


main()
