#!/usr/bin/env python3
"""Writes the generated parts of docs/language.md, from_pytorch.md and parity.md, or checks that they are up to date.

    tests/docs/reference.py BUILD [PAGE..]              checks; in parity.md only the list of cases, not their errors
    tests/docs/reference.py BUILD --rewrite [PAGE..]    writes them (parity.md takes minutes)
    tests/docs/reference.py BUILD --add                 adds the missing cases to parity.md and keeps the other rows

language.md: the output of `BUILD/ampc --help-on all`, behind the hand-written text. parity.md: the cases of
tests/torch/cases.def with the largest errors that BUILD/tests/torch_layers and torch_halves measure. from_pytorch.md: the rows of
compiler/syntax/foreign.def, behind the hand-written text.
"""
import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERATED = "<!-- Made by tests/docs/reference.py BUILD --rewrite. -->\n"


def cell(text):
    return " ".join(text.replace("|", "\\|").split())


# ---- language.md ----

def entries(build):
    """(title and introduction, or none; name; signature and facts; text) of each entry of the reference."""
    done = subprocess.run([build / "ampc", "--help-on", "all"], check=True, capture_output=True, text=True)
    title = None
    for part in re.split(r"^(?=---- |==== )", done.stdout, flags=re.M)[1:]:
        if part.startswith("===="):
            head, _, about = part.partition("\n")
            title = (head.strip("= "), about.strip())
            continue
        signature, _, text = part[5:].partition("\n\n")
        yield title, re.match(r"\w+", signature)[0], signature, text.strip("\n")
        title = None


def reference_part(build):
    index, body, seen = [], [], {}
    for title, name, signature, text in entries(build):
        if title:
            index.append((title[0], []))
            body += ["", f"### {title[0]}", title[1]]
        again = seen.get(name.lower(), 0)
        seen[name.lower()] = again + 1
        index[-1][1].append(f"[{name}](#{name.lower()}{f'-{again}' if again else ''})")
        facts = re.search(r"\n\((.*)\)$", signature)
        words = signature[:facts.start()] if facts else signature
        body += ["", f"#### {name}", "```text", words, "```", *([f"*{facts[1]}*", ""] if facts else [])]
        blocks = re.split(r"^((?:    .*\n?)+)", text, flags=re.M)
        for i, block in enumerate(blocks):
            if i % 2:
                body += ["", "```amp", *(line[4:] for line in block.rstrip("\n").split("\n")), "```"]
            elif block.strip():
                body.append(block.strip("\n"))
    lines = ["", "| | |", "|---|---|", *(f"| {title} | {' '.join(names)} |" for title, names in index), *body]
    return "\n".join(lines) + "\n"


def language_page(build):
    """The hand-written text up to the mark, then the reference."""
    written = (ROOT / "docs/language.md").read_text()
    end = written.index("-->", written.index("<!-- What follows is made by")) + len("-->\n")
    return written[:end] + reference_part(build)


# ---- from_pytorch.md ----

def foreign_rows():
    """(kind of row, its texts) of each row of the table."""
    text = (ROOT / "compiler/syntax/foreign.def").read_text()
    for m in re.finditer(r'^(GROUP|SAME|NAME|LOSS|FORM)\(((?:[^"()]|"(?:[^"\\]|\\.)*")*)\)$', text, re.M):
        yield m[1], ast.literal_eval(f"({m[2]},)")


def arguments(text):
    """The arguments of a call that begins in front of the text: `a, [b, c]) + d` has `a` and `[b, c]`."""
    depth, start, out = 0, 0, []
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (letter == "," and not depth):
            out.append(text[start:i].strip())
            start = i + 1
        if depth < 0:
            return [value for value in out if value], text[:i]
    return [], ""


def quoted_cure(key, example, cure):
    """The cure of a row, with the texts of its example in it: see the head of the table."""
    before, _, behind = example.partition(key if key.startswith(".") else key + "(")
    values, whole = arguments(behind.lstrip("(") if key.startswith(".") else behind)
    quotes = {"args": whole, "base": before, "word": re.sub(r"\W.*", "", " ".join(example.split()[1:2])),
              "value": values[0] if values else "", "1": (values + [""])[0], "2": (values + ["", ""])[1]}
    return re.sub(r"\$(args|base|word|value|1|2)", lambda m: quotes[m[1]], cure).removeprefix("write ")


def from_pytorch_page(_build):
    """The hand-written text up to the mark, then a table for each group."""
    written = (ROOT / "docs/from_pytorch.md").read_text()
    out = [written[:written.index("-->", written.index("<!-- What follows is made by")) + len("-->")]]
    for kind, texts in foreign_rows():
        if kind == "GROUP":
            out += ["", f"## {texts[0]}", "| PyTorch | Here |", "|---|---|"]
            continue
        if kind == "LOSS":
            example, cure = f"nn.{texts[0]}()(z, y)", f"`{texts[1]}(z, y)`"
        else:
            example, cure = texts[-2], quoted_cure(texts[0] if kind == "NAME" else "\0", *texts[-2:])
        if out[-1] == f"| `{cell(example)}` | {cell(cure)} |":
            continue
        if out[-1].endswith(f" | {cell(cure)} |"):
            example = out.pop()[3:].partition("` |")[0] + "`, `" + cell(example)
        out.append(f"| `{cell(example)}` | {cell(cure)} |")
    return "\n".join(out) + "\n"


# ---- parity.md ----

PARITY_HEAD = """# Compared with PyTorch

Each row is a case: a program that PyTorch runs in f64 and ampc in f32 on the CPU, with the same numbers. A test
compares the value, a loss computed from the value, and the gradients of that loss by every input and parameter. An
error is the largest difference, relative to the largest number of the tensor. The test `torch.layers` accepts errors of
at most 4e-6 of the number itself plus 1e-6 of the largest number of its tensor.

The last two columns are for `precision f16` and `precision bf16`. The inputs are first rounded to that type. The
reference is PyTorch's f64 result for these inputs; for the errors of ampc it is also rounded to that type. The columns
list the errors of the value and of the gradients, in units of the type's eps (2^-10 for f16, 2^-7 for bf16) times the
largest number of the tensor. In brackets are the errors of PyTorch itself when it computes in that type on the CPU.

- `-`: the case has no gradients, or PyTorch cannot compute it in that type.
- `no floats`: the result contains no floats.
- `refused`: ampc refuses the case in that type.

The tests `torch.halves` accept errors of ampc of at most 2 of these units. For deep cases they accept the error that as
many roundings can cause. `amp selftest` also compares each op in each type with a reference in double.
"""


def cases():
    text = (ROOT / "tests/torch/cases.def").read_text()
    for m in re.finditer(r'^CASE\((\w+),((?:[^"()]|"(?:[^"\\]|\\.)*")*)\)$', text, re.M):
        members, output, *_ = ast.literal_eval(f"({m[2]},)")
        yield m[1], members, output


def found_errors(build, names):
    done = subprocess.run([build / "tests/torch_layers", ROOT / "tests/torch/ops.safetensors", "--errors", *names],
                          check=True, capture_output=True, text=True)
    return dict(re.findall(r"^ERRORS (\w+) (.*)$", done.stdout, re.M))


def found_halves(build, names):
    """{(case, type): "value gradient" of ampc, then of PyTorch in that type}."""
    found = {}
    for half in ("f16", "bf16"):
        done = subprocess.run([build / "tests/torch_halves", ROOT / "tests/torch/ops.safetensors",
                               ROOT / "tests/torch/halves.safetensors", half, "--errors", *names], check=True, capture_output=True,
                              text=True)
        found.update({(m[1], m[2]): m[3] for m in re.finditer(r"^HALVES (\w+) (\w+) (.*)$", done.stdout, re.M)})
    return found


def halves_cells(name, halves):
    """A cell such as "0.24, 0.76 (0.24, 0.82)": errors of the value and of the gradients, then PyTorch's own."""
    for half in ("f16", "bf16"):
        text = halves.get((name, half), "")
        words = text.split()
        yield f"{words[0]}, {words[1]} ({words[2]}, {words[3]})" if len(words) == 4 else text or "no floats"


def parity_page(errors, halves):
    lines = [GENERATED, *PARITY_HEAD.split("\n"),
             "| Case | Inputs | What | Value | Gradients | f16 | bf16 |", "|---|---|---|---|---|---|---|"]
    for name, members, output in cases():
        value, gradient = errors.get(name, "? ?").split()
        f16, bf16 = halves_cells(name, halves)
        lines.append(f"| {name} | `{cell(members)}` | `{cell(output)}` | {value} | {gradient} | {f16} | {bf16} |")
    return "\n".join(lines) + "\n"


def rows(page):
    """{name and text of a case: its row}."""
    return {without_errors(line): line for line in page.split("\n")}


def added_parity(build, have):
    """The page `have`, with the rows of the cases that it lacks."""
    old, keys = rows(have), without_errors(parity_page({}, {})).split("\n")
    names = [key.split("|")[1].strip() for key in keys if key not in old]
    new = rows(parity_page(found_errors(build, names), found_halves(build, names))) if names else {}
    return "\n".join(old[key] if key in old else new[key] for key in keys)


def without_errors(page):
    return re.sub(r"(\| [^|]* ){4}\|$", "", page, flags=re.M)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rewrite = "--rewrite" in sys.argv[2:]
    pages = [page for page in sys.argv[2:] if page[:2] != "--"] or ["language.md", "from_pytorch.md", "parity.md"]
    if "--add" in sys.argv[2:]:
        path = ROOT / "docs/parity.md"
        path.write_text(added_parity(build, path.read_text()))
        return
    stale = []
    for name in pages:
        path = ROOT / "docs" / name
        if name != "parity.md":
            page = {"language.md": language_page, "from_pytorch.md": from_pytorch_page}[name](build)
        else:
            page = parity_page(*((found_errors(build, []), found_halves(build, [])) if rewrite else ({}, {})))
        if rewrite:
            path.write_text(page)
            continue
        have = path.read_text() if path.exists() else ""
        same = without_errors(have) == without_errors(page) if name == "parity.md" else have == page
        if not same:
            stale.append(name)
    if stale:
        sys.exit(f"docs: {', '.join(stale)} not up to date: tests/docs/reference.py BUILD --rewrite {' '.join(stale)}")


if __name__ == "__main__":
    main()
