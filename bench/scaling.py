#!/usr/bin/env python3
"""Predicts step time and memory on 8 to 4,096 GPUs, and writes the tables and the plot of docs/scaling.md.

    bench/scaling.py [--build build] [--gpu h200] [--jobs 2] [--check]

The times of commands are those of `amp inspect --gpu`, the exchanges those of `ampc --emit=plan`, and the memory that of
`ampc --emit=memory`, all for the number of GPUs in question (--ranks). The times of exchanges follow from the
figures below; docs/scaling.md says where they come from. Needs NVRTC and no GPU. --check writes nothing: it compares the
bytes of exchanges with their formula, and one step with the project's limit. Status 1: a check failed."""
import argparse
import concurrent.futures
import datetime
import json
import math
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE, PICTURE = os.path.join(ROOT, "docs", "scaling.md"), os.path.join(ROOT, "docs", "scaling.svg")
GPUS = [8, 16, 64, 256, 1024, 4096]

# ---- figures: GB/s, which are bytes a ns, and us ----
MACHINE = 8  # GPUs of a machine
NVLINK, NETWORK = 350.0, 46.0  # GB/s a GPU and direction
MESSAGE = {"nvlink": 3.4, "network": 3.0}  # us of a message in an exchange of all with all
# Protocols of NCCL's ring: us once, us a step inside a machine and between machines, part of the bandwidth
RING = [(8.4, 3.4, 14.0, 1.0), (14.0, 1.9, 4.0, 0.92), (6.6, 1.0, 2.7, 0.25)]
LL_MOST = 19.0  # GB/s of the last protocol between machines
TAKEN = 0.15  # part of the multiprocessors that NCCL takes from the kernels beside it: a guess
FEW = 16384  # elements: smaller sums are added by all alike (runtime/ranks/exchange.c)
LIMIT = 0.05  # of the step that may be spent on exchange and gather: gpt2 124M, batch 16, 8 GPUs
MOST_PADDING, ODD_ROWS = 64, 2e-4  # elements that a slice may have too many; part of all elements, for tables
SIZES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8}


class Net:
    def __init__(self, name, job, batch, *options):
        self.name, self.batch = name, batch  # samples a GPU
        self.job, self.options = os.path.join(ROOT, "models", job), options

    def arguments(self, gpus):
        batch = str(self.batch * gpus)
        sizes = ["--set", f"train.batch={batch}", "--set", f"eval.batch={batch}", "--ranks", str(gpus)]
        return [*sizes, *(x for o in self.options for x in ("-D", o)), self.job]


GPT = ("DATA=none/", "P=0", "ACCUMULATE=1")
NETS = [Net("gpt2 124M", "gpt2/gpt2.amp", 16, *GPT),
        Net("gpt2 1.5B", "gpt2/gpt2.amp", 16, *GPT, "LAYERS=48", "HEADS=25", "C=1600"),
        Net("resnet50", "resnet50/resnet50.amp", 128, "DIR=none/"),
        Net("bert_large", "bert_large/bert_large.amp", 16, "DIR=none/", "ACCUMULATE=1")]
TEXTS = 512  # of a step with a fixed batch: half a million tokens
FIXED = [(8, 4), (16, 2), (64, 1), (256, 1)]  # GPUs, bodies


# ---- what the compiler says ----

def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"scaling.py: {' '.join(command)}\n{done.stderr}")
    return done.stdout


EXCHANGE = re.compile(r"  (\S+) +\S+ (\w+)\[(\d+)\] = (sum over all members|each member's slice|all members' slices|0,)(.*)")
KINDS = {"sum over all members": "sum", "each member's slice": "slice", "all members' slices": "gather", "0,": "clear"}


def read_plan(text):
    """The commands of the first train block: (name, kind, elements, bytes of one, whether only the last body has it)."""
    commands = []
    for line in text.split("\n")[1:]:
        if line and not line.startswith(" "):
            break
        found = EXCHANGE.match(line)
        if found:
            name, dtype, count, kind, rest = found.groups()
            kind = "row" if "with the next" in rest else KINDS[kind]  # a gather in one call with the next one
            commands.append((name, kind, int(count), SIZES[dtype], "last body" in line))
        elif line.startswith("  join "):
            commands.append(("join", "join", 0, 0, True))
        elif line:
            commands.append((line.split()[0], "command", 0, 0, False))
    return commands


class Compiled:
    """A net, compiled for a number of GPUs: times of commands, exchanges, memory, parameters."""

    def __init__(self, args, net, gpus):
        amp, ampc = (os.path.join(args.build, x) for x in ("amp", "ampc"))
        arguments, target = net.arguments(gpus), ["--target", "sm_90"]
        self.net, self.gpus = net, gpus
        inspected = json.loads(output(amp, "inspect", "--gpu", args.gpu, "--json", *arguments))
        block = inspected["blocks"][0]
        self.us = {c["name"]: c["predicted_us"] for c in block["commands"]}
        self.dram = inspected["gpu"]["dram_gbs"]
        self.plan = read_plan(output(ampc, "--emit=plan", *target, *arguments))
        unknown = {c[0] for c in self.plan if c[1] == "command"} - set(self.us)
        if unknown:
            sys.exit(f"scaling.py: {net.name}: no predicted time of {sorted(unknown)[:3]}")
        memory = output(ampc, "--emit=memory", *target, *arguments)
        self.memory = int(re.search(r"([\d,]+)  total", memory)[1].replace(",", ""))
        shapes = re.findall(r"\[([\d, ]+)\] \w+$", output(ampc, "--emit=params", *target, *arguments), re.M)
        self.parameters = sum(math.prod(int(d) for d in s.split(",")) for s in shapes)

    def gradients(self):
        """Elements of each exchange of gradients."""
        kind = "slice" if any(c[1] == "slice" for c in self.plan) else "sum"
        return [c[2] for c in self.plan if c[1] == kind and c[2] > FEW and c[4]]

    def scratch(self):
        """Bytes that exchanges need beside the plan's memory: exchange_scratch() of runtime/ranks/exchange.c."""
        sizes = [0]
        for _, kind, n, each, _ in self.plan:
            if kind == "sum" and n <= FEW:
                sizes.append(self.gpus * n * each)
            elif kind in ("sum", "slice"):
                sizes.append(n * each * (1 if kind == "slice" and n % self.gpus == 0 else 2))
        return max(sizes) if self.gpus > 1 else 0


# ---- times of exchanges, in us ----

def swap(gpus, size, nested=False):
    """Every GPU sends each other one its piece of `size` bytes, over NVLink and the network at the same time. `nested`:
    machines add first, then each GPU exchanges an eighth with its counterparts."""
    inside = min(gpus, MACHINE)
    near, machines = (inside - 1) * MESSAGE["nvlink"], gpus // inside
    if nested:
        return (near + size * (inside - 1) / inside / NVLINK / 1e3 + (machines - 1) * MESSAGE["network"] +
                size / inside * (machines - 1) / machines / NETWORK / 1e3)
    return max(near + size * (inside - 1) / gpus / NVLINK / 1e3,
               (gpus - inside) * MESSAGE["network"] + size * (gpus - inside) / gpus / NETWORK / 1e3)


def ring(gpus, inside, size, rate):
    """NCCL's all-gather to `size` bytes, with the protocol that NCCL expects to be the fastest."""
    between = gpus // inside - 1
    times = []
    for once, near, far, part in RING:
        most = LL_MOST if part < 0.5 and between else math.inf
        times.append(once + (gpus - 1 - between) * near + between * far +
                     size * (gpus - 1) / gpus / min(most, rate * part) / 1e3)
    return min(times) if gpus > 1 else 0


def gather(gpus, size, nested=False):
    inside = min(gpus, MACHINE)
    if nested:
        return ring(gpus // inside, 1, size / inside, NETWORK) + ring(inside, inside, size, NVLINK)
    return ring(gpus, inside, size, min(NVLINK, MACHINE * NETWORK) if gpus > inside else NVLINK)


def exchange(c, kind, count, each, nested, row=0):
    """The time of one exchange; adding, clearing and copying take as long as their bytes. `row`: bytes of other gathers
    in the same call."""
    size, local = count * each, count * each / c.dram / 1e3
    if kind == "slice":
        return swap(c.gpus, size, nested) + 2 * local
    if kind == "gather":
        return gather(c.gpus, row + size, nested)
    if kind == "clear":
        return local
    if count <= FEW:
        return gather(c.gpus, c.gpus * size, nested) + c.gpus * local
    return swap(c.gpus, size, nested) + gather(c.gpus, size, nested) + 3 * local


def step(c, bodies=1, nested=False):
    """Runs the plan's commands against a clock. Slices go beside backward, one after the other, and slow it down; all
    other exchanges wait for them. Returns the parts of the step in ms."""
    parts = dict.fromkeys(("kernels", "sums", "gradients", "weights"), 0.0)
    for body in range(bodies):
        last = body == bodies - 1
        now = beside = 0.0  # the clock; the end of the exchanges beside it
        row = 0
        for name, kind, count, each, only_last in c.plan:
            if not last and (only_last or name.startswith("opt_")):
                continue
            if kind == "command":
                overlap = max(0.0, beside - now)
                us = min(c.us[name] / (1 - TAKEN), c.us[name] + overlap * TAKEN)
                parts["kernels"] += us
                now += us
            elif kind == "row":
                row += count * each
            elif kind == "slice":
                beside = max(now, beside) + exchange(c, kind, count, each, nested)
            else:
                wait = max(0.0, beside - now)
                parts["gradients"] += wait
                us = exchange(c, kind, count, each, nested, row) if kind != "join" and c.gpus > 1 else 0
                row = 0
                big = kind == "sum" and count > FEW and only_last
                parts["weights" if kind in ("gather", "clear") else "gradients" if big else "sums"] += us
                now += wait + us
    parts = {name: us / 1e3 for name, us in parts.items()}
    return parts | {"step": sum(parts.values())}


# ---- checks ----

def check_bytes(c):
    """Compares the plan's gradients with (N - 1)/N 4 P bytes. Padding is allowed: slices and rows are whole vectors."""
    buckets = c.gradients()
    excess = sum(buckets) - c.parameters
    good = 0 <= excess <= MOST_PADDING * c.gpus * len(buckets) + ODD_ROWS * c.parameters
    part = 4e-6 * (c.gpus - 1) / c.gpus
    weights = sum(n * each for _, kind, n, each, last in c.plan if kind in ("row", "gather") and last and n > FEW)
    print(f"{c.net.name}, {c.gpus} GPUs: a GPU sends {part * sum(buckets):,.1f} MB of gradients in the plan, "
          f"{part * c.parameters:,.1f} MB by the formula{'' if good else ': FAILED'}; weights: {weights / sum(buckets):.2f} "
          f"bytes an element, {part / 4 * weights:,.1f} MB")
    return good


def check_limit(c):
    """Returns a sentence about the project's limit, and whether the step keeps it."""
    parts = step(c)
    spent = (parts["gradients"] + parts["weights"]) / parts["step"]
    verdict = "The limit is kept." if spent <= LIMIT else "**This is too much.**"
    return (f"Predicted: {parts['gradients']:.2f} ms of waiting for gradients and {parts['weights']:.2f} ms of weights, which "
            f"is {100 * spent:.1f} % of {parts['step']:.1f} ms. {verdict}"), spent <= LIMIT


# ---- the page ----

def number(x):
    return f"{x:,.0f}" if x >= 99.5 else f"{x:.1f}" if x >= 9.95 else f"{x:.2f}"


def weak_rows(compiled):
    rows = ["| net | GPUs | step, ms | kernels | sums | gradients | weights | speed of a GPU | step, nested | memory, GB |",
            "|---|---|---|---|---|---|---|---|---|---|"]
    for (net, gpus), c in compiled.items():
        if gpus not in [1, *GPUS] or net not in NETS:
            continue
        one, parts = step(compiled[net, 1])["step"], step(c)
        shown = " | ".join(number(parts[x]) if gpus > 1 or x == "kernels" else "-"
                           for x in ("kernels", "sums", "gradients", "weights"))
        nested = number(step(c, nested=True)["step"]) if gpus > MACHINE else "-"
        rows.append(f"| {net.name} | {gpus:,} | {number(parts['step'])} | {shown} | {100 * one / parts['step']:.0f} % | "
                    f"{nested} | {number((c.memory + c.scratch()) / 1e9)} |")
    return rows


def bodies_text(compiled):
    """A sentence about steps of several bodies."""
    one = compiled[NETS[0], 1]
    kept = [100 * step(one, k)["step"] / step(compiled[NETS[0], n], k)["step"] for n, k in ((256, 8), (1024, 32))]
    return f"{NETS[0].name} keeps {kept[0]:.0f} % of its speed on 256 GPUs with K = 8, and {kept[1]:.0f} % on 1,024 with K = 32."


def fixed_rows(compiled, fixed):
    rows = ["| GPUs | texts a GPU | step, ms | kernels | exchanges | speed of a GPU |", "|---|---|---|---|---|---|"]
    one = step(compiled[NETS[0], 1], TEXTS // NETS[0].batch)["step"]
    for (gpus, bodies), net in zip(FIXED, fixed):
        parts = step(compiled[net, gpus], bodies)
        texts = f"{bodies} x {net.batch}" if bodies > 1 else f"{net.batch}"
        rows.append(f"| {gpus} | {texts} | {number(parts['step'])} | {number(parts['kernels'])} | "
                    f"{number(parts['step'] - parts['kernels'])} | {100 * one / gpus / parts['step']:.0f} % |")
    return rows


WIDTH, HEIGHT, TOP, SIDE, HIGH = 860, 400, 44, 300, 270
STYLE = """<style>
svg { font: 12px sans-serif; fill: #1f2328 } .grid { stroke: #d0d7de } .key { stroke: #6e7781 } .line { fill: none; stroke-width: 2 }
.c0 { stroke: #0969da } .c1 { stroke: #bc4c00 } .c2 { stroke: #1a7f37 } .c3 { stroke: #8250df } .nested { stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) { svg { fill: #e6edf3 } .grid { stroke: #3d444d }
.c0 { stroke: #58a6ff } .c1 { stroke: #f0883e } .c2 { stroke: #3fb950 } .c3 { stroke: #bc8cff } }
</style>"""


def panel(x0, title, axis, lines):
    """One diagram: `lines` has (class, [(GPUs, value)]). Both axes are logarithmic."""
    values = [v for _, points in lines for _, v in points]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def at(gpus, value):
        return (x0 + SIDE * math.log(gpus / GPUS[0]) / math.log(GPUS[-1] / GPUS[0]),
                TOP + HIGH * (high - math.log10(value)) / (high - low))

    out = [f'<text x="{x0}" y="{TOP - 16}" font-weight="bold">{title}</text>',
           f'<text x="{x0 + SIDE / 2}" y="{TOP + HIGH + 38}" text-anchor="middle">GPUs</text>',
           f'<text transform="translate({x0 - 50} {TOP + HIGH / 2}) rotate(-90)" text-anchor="middle">{axis}</text>']
    for e in range(low, high + 1):
        y = at(GPUS[0], 10.0**e)[1]
        out.append(f'<path class="grid" d="M{x0} {y:.0f}h{SIDE}"/><text x="{x0 - 8}" y="{y + 4:.0f}" text-anchor="end">'
                   f'{10.0**e:,g}</text>')
    for gpus in GPUS:
        x = at(gpus, 10.0**low)[0]
        out.append(f'<path class="grid" d="M{x:.0f} {TOP}v{HIGH}"/><text x="{x:.0f}" y="{TOP + HIGH + 18}" '
                   f'text-anchor="middle">{gpus:,}</text>')
    for style, points in lines:
        out.append(f'<path class="line {style}" d="M' + "L".join("%.1f %.1f" % at(*p) for p in points) + '"/>')
    return out


def plot(compiled):
    times, memory = [], []
    for i, net in enumerate(NETS):
        times.append((f"c{i}", [(n, step(compiled[net, n])["step"]) for n in GPUS]))
        times.append((f"c{i} nested", [(n, step(compiled[net, n], nested=True)["step"]) for n in GPUS[1:]]))
        memory.append((f"c{i}", [(n, (compiled[net, n].memory + compiled[net, n].scratch()) / 1e9) for n in GPUS]))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">', STYLE]
    out += panel(80, "Predicted time of a step, fixed batch a GPU", "ms", times)
    out += panel(510, "Memory of a GPU", "GB", memory)
    labels = [(f"c{i}", net.name) for i, net in enumerate(NETS)] + [("key nested", "nested exchange")]
    for i, (style, label) in enumerate(labels):
        x = 80 + i * 140
        out.append(f'<path class="line {style}" d="M{x} {HEIGHT - 16}h24"/><text x="{x + 30}" y="{HEIGHT - 12}">{label}</text>')
    return "\n".join(out + ["</svg>\n"])


def replace(text, name, lines):
    """Replaces what is between the comments that name a part of the page."""
    begin, end = f"<!-- {name}: bench/scaling.py -->\n", "<!-- end -->"
    at = text.index(begin) + len(begin)
    return text[:at] + "\n".join(lines) + "\n" + text[text.index(end, at):]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="the folder of amp and ampc")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--jobs", type=int, default=2, help="compilations at a time")
    parser.add_argument("--check", action="store_true", help="only checks: exchanges of 8 GPUs")
    args = parser.parse_args()
    fixed = [Net(NETS[0].name, "gpt2/gpt2.amp", TEXTS // gpus // bodies, *GPT) for gpus, bodies in FIXED]
    wanted = [(net, n) for net in NETS for n in ([8] if args.check else [1, *GPUS])]
    wanted += [] if args.check else [(net, n) for net, (n, _) in zip(fixed, FIXED)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        compiled = dict(zip(wanted, pool.map(lambda w: Compiled(args, *w), wanted)))
    limit, kept = check_limit(compiled[NETS[0], 8])
    good = all([check_bytes(c) for c in compiled.values() if c.gpus > 1] + [kept])
    print(limit)
    if not args.check:
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        commit = output("git", "-C", args.build, "rev-parse", "--short=8", "HEAD").strip()
        parts = {"weak": weak_rows(compiled), "fixed": fixed_rows(compiled, fixed), "limit": [limit],
                 "bodies": [bodies_text(compiled)],
                 "made": [f"Made on {datetime.date.today()} by ampc {commit}, for {args.gpu}."]}
        for name, lines in parts.items():
            text = replace(text, name, lines)
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
        with open(PICTURE, "w", encoding="utf-8") as file:
            file.write(plot(compiled))
    sys.exit(not good)


main()
