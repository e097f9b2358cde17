"""The programs whose types are compared: the same text for PyTorch and for ampc. Needs neither of them.

A *cell* is one expression in one chain of regions, on inputs of given types. The expressions are the cases of
tests/torch/cases.def and of cases.def here. make_table.py evaluates them with PyTorch, check_types.py compiles them with ampc.
"""
import itertools
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "torch"))
from cases import FUNCTION, read_cases  # noqa: E402

LETTERS = {"f16": "h", "bf16": "b", "f32": "f", "i64": "l", "i32": "i", "u8": "u", "bool": "o"}
REFUSED, LOST = "x", "-"  # an error; a value computed from one that is an error

# Chains of regions, from the outermost to the innermost. `f32` is a pin; in PyTorch it is
# enabled=False and .float() of the inputs. `<` leaves the inner region again: the expression is
# first in the inner region and then behind it; the second one counts.
CHAINS = ("off", "f16", "bf16", "f32", "f16>off", "off>f16", "f16>bf16", "bf16>f16", "f16>f32", "bf16>off>f16",
          "f16<off", "f16<bf16", "bf16<f32")
FEW = CHAINS[:4]            # if an input is not a float
SOME = CHAINS[:5] + CHAINS[-2:-1]  # for ../torch/cases.def, whose cases call the same ops many times
FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i64", "bool")

# Cases that cannot be compared: functions that PyTorch lacks; layers that copy their layers or draw
# initial vectors, which fake tensors do not support (encoder_layer and decoder_layer are compared);
# packed sequences; an assignment by a mask.
OWN = ("dice_loss(", "jvp(", "grad(", "TransformerEncoder(", "TransformerDecoder(", "Transformer(", "spectral_norm(", "lengths=",
       "fill=0.5")


def all_cases():
    cases = {**read_cases(), **read_cases(os.path.join(HERE, "cases.def"))}
    return {name: row for name, row in cases.items() if not any(word in text for word in OWN for text in row[:2])}


class Case:
    """Members of a case: tensors by shape, modules by text, functions by arguments and text."""
    def __init__(self, name, row):
        self.name, (members, self.output, fill) = name, row
        self.single = name.startswith("t_")  # a single op of cases.def here
        self.output = " ".join(self.output.split())
        self.functions = re.findall(FUNCTION, members)
        members = re.sub(FUNCTION, "", members)
        statements = re.split(r"[;\n]\s*(?=\w+ = )", members)
        pairs = [re.fullmatch(r"\s*(\w+) = (.*?)\s*", " ".join(s.split())).groups() for s in statements]
        self.tensors = {key: [int(n) for n in re.findall(r"\d+", text)] for key, text in pairs
                        if text.startswith("Parameter(")}
        self.modules = {key: text for key, text in pairs if key not in self.tensors}
        targets = re.search(r"\bt=labels\((\d+)", fill)
        self.targets = int(targets[1]) if targets else None


def types_of(case):
    """The types of a case's inputs. The cases of this folder are single ops and get all pairs of types. The other cases call
    the same ops many times and get all pairs of float types. With more inputs, all have one type, or all but one."""
    n, single = len(case.tensors), case.single
    if n <= 1 or (n == 2 and single):
        return list(itertools.product(FLOATS + INTEGERS, repeat=n))
    rows = [(t,) * n for t in FLOATS + INTEGERS]
    if n == 2 or (n == 3 and single):
        rows += itertools.product(FLOATS, repeat=n)
    odd = FLOATS + INTEGERS if single else FLOATS if n > 2 else ()
    rows += [(base,) * i + (other,) + (base,) * (n - i - 1)
             for base in FLOATS[:2] for i in range(n) for other in odd]
    return list(dict.fromkeys(rows))


TABLE = os.path.join(HERE, "types.tsv")
DIFFERENCES = os.path.join(HERE, "differences.tsv")
LISTED = os.path.join(HERE, "listed.tsv")


def read_listed():
    """{op of autocast's lists: the cases that call it; empty if the language lacks the op}."""
    with open(LISTED, encoding="utf-8") as f:
        rows = (line.rstrip("\n").split("\t") for line in f if not line.startswith("#"))
        return {op: [] if cases == "-" else cases.split() for op, cases in rows}


def read_table():
    """{case or graph: its rows [name, input types, letters]}."""
    rows = {}
    if os.path.exists(TABLE):
        with open(TABLE, encoding="utf-8") as f:
            for line in f:
                if not line.startswith("#"):
                    row = line.rstrip("\n").split("\t")
                    rows.setdefault(row[0], []).append(row)
    return rows


def chains_for(case, types):
    return FEW if any(t in INTEGERS for t in types) else CHAINS if case.single else SOME


def regions(chain):
    """The regions around an expression, and whether the expression is repeated behind the innermost."""
    return re.split("[<>]", chain), "<" in chain


# ---- graphs of several ops, drawn with a fixed seed ----------------------------------------------------------

SIZE = 8  # every value is [8, 8]
UNARY = ("relu({0})", "gelu({0})", "sigmoid({0})", "tanh({0})", "exp({0})", "{0} ** 2", "sqrt({0})", "rsqrt({0})", "-{0}",
         "1 / {0}", "{0} * 0.5", "{0} + 1", "softplus({0})", "softmax({0}, -1)", "log_softmax({0}, 1)", "{0}.sum(1, keepdim=true) * {0}",
         "{0}.mean(1, keepdim=true) + {0}", "{0} / {0}.norm(dim=1, keepdim=true)", "{0}.cumsum(1)", "layer_norm({0}, [8])", "rms_norm({0}, [8])",
         "{0}.transpose(0, 1)", "{0}.reshape(64).view(8, 8)", "{0}.amax(1, keepdim=true) - {0}", "clamp({0}, 0, 1)", "abs({0})",
         "{0}.detach()", "{0}.to(f32)", "{0}.to(f16)", "{0}.to(bf16)", "{0} * {0}.sum()", "{0} * {0}.mean()",
         "{0}[:, :4].repeat(1, 2)", "{0}.flip(0)", "{0}.var(1, keepdim=true) + {0}", "erf({0})", "log1p({0})", "tril({0})",
         "interpolate({0}.view(1, 1, 8, 8), scale_factor=2)[0, 0, :8, :8]", "max_pool2d({0}.view(1, 1, 8, 8), 3, 1, 1)[0, 0]",
         "avg_pool2d({0}.view(1, 1, 8, 8), 3, 1, 1)[0, 0]", "linear({0}, w, c)", "conv2d({0}.view(1, 1, 8, 8), k, padding=1)[0, 0]", "{0} + c", "{0} * w")
BINARY = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} @ {1}", "matmul({0}, {1})", "maximum({0}, {1})", "atan2({0}, {1})",
          "where({0} > {1}, {0}, {1})", "where({0} > 0, {1}, 0.5)", "cat([{0}[:4], {1}[:4]])", "stack([{0}[0], {1}[0]]).repeat(4, 1)",
          "mse_loss({0}, {1}, reduction=\"none\")", "smooth_l1_loss({0}, {1}, reduction=\"none\")", "{0} * ({1} > 0)",
          "{0} + {1}.argmax(1, keepdim=true)", "einsum(\"ij,jk->ik\", {0}, {1})",
          "scaled_dot_product_attention({0}, {1}, {1})", "linear({0}, {1})", "{0} ** {1}", "{0} * {1}.to({0}.dtype)",
          "{0} + {1}[0]", "{0} * {1}.max()", "addcmul({0}, {1}, {0})", "kl_div({0}, {1}, reduction=\"none\")")
NESTED = ("f16", "bf16", "off", "f32")


class Graph:
    """Nested statements and regions: [("name", "expression") | ("region", [...])]."""
    def __init__(self, seed, values=24):
        draw = random.Random(seed).random  # the only function of random with the same numbers in all versions of Python
        self.pick = lambda items: items[int(draw() * len(items))]
        self.inputs = {"x": self.pick(FLOATS), "y": self.pick(FLOATS), "z": self.pick(FLOATS)}
        self.weights = {"w": [SIZE, SIZE], "c": [SIZE], "k": [1, 1, 3, 3]}  # f32, as in a net
        self.names, self.n, self.most = list(self.inputs), 0, values
        self.body = [(self.pick(("f16", "bf16")), self.block(0))]

    def block(self, depth):
        items = []
        while self.n < self.most:
            if depth and items and self.pick(range(5)) == 0:
                break
            if depth < 3 and self.pick(range(5)) == 0:
                items.append((self.pick(NESTED), self.block(depth + 1)))
            else:
                items.append(self.statement())
        return items

    def statement(self):
        recent = self.names[-6:]
        text = self.pick(UNARY if self.pick(range(2)) else BINARY).format(self.pick(recent), self.pick(recent))
        name = f"v{self.n}"
        self.n += 1
        self.names.append(name)
        return name, text

    def values_made(self):
        """The names in the order of the text, with those of inner blocks at their place."""
        def walk(items):
            for head, rest in items:
                yield from walk(rest) if isinstance(rest, list) else (head,)
        return list(walk(self.body))


GRAPHS = range(500)
