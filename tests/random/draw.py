"""Draws random graphs from the reference of the language.

Every function and layer has an entry with an example there, so a new op is drawn as soon as it exists. A candidate is such an
example with other sizes, other options and other operands. The compiler decides what is valid: all candidates of a round are
in one job, and its messages report which are wrong and what types the others have.
"""
import pathlib
import random
import re
import subprocess
import sys

import sizes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import examples  # noqa: E402  (the entries of the reference)

CHAPTERS = {"elementwise.md": 5, "reductions.md": 6, "shapes.md": 6, "matrix.md": 3, "image.md": 3, "layers.md": 2, "losses.md": 2,
            "random.md": 1}
LEAF = re.compile(r"\b(rand|randn|zeros|ones)\((\[[\d, ]*\]|[\d, ]+)\)|\brandint\((\d+), (\d+), (\[[\d, ]*\])\)")
NAME = re.compile(r"\b[vpxi]\d+\b")
PRECISIONS = ["f32", "f16", "bf16", "tf32"]
REGIONS = ["autocast(f16)", "autocast(bf16)", "autocast(f32)", "autocast(off)", "autocast(tf32)", "no_grad"]
OPS = """
op own_scale(x: float[N], y: float[N]) -> (z: float[N]) {
  threads = N
  cuda = "z[i] = z_t((float)x[i] * 0.5f + (float)y[i] * (float)y[i]);"
  host = "for (int64_t i = 0; i < N; i++) z[i] = x[i] * 0.5f + y[i] * y[i];"
  def backward(dz) { return dz * 0.5, dz * 2.0 * y }
}
"""


class Step:
    """A step of a graph: lines of text, the names that they bind, the members that they need."""

    def __init__(self, lines, members=()):
        self.lines, self.members = list(lines), list(members)
        self.gives = []

    def uses(self):
        return set(NAME.findall(" ".join(self.lines)))


class Graph:
    """The steps in order, the type of each value, and the sinks, which use the results."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.steps, self.types, self.sinks, self.blocks = [], {}, [], []
        self.count = 0
        self.parameters = []
        self.precision = self.random.choice(PRECISIONS)
        self.optimizer = None
        self.losses = self.random.choice([1, 1, 2])
        self.types["x0"], self.types["i0"] = ("f32", [2, 4, 6]), ("i64", [2, 5])
        for _ in range(3):
            self.parameter("f32", [self.random.choice(sizes.SIZES) for _ in range(self.random.choice([1, 2, 3, 3, 4]))])

    def fresh(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count}"

    def parameter(self, dtype, dims):
        """Adds a Parameter whose initial values are in the domain of most functions."""
        name = self.fresh("p")
        start = self.random.choice(["uniform_(0.1, 0.9)", "uniform_(-0.9, 0.9)", "normal_()"])
        self.parameters.append(f"{name} = Parameter({dims}, init={start})")
        self.types[name] = (dtype, dims)
        return name

    def pick(self, kinds="f", young=0.6):
        """A value whose type begins with one of these letters, preferably a recent one; None if there is none."""
        names = [n for n in self.types if self.types[n][0][0] in kinds]
        if not names:
            return None
        return self.random.choice(names[-5:] if self.random.random() < young else names)


# ---- operands ---------------------------------------------------------------------------------------------------------


def operand(graph, dims, kind="f", high=None):
    """An expression of this shape: a value of the graph, reshaped to fit, or a new Parameter."""
    rng = graph.random
    if kind == "f":
        if rng.random() < 0.15:
            return graph.parameter("f32", dims)
        name = graph.pick("fb" if rng.random() < 0.9 else "iu")
        dtype, have = graph.types[name]
        text = sizes.fit(rng, name, have, dims)
        return text if dtype[0] in "fb" and dtype != "bool" else f"({text}).to(f32)"
    if rng.random() < 0.5:
        return f"randint(0, {high}, {dims})"
    name = graph.pick("iu") or "i0"
    return f"({sizes.fit(rng, name, graph.types[name][1], dims)}).to(i64) % {high}"


def with_operands(graph, line, keep=0.1):
    """Replaces `rand(..)`, `randint(..)` and similar calls in the line by values of the graph."""
    def change(found):
        if graph.random.random() < keep:
            return found[0]
        if found[1]:
            return operand(graph, [int(n) for n in re.findall(r"\d+", found[2])])
        return operand(graph, [int(n) for n in re.findall(r"\d+", found[5])], "i", int(found[4]))
    return LEAF.sub(change, line)


# ---- candidates -------------------------------------------------------------------------------------------------------


class Reference:
    """The entries of the reference and their signatures, without some chapters."""

    def __init__(self, ampc, without=()):
        self.entries, self.signature = {}, {}
        self.chapters = {chapter: weight for chapter, weight in CHAPTERS.items() if chapter not in without}
        for chapter, heading, text, lines in examples.entries():
            if chapter in self.chapters and lines:
                name = re.match(r"\w+", heading)[0]
                words = re.findall(r'"([\w-]+)"', text + " ".join(lines))
                self.entries.setdefault(chapter, []).append((name, lines, words))
        text = subprocess.run([ampc, "--help-on", "all"], capture_output=True, text=True, check=True).stdout
        for found in re.finditer(r"^---- (\w+)\(((?:.|\n)*?)\)$", text, re.M):
            self.signature[found[1]] = sizes.split(re.sub(r"\s+", " ", found[2]))

    def options(self, name):
        """(key, default) of each argument that has a default."""
        found = (re.match(r"(\w+)(?:: \w+)? ?= ?(.*)$", a.strip()) for a in self.signature.get(name, []))
        return [(f[1], f[2]) for f in found if f]


def other_value(rng, default, words):
    """Another value for an option with this default."""
    if default in ("true", "false"):
        return rng.choice(["true", "false"])
    if default.startswith('"'):
        return f'"{rng.choice(words)}"' if words else default
    if default == "none":
        return rng.choice(["none", "0", "1", "-1", "2", "[0, 1]", "[0]", "true", "f16", "0.5"])
    if re.match(r"-?\d+$", default):
        return rng.choice(["0", "1", "2", "-1", "3"])
    if re.match(r"-?[\d.e-]+$", default):
        return rng.choice(["0.0", "0.25", "1.0", "2.0"])
    return rng.choice(["f16", "f32", "i64"]) if default.startswith(("f", "i")) else default


def with_option(rng, reference, name, line, words):
    """Gives the call of `name` in this line another option, or one of its options another value."""
    options = reference.options(name)
    at = line.find(name + "(")
    if not options or at < 0:
        return line
    key, default = rng.choice(options)
    end = sizes.closing(line, at + len(name))
    value = other_value(rng, default, words)
    call = line[at:end]
    changed = re.sub(rf"\b{key}=(\[[^\]]*\]|[^,()]+)", f"{key}={value}", call)
    if changed == call:
        changed = call + (f", {key}={value}" if call[len(name) + 1:] else f"{key}={value}")
    return line[:at] + changed + line[end:]


def other_sizes(rng, lines):
    """Replaces large sizes by small ones, and perhaps one or two sizes everywhere, mostly by 1."""
    text = re.sub(r"(?<![\w.])(16|32)(?![\w.])", lambda f: str(int(f[1]) // 4), "\n".join(lines))
    numbers = sorted(set(re.findall(r"\d+", " ".join(f[2] or f[5] or "" for f in LEAF.finditer(text)))))
    for _ in range(rng.choice([0, 1, 1, 2])):
        if numbers:
            text = re.sub(rf"(?<![\w.]){rng.choice(numbers)}(?![\w.])", str(rng.choice([1, 1, 1, 2, 3, 4, 5])), text)
    return text.split("\n")


def from_example(graph, reference):
    """An entry's example as a candidate."""
    rng = graph.random
    chapter = rng.choices(list(reference.chapters), reference.chapters.values())[0]
    name, lines, words = rng.choice(reference.entries[chapter])
    lines = [line.partition(" #")[0].rstrip() for line in lines]
    if any("{" in line for line in lines):
        return None
    lines = other_sizes(rng, lines)
    if rng.random() < 0.4:
        lines = [with_option(rng, reference, name, line, words) for line in lines]
    members, body, names = [], [], {}
    for line in lines:
        member = bool(re.match(examples.MEMBER, line))
        if not member:
            line = with_operands(graph, line)
        targets, _, value = line.partition(" = ")
        for word, new in names.items():
            value = re.sub(rf"(?<![\w.\"]){word}(?=[^\w=\"]|$)", new, value)
        for target in targets.split(", "):
            names[target] = graph.fresh("layer" if member else "v")
        (members if member else body).append(", ".join(names[t] for t in targets.split(", ")) + " = " + value)
    return Step(body, members)


def from_operators(graph, _):
    """An operator on two values whose shapes broadcast."""
    rng = graph.random
    a = graph.pick()
    dims = graph.types[a][1]
    b = operand(graph, sizes.broadcastable(rng, dims))
    form = rng.choice(["{a} + {b}", "{a} - {b}", "{a} * {b}", "{b} * {a}", "{a} / ({b} + 1.5)", "{a} % ({b} + 1.5)", "-{a}", "{a} ** 2",
                       "where({a} > {b}, {a}, {b})", "({a} < {b}).to(f32)", "{a} * 2", "{a} // 0.3", "{a}.to(f16)", "{a}.to(bf16)",
                       "{a}.to(i64)", "maximum({a}, {b})", "{a} * 0.5 + {b}", "{a} > {b}", "({a} > 0.1) & ({b} > 0.1)", "jvp_", "grad_", "own_"])
    if form == "own_":
        m = sizes.count(dims)
        form = f"own_scale({{a}}.view({m}), ({{b}} + {{a}} * 0.0).view({m}))"
    if form == "grad_":
        f = rng.choice(["sin", "exp", "sigmoid", "softplus", "tanh"])
        return Step([f"{graph.fresh()} = grad(({f}({a}) * {a}).sum(), {a})"])
    if form == "jvp_":
        f = rng.choice(["sin", "exp", "sigmoid", "softplus", "tanh"])
        return Step([f"{graph.fresh()}, {graph.fresh()} = jvp({f}, {a}, {a} * 0.5)"])
    return Step([f"{graph.fresh()} = " + form.format(a=a, b=b)])


def from_views(graph, _):
    """A view of a view of a value."""
    rng = graph.random
    name = graph.pick("fbiu", young=0.7)
    text, dims = name, graph.types[name][1]
    for _ in range(rng.choice([1, 2, 2, 3])):
        text, dims = sizes.view(rng, text, dims)
    return Step([f"{graph.fresh()} = {text}"]) if text != name else None


def from_reductions(graph, reference):
    """A reduction of a value over any of its axes."""
    rng = graph.random
    name = graph.pick()
    rank = len(graph.types[name][1])
    names = ["max", "min"] + [n for n in reference.signature if {"dim", "keepdim"} <= dict(reference.options(n)).keys()]
    axes = rng.sample(range(rank), rng.randint(1, rank)) if rank else []
    axes = [a - rank if rng.random() < 0.3 else a for a in axes]
    dim = str(axes[0]) if len(axes) == 1 else str(axes)
    call = f"{rng.choice(names)}({name}, dim={dim}, keepdim={rng.choice(['true', 'false'])})"
    call += "[0]" if call[:3] in ("max", "min") else ""
    return Step([f"{graph.fresh()} = {call}{rng.choice(['', '', '', ' * 2', '.view(-1)', '[0]'])}"])


def from_loop(graph, reference):
    """A `scan` loop around a call. The result is reshaped to fit the carried value; the loop may slice rows and emit values."""
    rng = graph.random
    start = graph.pick()
    carried, inner = graph.fresh(), (from_example if rng.random() < 0.7 else from_operators)
    dims = graph.types[start][1]
    graph.types[carried] = ("f32", dims)
    step = inner(graph, reference)
    del graph.types[carried]
    if not step:
        return None
    made = re.findall(r"(\w+)(?:, \w+)* = ", step.lines[-1])[0]
    rounds, before, turn = rng.choice([2, 3]), [f"{carried} = {start}.to(f32)"], ""
    if rng.random() < 0.5:
        rows = graph.fresh()
        before.append(f"{rows} = {operand(graph, [rounds] + dims)}")
        turn = f" + 0.1 * {rows}[t]"
    body = [*step.lines, f"{carried} = (0.5 * {carried} + 0.1 * {made}{turn}).to(f32)"]
    if rng.random() < 0.5:
        body.append(f"emit {graph.fresh()} = {rng.choice([made, carried])}")
    way = rng.choice(["range({0})", "reversed(range({0}))"]).format(rounds)
    step = Step([*before, f"scan t in {way} carry {carried} {{", *[f"  {line}" for line in body], "}"], step.members)
    step.gives = [carried] + re.findall(r"emit (v\d+)", body[-1])
    return step


KINDS = [(from_example, 10), (from_operators, 4), (from_views, 4), (from_reductions, 3), (from_loop, 1)]


def candidate(graph, reference):
    """A step that may be invalid; None if none could be made."""
    rng = graph.random
    kind = rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
    step = kind(graph, reference)
    if not step:
        return None
    if rng.random() < 0.12 and kind is not from_loop:
        step.lines = [f"{rng.choice(REGIONS)} {{", *[f"  {line}" for line in step.lines], "}"]
    if kind is not from_loop:
        found = [n for line in step.lines for n in re.findall(r"v\d+", re.match(r" *((?:v\d+, )*v\d+) = |", line)[0])]
        step.gives = list(dict.fromkeys(found))
    return step
