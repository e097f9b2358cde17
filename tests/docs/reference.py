#!/usr/bin/env python3
"""Writes docs/ops.md, docs/layers.md and docs/parity.md from what they tell of, or checks that they are up to date.

    tests/docs/reference.py BUILD              checks; of parity.md which cases there are, not their errors
    tests/docs/reference.py BUILD --rewrite    writes them

ops.md: the rows of compiler/graph/ops.def that the language can name, and the functions of compiler/layers with the
comment that stands above each; layers.md: the modules there with their parameters; parity.md: the cases of
tests/torch/cases.def with the worst errors that BUILD/tests/torch_layers and torch_halves find.
"""
import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ROOT / "compiler/layers"
CLASSES = {"low": "low", "f32": "f32", "promote": "promote", "none": "that of its inputs"}
TITLES = {"attention": "Attention", "convolutions": "Convolutions", "functional": "Elementwise, shapes, places, random numbers, "
          "reductions", "image": "Images: norms of channels, augmentation", "init": "Initialisers, parameters, buffers",
          "layers": "Layers", "losses": "Losses", "metrics": "Metrics", "optimizers": "Optimizers, schedules",
          "pools": "Pools, interpolation", "sources": "Sources of data"}
GENERATED = "<!-- Made by tests/docs/reference.py BUILD --rewrite. -->\n"


def cell(text):
    return " ".join(text.replace("|", "\\|").split())


def op_signature(name, text):
    """gelu(x) of "x; dim:axes=none": attributes as keywords, kinds left out."""
    inputs, _, attrs = text.partition(";")
    words = [w.strip() for w in inputs.split(",") if w.strip()]
    words = [f"{w[:-1]}=none" if w.endswith("?") else f"[{w[:-1]}, ..]" if w.endswith("*") else w for w in words]
    for attr in filter(str.strip, attrs.split(",")):
        key, _, kind = attr.strip().partition(":")
        default = kind.partition("=")[2]
        words.append(f"{key}={default}" if default else key)
    return f"{name}({', '.join(words)})"


def strings(text):
    return "".join(ast.literal_eval(s) for s in re.findall(r'"(?:[^"\\]|\\.)*"', text))


def ops():
    """(signature, class, whether it has a gradient, doc) of each row that the language can name."""
    text = (ROOT / "compiler/graph/ops.def").read_text()
    for m in re.finditer(r"AMPC_OP\(\s*(\w+),\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+),(.*?)\)(?:\s*/\*.*?\*/)?\n(?=AMPC_OP|/\*|#|\n)",
                         text, re.S):
        signature = strings(m[2])
        if signature.startswith("!"):
            continue
        rest = re.match(r"\s*(\w+),\s*(\w+),\s*(\w+),\s*(\w+),", m[3])
        yield op_signature(m[1], signature), rest[2], rest[3] != "none", strings(re.search(r'(?:"(?:[^"\\]|\\.)*"\s*)*$', m[3])[0])


def definitions(path, kind):
    """(name, arguments, comment above, body) of each public def or module of a library file."""
    text = path.read_text()
    pattern = rf"((?:^#[^\n]*\n)*)^{kind} ([A-Za-z]\w*)(?:\(((?:[^()]|\([^()]*\))*)\))? *\{{(?:([^\n]*)\}}\n|\n(.*?)^\}})"
    for m in re.finditer(pattern, text, re.M | re.S):
        comment = " ".join(line.lstrip("# ") for line in m[1].splitlines())
        if comment.startswith("---") or "seen in the layer library" in comment or "--- " in comment:
            comment = ""
        yield m[2], " ".join((m[3] or "").split()), comment, m[4] or m[5] or ""


def ops_page():
    lines = [GENERATED, "# Functions", "", "Names, order of arguments and defaults are PyTorch's. On a tensor `x` they are methods "
             "too: `x.relu()`.", "", "## Ops", "",
             "*Class* is what `autocast` does with the op: *low* casts its inputs to the 16-bit type of the region, *f32* to "
             "f32, *promote* to the widest of them.", "", "| Op | Class | Gradient | What it is |", "|---|---|---|---|"]
    lines += [f"| `{cell(s)}` | {CLASSES.get(c, 'its own')} | {'yes' if g else 'no'} | {cell(d)} |" for s, c, g, d in ops()]
    for path in sorted(LAYERS.glob("*.amp")):
        rows = [f"| `{cell(f'{n}({a})')}` | {cell(c)} |" for n, a, c, _ in definitions(path, "def")]
        if rows:
            lines += ["", f"## {TITLES.get(path.stem, path.stem)}", "",
                      f"Written in the language itself, in `compiler/layers/{path.name}`, of ops that have the classes above.", "",
                      "| Function | Note |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def layers_page():
    lines = [GENERATED, "# Layers", "", "Arguments, defaults, names of parameters and start values are PyTorch's; `Sequential(*layers)` "
             "calls one after the other. Parameters that an argument leaves out are absent from checkpoints, too."]
    for path in sorted(LAYERS.glob("*.amp")):
        rows = []
        for name, arguments, comment, body in definitions(path, "module"):
            found = re.findall(r"(\w+) = (Parameter|Buffer)\((\[[^\]]*\](?: \+ \w+)?|\w+)", body)
            found += [(n, "Parameter", "[out_channels]") for n in re.findall(r"(\w+) = _convolution_bias", body)]
            parameters = ", ".join(f"`{n} {s}`" + (" (buffer)" if k == "Buffer" else "") for n, k, s in found)
            inner = re.findall(r"^  (\w+) = ([A-Z]\w+)\(", body, re.M)
            inner = ", ".join(f"`{n}.*` of {m}" for n, m in inner if m not in ("Parameter", "Buffer", "Dropout"))
            rows.append(f"| `{cell(f'{name}({arguments})')}` | {cell(', '.join(filter(None, [parameters, inner])))} | {cell(comment)} |")
        if rows:
            lines += ["", f"## {TITLES.get(path.stem, path.stem)}", "", "| Layer | Parameters | Note |", "|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def cases():
    text = (ROOT / "tests/torch/cases.def").read_text()
    for m in re.finditer(r'^CASE\((\w+),((?:[^"()]|"(?:[^"\\]|\\.)*")*)\)$', text, re.M):
        members, output, *_ = ast.literal_eval(f"({m[2]},)")
        yield m[1], members, output


def found_errors(build):
    done = subprocess.run([build / "tests/torch_layers", ROOT / "tests/torch/ops.safetensors", "--errors"], check=True,
                          capture_output=True, text=True)
    return dict(re.findall(r"^ERRORS (\w+) (.*)$", done.stdout, re.M))


def found_halves(build):
    """By case and type: "value gradient" of ampc, and of PyTorch in that type."""
    found = {}
    for half in ("f16", "bf16"):
        done = subprocess.run([build / "tests/torch_halves", ROOT / "tests/torch/ops.safetensors",
                               ROOT / "tests/torch/halves.safetensors", half, "--errors"], check=True, capture_output=True, text=True)
        found.update({(m[1], m[2]): m[3] for m in re.finditer(r"^HALVES (\w+) (\w+) (.*)$", done.stdout, re.M)})
    return found


def halves_cells(name, halves):
    """0.24, 0.76 (0.24, 0.82): of the value and the gradients, and PyTorch's own."""
    for half in ("f16", "bf16"):
        text = halves.get((name, half), "")
        words = text.split()
        yield f"{words[0]}, {words[1]} ({words[2]}, {words[3]})" if len(words) == 4 else text or "no floats"


def parity_page(errors, halves):
    lines = [GENERATED, "# Compared with PyTorch", "",
             "Each line is a program that PyTorch runs in f64 and ampc in f32 on the CPU, on the same numbers; what both give is compared: "
             "the value, a loss made of it, and the gradient of every input and parameter. The error is the worst of them, relative "
             "to the greatest number of its tensor. The test `torch.layers` bounds it by 4e-6 of the number and 1e-6 of the "
             "greatest one.", "",
             "Under `precision f16` and `bf16` the inputs are rounded to the type first, and the truth is PyTorch's f64 of these (ours is compared with it rounded to the type). Errors "
             "of value and gradients are in units of the type's eps (2^-10, 2^-7) times the greatest number of the tensor, in brackets "
             "those of PyTorch itself where it computes in that type on the CPU; `-`: there are no gradients, or it cannot. The tests "
             "`torch.halves` bound ours by 2, or half more than PyTorch's own. `amp selftest` compares each op in each type with a "
             "reference in double, too.", "",
             "| Case | Inputs | What | Value | Gradients | f16 | bf16 |", "|---|---|---|---|---|---|---|"]
    for name, members, output in cases():
        value, gradient = errors.get(name, "? ?").split()
        f16, bf16 = halves_cells(name, halves)
        lines.append(f"| {name} | `{cell(members)}` | `{cell(output)}` | {value} | {gradient} | {f16} | {bf16} |")
    return "\n".join(lines) + "\n"


def without_errors(page):
    return re.sub(r"(\| [^|]* ){4}\|$", "", page, flags=re.M)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rewrite = "--rewrite" in sys.argv[2:]
    stale = []
    for name, page in (("ops.md", ops_page()), ("layers.md", layers_page()), ("parity.md", parity_page(*((found_errors(build), found_halves(build)) if rewrite else ({}, {}))))):
        path = ROOT / "docs" / name
        if rewrite:
            path.write_text(page)
            continue
        have = path.read_text() if path.exists() else ""
        same = without_errors(have) == without_errors(page) if name == "parity.md" else have == page
        if not same:
            stale.append(name)
    if stale:
        sys.exit(f"docs: {', '.join(stale)} not up to date: tests/docs/reference.py BUILD --rewrite")


main()
