"""Shrinks a failing graph: removes every part without which it still fails."""
import copy

import draw
import job
import trial


def failure(tools, graph, kind):
    """The failure of this graph, of this kind; None if it does not fail, or is not a valid job."""
    if not graph.steps:
        return None
    try:
        if job.messages(tools.ampc, tools.folder, job.whole([graph])):
            return None
    except job.Died as end:
        return str(end) if kind == "compiler" else None
    found = trial.examine(tools, [graph], [kind] if kind in trial.VARIANTS else [], [kind] if kind in trial.PROOFS else [])
    found = found.get(graph.seed)
    return found[1] if found and found[0] == kind else None


def without_sink(graph, k):
    del graph.sinks[k]


def without_buffer(graph, k):
    graph.sinks[k].lines, graph.sinks[k].members = graph.sinks[k].lines[-1:], []


def without_step(graph, k):
    """Replaces the used results of step k by Parameters."""
    step, lines, gives = graph.steps[k], [], []
    used = set().union(*[s.uses() for s in graph.steps[:k] + graph.steps[k + 1:] + graph.sinks])
    if getattr(step, "cut", False) and used & set(step.gives):
        raise IndexError
    for name in set(step.gives) & used:
        dtype, dims = graph.types[name]
        new = graph.parameter("f32", dims)
        lines.append(f"{name} = {new}" + ("" if dtype == "f32" else " > 0.5" if dtype == "bool" else f".to({dtype})"))
        gives.append(name)
    if lines:
        graph.steps[k] = draw.Step(lines)
        graph.steps[k].gives, graph.steps[k].cut = gives, True
    else:
        del graph.steps[k]
        graph.blocks = [(a - (a > k), b - (b > k)) for a, b in graph.blocks]
        graph.blocks = [(a, b) for a, b in graph.blocks if a < b]


def without_unused(graph, _):
    for k in reversed(range(len(graph.steps))):
        used = set().union(*[s.uses() for s in graph.steps[k + 1:] + graph.sinks])
        if not used & set(graph.steps[k].gives):
            without_step(graph, k)


def without_region(graph, k):
    lines = graph.steps[k].lines
    if not lines[0].startswith(tuple(f"{region} {{" for region in draw.REGIONS)):
        raise IndexError
    graph.steps[k].lines = [line[2:] for line in lines[1:-1]]


def narrower(graph, k):
    """Lets the block begin later or end earlier."""
    first, last = graph.blocks[0]
    graph.blocks = [(first + (k == 0), last - (k == 1))] if last - first > 1 else []


def simple_training(graph, _):
    graph.losses, graph.optimizer = 1, "SGD({0}, lr=0.1)"


FAMILIES = [(lambda g: 1, simple_training), (lambda g: len(g.blocks), lambda g, k: g.blocks.clear()),
            (lambda g: len(g.sinks), without_sink), (lambda g: 1, without_unused), (lambda g: len(g.steps), without_step),
            (lambda g: 2 * len(g.blocks), narrower), (lambda g: len(g.steps), without_region),
            (lambda g: len(g.sinks), without_buffer), (lambda g: 1, lambda g, k: setattr(g, "precision", "f32"))]


def smallest(tools, graph, kind, what, most=120):
    """The smallest graph that still fails in this way, and its failure."""
    count, size = 0, None
    while size != len(str(job.whole([graph]))) and count < most:
        size = len(str(job.whole([graph])))
        for places, change in FAMILIES:
            for k in reversed(range(places(graph))):
                small = copy.deepcopy(graph)
                try:
                    change(small, k)
                except IndexError:
                    continue
                count += 1
                found = failure(tools, small, kind) if count < most else None
                if found:
                    graph, what = small, found
    return graph, what
