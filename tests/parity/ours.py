"""Writes the cells of programs.py as programs of the language, and reads their types after pass precision."""
import json
import os
import re
import subprocess
import tempfile
from collections import namedtuple

from programs import HERE, LETTERS, LOST, REFUSED, chains_for, regions, types_of

UNKNOWN_NAME = "E201"  # a name whose statement was refused
TOO_LONG = "E210"


class TooLong(Exception):
    """The program unrolls to more statements than a job may have."""


class Program:
    """An .amp text of cells. Each cell is one line that binds a name, so the line of an error identifies the cell."""
    def __init__(self):
        self.lines, self.cells, self.returns = [], {}, {}  # by line: (cell, name); the cells of a block

    def add(self, text):
        self.lines.append(text)

    def cell(self, cell, name, text):
        self.cells[len(self.lines)] = cell, name
        self.lines.append(text)

    def end(self, first):
        """Ends a block, which returns the names that the lines from `first` on bind."""
        self.returns[len(self.lines)] = [line for line in self.cells if line >= first]
        self.lines += ["", "}"]


def run(ampc, lines):
    with tempfile.NamedTemporaryFile("w", suffix=".amp") as f:
        f.write("\n".join(lines) + "\n")
        f.flush()
        done = subprocess.run([ampc, "--dump-after=precision", "--error-limit", "0", "--error-format", "json", f.name],
                              capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"ampc exits with status {done.returncode}: {done.stderr[-2000:]}")
    said = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    return done.stdout, [s for s in said if s["severity"] == "error"]


def without(program, refused):
    """The text without the refused lines, and the lines whose values it returns, in the order of the outputs."""
    lines = ["" if i in refused else line for i, line in enumerate(program.lines)]
    order = []
    for at, cells in program.returns.items():
        kept = [line for line in cells if line not in refused]
        lines[at] = "  return " + (", ".join(program.cells[line][1] for line in kept) or "ones(1)")
        order += kept or [None]
    return lines, order


def own_types(ampc, program):
    """{cell: letter}. Removes lines with errors until there are none; the remaining lines have types."""
    refused = {}
    while True:
        lines, order = without(program, refused)
        out, errors = run(ampc, lines)
        if any(e["code"] == TOO_LONG for e in errors):
            raise TooLong
        found = {e["line"] - 1: LOST if e["code"] == UNKNOWN_NAME else REFUSED for e in errors
                 if e["line"] - 1 in program.cells}
        if not errors:
            break
        if not found:
            raise SystemExit("an error outside of all cells: " + json.dumps(errors[0]) + "\n" + "\n".join(lines[:40]))
        refused.update(found)
    outputs = re.findall(r"^%\d+ = output (\w+)\[", out, re.M)
    if len(outputs) != len(order):
        raise SystemExit(f"{len(outputs)} outputs of {len(order)} values")
    types = {line: LETTERS[t] for line, t in zip(order, outputs) if line is not None}
    types.update(refused)
    return {program.cells[line][0]: letter for line, letter in types.items()}


# ---- the programs ------------------------------------------------------------------------------------

def shape(sizes):
    return "[" + ", ".join(map(str, sizes)) + "]"


def in_regions(chain, name, text):
    """One line: the expression in a chain of regions. A chain with `<` has it a second time behind the inner region; that one is
    the cell."""
    kinds, behind = regions(chain)
    inner = f"{name} = {text}"
    for i, kind in reversed(list(enumerate(kinds))):
        inner = f"autocast({kind}) {{ {inner} }}"
        if behind and i == 1:
            inner += f"; {name} = {text}"
    return "  " + inner


def add_case(program, case, rows):
    """Adds all chains for all `rows` of input types of a case."""
    for key, text in case.modules.items():
        program.add(f"model {key} = {text}")
    for key, arguments, result in case.functions:
        program.add(f"def {key}({arguments}) {{ return {result} }}")
    for i, types in enumerate(rows):
        inputs = [f"{key}: {t}{shape(sizes)}" for (key, sizes), t in zip(case.tensors.items(), types)]
        inputs += [f"t: i64[{case.targets}]"] if case.targets else []
        first = len(program.lines)
        program.add(f"infer {case.name}_row{i}({', '.join(inputs)}) {{")
        for j, chain in enumerate(chains_for(case, types)):
            program.cell((case.name, types, chain), f"a{j}", in_regions(chain, f"a{j}", case.output))
        program.end(first)


def case_types(ampc, work):
    """The types of a list of (case, rows)."""
    program = Program()
    for case, rows in work:
        add_case(program, case, rows)
    try:
        return own_types(ampc, program)
    except TooLong:
        case, rows = work[0]
        half = len(rows) // 2
        parts = ([(case, rows[:half])], [(case, rows[half:])]) if len(work) == 1 else (work[:1], work[1:])
        return {cell: letter for part in parts for cell, letter in case_types(ampc, part).items()}


def batches(cases, most=80):
    """Cases that share a program. A case with modules or functions gets its own program, because names would collide."""
    now, n = [], 0
    for case in cases:
        rows = types_of(case)
        if case.modules or case.functions:
            yield [(case, rows)]
            continue
        if n and n + len(rows) > most:
            yield now
            now, n = [], 0
        now, n = now + [(case, rows)], n + len(rows)
    if now:
        yield now


def add_items(program, number, items, depth=1):
    for head, rest in items:
        if isinstance(rest, list):
            program.add("  " * depth + f"autocast({head}) {{")
            add_items(program, number, rest, depth + 1)
            program.add("  " * depth + "}")
        else:
            text = re.sub(r"\b[wck]\b", lambda m: f"net.{m[0]}", rest)
            program.cell((number, head), head, "  " * depth + f"{head} = {text}")


def graphs_program(graphs):
    """A program of several graphs, which share the weights of one net."""
    program = Program()
    weights = next(iter(graphs.values())).weights
    program.add("module Weights {")
    for name, sizes in weights.items():
        program.add(f"  {name} = Parameter({shape(sizes)})")
    program.add("}")
    program.add("model net = Weights()")
    for number, graph in graphs.items():
        first = len(program.lines)
        inputs = ", ".join(f"{name}: {t}[8, 8]" for name, t in graph.inputs.items())
        program.add(f"infer graph{number}({inputs}) {{")
        add_items(program, number, graph.body)
        program.end(first)
    return program


# ---- models -------------------------------------------------------------------------------------------

NODE = re.compile(r"^%(\d+) = (\w+) (\w+)\[(.*?)\](?: nhwc)?((?: %\d+)*)(.*?)\s+# \d", re.M)
Node = namedtuple("Node", "op type sizes inputs rest")  # of a dump; `rest` of a param starts with its name
VIEWS = ("cast", "reshape", "slice", "transpose", "permute", "expand")


def first_block(ampc, job, precision, stage):
    """The nodes of a model's first block after a pass: {id: Node}."""
    path = os.path.join(HERE, "..", "..", "models", job + ".amp")
    done = subprocess.run([ampc, f"--dump-after={stage}", "--set", f"precision={precision}", path], capture_output=True,
                          text=True, check=True)
    return nodes_of(done.stdout.split("\n# ")[0])


def nodes_of(text):
    return {int(m[1]): Node(m[2], m[3], sizes_of(m[4]), [int(i) for i in re.findall(r"%(\d+)", m[5])], m[6].strip())
            for m in NODE.finditer(text)}


def sizes_of(text):
    return [int(n) for n in text.split(",") if n.strip()]


def readers(nodes, start):
    """The nodes that read `start`, through casts and views."""
    seen = {start}
    for i, node in nodes.items():
        if seen.isdisjoint(node.inputs):
            continue
        if node.op in VIEWS:
            seen.add(i)
        else:
            yield node


def types_into(nodes, op):
    return "".join(sorted({LETTERS[nodes[n.inputs[0]].type] for n in nodes.values() if n.op == op}))


def net_types(ampc, job, precision):
    """{parameter: letters of the nodes that read it}, and the types of the loss and of the gradients that are added up."""
    nodes = first_block(ampc, job, precision, "precision")
    types = {node.rest.split()[0]: "".join(LETTERS[r.type] for r in readers(nodes, i) if not r.op.startswith("running_"))
             for i, node in nodes.items() if node.op == "param"}
    after = first_block(ampc, job, precision, "gradient")
    return {**types, "loss": types_into(nodes, "minimize"), "gradients": types_into(after, "grad_accumulate")}
