"""Writes graphs as jobs, and reads the compiler's messages about them."""
import copy
import json
import pathlib
import re
import subprocess

import draw
import sizes

HEAD = """data samples() { return synthetic(8, [4, 6]), synthetic(8, [5], dtype=i64, low=0, high=7) }
precision f16 { scaler(init=1.0) }
"""
OPTIMIZERS = ["SGD({0}, lr=0.1, momentum=0.5)", "Adam({0}, lr=1e-3)", "AdamW({0}, lr=1e-3, weight_decay=0.1, clip_norm=1.0)",
              "RMSprop({0}, lr=1e-3, momentum=0.9)", "Adagrad({0}, lr=1e-2)", "Adadelta({0}, lr=0.1)",
              "LAMB({0}, lr=2e-3, weight_decay=0.01)",
              "NAdam({0}, lr=1e-3)", "RAdam({0}, lr=1e-3)", "Lion({0}, lr=1e-4, weight_decay=0.01)"]
TABLE = pathlib.Path(__file__).resolve().parents[2] / "compiler/graph/optimizers.def"
OPTIMIZERS += [f"{name}({{0}}, lr=1e-3)" for name in re.findall(r"^AMPC_[A-Z]+\((\w+)", TABLE.read_text(), re.M)
               if not any(text.startswith(name + "(") for text in OPTIMIZERS)]


class Died(Exception):
    """The compiler ended with a status that is always a bug."""


class Text:
    """The lines of a job, and for each line the graph and the step that it belongs to."""

    def __init__(self):
        self.lines, self.owners = [], []

    def add(self, line, graph=None, step=None):
        for part in line.split("\n"):
            self.lines.append(part)
            self.owners.append((graph, step))

    def __str__(self):
        return "\n".join(self.lines) + "\n"


def add_steps(out, graph, indent, steps, probes):
    for step in steps:
        for line in step.lines:
            out.add(indent + line, graph, step)
        for name in step.gives if probes and step in probes else []:
            out.add(f'{indent}{name} + "its type"', graph, (step, name))


def add_module(out, graph, probes, plain):
    """The graph's module. `probes`: steps whose types the compiler must report; `plain`: calls blocks without `checkpoint`."""
    steps = graph.steps + (probes or [])
    words = set(re.findall(r"\w+", " ".join(line for s in steps + graph.sinks for line in s.lines + s.members)))
    used = [p for p in graph.parameters if p.split()[0] in words]
    out.add(f"module G{graph.seed} {{", graph)
    for p in used or [graph.parameters[0]]:
        out.add("  " + p, graph)
    for step in steps + graph.sinks:
        for member in step.members:
            out.add("  " + member, graph, step)
    at, calls = 0, []
    for k, (first, last) in enumerate(graph.blocks if not probes else []):
        inside = steps[first:last]
        given, results = block_names(graph, first, last)
        if not given or not results:
            continue
        out.add(f"  def block{k}({', '.join(given)}) {{", graph)
        add_steps(out, graph, "    ", inside, None)
        out.add(f"    return {', '.join(results)}", graph)
        out.add("  }", graph)
        call = f"block{k}(" if plain else f"checkpoint(block{k}, "
        calls.append((first, last, f"{', '.join(results)} = {call}{', '.join(given)})"))
    out.add("  def forward(x0, i0) {", graph)
    out.add(f"    autocast({graph.precision})", graph)
    for first, last, call in calls + [(len(steps), len(steps), "")]:
        add_steps(out, graph, "    ", steps[at:first], probes)
        if call:
            out.add("    " + call, graph)
        at = last
    add_steps(out, graph, "    ", graph.sinks, None)
    losses = [[], []]
    for sink in graph.sinks:
        losses[sink.loss % graph.losses].append(sink.gives[0])
    zero = f"{(used or graph.parameters)[0].split()[0]}.sum().to(f32) * 0.1"
    out.add("    return " + ", ".join(" + ".join(names + [zero]) for names in losses[:graph.losses]), graph)
    out.add("  }", graph)
    out.add("}", graph)


def block_names(graph, first, last):
    """The parameters and the results of a block of steps."""
    inside = graph.steps[first:last]
    made = {n for s in inside for n in s.gives}
    bound = {n for s in inside for line in s.lines for n in re.findall(r"v\d+", line.partition(" = ")[0])}
    later = set().union(*[s.uses() for s in graph.steps[last:] + graph.sinks])
    given = [n for n in graph.types if n[0] != "p" and n not in bound and any(n in s.uses() for s in inside)]
    return given, [n for n in graph.types if n in made and n in later]


def add_training(out, graph):
    name = f"g{graph.seed}"
    out.add(f"model {name} = G{graph.seed}()", graph)
    losses = [f"l{k}" for k in range(graph.losses)]
    rng = draw.random.Random(graph.seed)
    for k in range(graph.losses):
        text = graph.optimizer or rng.choice(OPTIMIZERS)
        out.add(f"optimizer {name}_{k} = {text.format(name)}", graph)
    out.add(f"train x, i in samples() with batch=2, steps=2, name=\"{name}\" {{", graph)
    for k in range(graph.losses):
        out.add(f"  {', '.join(losses)} = {name}(x, i)", graph)
        out.add(f"  minimize l{k} with {name}_{k}", graph)
    out.add("}", graph)


def whole(graphs, plain=False):
    """A job with a train block for each graph. Half of the jobs have fewest casts."""
    out = Text()
    fewest = graphs[0].seed // 12 % 2
    out.add(HEAD.replace("scaler(", "fewest_casts(true); scaler(") if fewest else HEAD)
    if any("own_scale(" in line for g in graphs for s in g.steps for line in s.lines):
        out.add(draw.OPS)
    for g in graphs:
        add_module(out, g, None, plain)
        add_training(out, g)
    return out


def messages(ampc, folder, text, *options):
    """The errors that the compiler finds, as (line, message)."""
    path = pathlib.Path(folder) / "check.amp"
    path.write_text(str(text))
    done = subprocess.run([ampc, "--check", "--target=cpu", "--error-format=json", "--error-limit", "0", *options, path],
                          capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 1):
        raise Died(f"status {done.returncode}: {done.stderr[-600:]}")
    found = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    if done.returncode and not any(m["severity"] == "error" for m in found):
        raise Died(f"status 1 without an error: {done.stderr[-600:]}")
    return [(m["line"], m["message"]) for m in found if m["severity"] == "error"]


def probe(ampc, folder, trials):
    """Adds the candidates that are valid to their graphs. trials: [(graph, [step, ..])]"""
    bad, types = set(), {}
    while not types and any(s not in bad for _, steps in trials for s in steps): # a syntax error hides all other messages
        before = len(bad)
        ask(ampc, folder, [(g, [s for s in steps if s not in bad]) for g, steps in trials], bad, types)
        if len(bad) == before:
            break
    for graph, steps in trials:
        for step in steps:
            if step not in bad:
                accept(graph, step, types)


def ask(ampc, folder, trials, bad, types):
    """Adds the steps that are wrong to `bad`; types: {(step, name): text}"""
    out = Text()
    out.add(draw.OPS)
    for graph, steps in trials:
        add_module(out, graph, steps, False)
        out.add(f"model g{graph.seed} = G{graph.seed}()", graph)
        out.add(f"infer see{graph.seed}(x0: f32[2, 4, 6], i0: i64[2, 5]) {{ return g{graph.seed}(x0, i0) }}", graph)
    for line, message in messages(ampc, folder, out):
        graph, step = out.owners[line - 1]
        asked = re.match(r'`\+` cannot take (.*) and str "its type"$', message)
        if isinstance(step, tuple) and asked:
            types[step] = asked[1]
        elif step is not None:
            bad.add(step if not isinstance(step, tuple) else step[0])


def accept(graph, step, types):
    """Adds a step to its graph with the results that are tensors of at most MOST_ELEMENTS elements."""
    names = []
    for name in step.gives:
        found = re.match(r"(f16|bf16|f32|i32|i64|u8|bool)\[([\d, ]*)\]$", types.get((step, name), ""))
        dims = [int(d) for d in found[2].split(", ")] if found and found[2] else []
        if found and sizes.count(dims) <= sizes.MOST_ELEMENTS:
            names.append((name, (found[1], dims)))
    if names:
        graph.steps.append(step)
        graph.types.update(names)
        step.gives = [n for n, _ in names]


def settle(graph):
    """Uses the values: as terms of the losses, and in Buffers, which show every bit."""
    rng = graph.random
    used = set().union(*[s.uses() for s in graph.steps])
    for name in [n for s in graph.steps for n in s.gives]:
        dtype, dims = graph.types[name]
        if name in used and rng.random() < 0.75:
            continue
        step = draw.Step([])
        step.loss = len(graph.sinks)
        step.value = name
        graph.sinks.append(step)
        if rng.random() < 0.6:
            kind = "f32" if dtype[0] == "f" or dtype == "bf16" else "bool" if dtype == "bool" else "i64"
            buffer = graph.fresh("kept")
            step.members.append(f"{buffer} = Buffer({dims}, dtype={kind})")
            step.lines.append(f"if training {{ {buffer} = {name}.to({kind}) }}")
        term = graph.fresh("s")
        step.gives = [term]
        form = rng.choice(["{0}.to(f32).mean()", "({0}.to(f32) * 0.5).tanh().sum()", "(sin({0}.to(f32)) * {0}).to(f32).mean()",
                           "square({0}.to(f32) - 0.3).mean()"])
        step.lines.append(f"{term} = " + form.format(name))
    if graph.steps and rng.random() < 0.5:
        first = rng.randrange(len(graph.steps))
        last = rng.randint(first + 1, len(graph.steps))
        graph.blocks = [(first, last)]


def drop(graph, step):
    """Removes a step and all steps that depend on it."""
    gone = [step]
    while gone:
        step = gone.pop()
        for steps in (graph.steps, graph.sinks):
            if step in steps:
                steps.remove(step)
                gone += [s for s in graph.steps + graph.sinks if set(step.gives) & s.uses()]
    graph.blocks = [(a, min(b, len(graph.steps))) for a, b in graph.blocks if a < len(graph.steps)]


def clean(ampc, folder, graphs):
    """Drops the steps that later passes refuse. A graph that they still refuse loses all steps."""
    for _ in range(12):
        text = whole(graphs)
        found = messages(ampc, folder, text)
        if not found:
            return
        for line, _ in found:
            graph, step = text.owners[line - 1]
            if step is not None:
                drop(graph, step)
            elif graph:
                graph.steps.clear()
        graphs[:] = [g for g in graphs if g.steps]
        if not graphs:
            return
    for graph in graphs:
        graph.steps.clear()


def draw_graphs(tools, reference, seeds, rounds=5, candidates=6):
    """Returns the graphs that compile, at most one for each seed, and (graph, message) for those on which the compiler crashed."""
    graphs, died = [draw.Graph(seed) for seed in seeds], []
    for _ in range(rounds):
        trials = [(g, [c for c in (draw.candidate(g, reference) for _ in range(candidates)) if c]) for g in graphs]
        survive(lambda some: probe(tools.ampc, tools.folder, some), trials, died)
    for g in graphs:
        settle(g)
    survive(lambda some: clean(tools.ampc, tools.folder, [g for g, _ in some]), [(g, []) for g in graphs], died)
    return [g for g in graphs if g.steps], died


def survive(work, trials, died):
    """Does the work on all (graph, steps). If the compiler crashes, repeats it on halves until the cause is known."""
    try:
        work(trials)
    except Died as end:
        (graph, steps), half = trials[0], len(trials) // 2
        parts = [trials[:half], trials[half:]] if half else [[(graph, [s])] for s in steps] if len(steps) > 1 else []
        for part in parts:
            survive(work, part, died)
        if not parts:
            bad = copy.deepcopy(graph)
            bad.steps += steps
            died.append((bad, str(end)))
            if not steps:
                graph.steps.clear()
