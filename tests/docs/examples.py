#!/usr/bin/env python3
"""examples.py BUILD: compiles each example of the reference (compiler/help/*.md) and of docs/language.md, and checks the comments.

    y = relu(x)      # f32[2, 3]      the type and shape of the name
    n = len(list)    # = 3            a compile-time value

Statements are put into a `forward`, and lines that make a layer or Parameter into the module around it. Declarations stay as they
are. The script adds what an example needs but does not contain: a net, data, an optimizer, a train block. The entry of a layer must
name the parameters that `--emit=params` lists. tests/unit/test_help.c tests that every built-in has an entry.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARATION = r"(import|const|def|module|data|model|optimizer|precision|train|eval|infer|op|dim|manual_seed)\b(?! *=)"
TYPE = r"(f16|bf16|f32|i32|i64|u8|bool)\[.*\]$"
MEMBER = r"\w+ = (Parameter|Buffer|Sequential|[A-Z]\w*[a-z]\w*|PReLU|GELU|ELU|CELU|SELU|GLU|GRU|RNN|LSTM|weight_norm|spectral_norm)\("
GIVEN = {
    "data": "data samples() { return synthetic(64, [8]), synthetic(64, [], dtype=i64, low=0, high=3) }",
    "model": "model net = Sequential(Linear(8, 16), ReLU(), Linear(16, 3))",
    "optimizer": "optimizer opt = SGD(net, lr=0.1)",
    "train": "train x, y in samples() with batch=16 { minimize cross_entropy(net(x), y) with opt }",
}


def entries():
    """(chapter, heading, text, example lines)"""
    for path in sorted((ROOT / "compiler/help").glob("*.md")):
        if path.name == "README.md":
            continue
        for part in re.split(r"^## ", path.read_text(), flags=re.M)[1:]:
            heading, _, body = part.partition("\n")
            lines = [line[4:] for line in body.split("\n") if line.startswith("    ")]
            text = "\n".join(line for line in body.split("\n") if not line.startswith("    "))
            yield path.name, heading, text, lines


def listings():
    """The same for the hand-written examples of docs/language.md; the first line is the heading."""
    text = (ROOT / "docs/language.md").read_text().partition("<!-- What follows")[0]
    for block in re.findall(r"^```amp\n(.*?)^```$", text, re.M | re.S):
        yield "docs/language.md", block.split("\n")[0], "", block.rstrip("\n").split("\n")


def checked(line, checks, number):
    """The statement, and a check of the comment behind it."""
    code, _, note = (part.strip() for part in line.partition(" #"))
    bound = (re.findall(r"(\w+) [-+*/]?= ", code) or [""])[-1]
    out = [code]
    if re.match(TYPE, note):
        name = f"is_{number}_{len(checks)}"
        checks.append(f"def {name}(value: {note}) {{ return value }}")
        out.append(f"{bound} = {name}({bound})")
    elif note.startswith("= "):
        out.append(f"assert {bound} == {note[2:]}")
    return out


def declarations(text):
    """A job of declarations."""
    given = dict(GIVEN)
    words = set(re.findall(r"^" + DECLARATION, text, re.M))
    module = re.search(r"^module (Net)\b", text, re.M)
    if "model" not in words and module:
        given["model"] = "model net = Net()"
    own = re.search(r"^data (\w+)\(([^)]*)\)", text, re.M)
    extra = []
    if own:
        returned = re.search(r"return (.*?)(?: *\}|\n|$)", text[own.start():])[1]
        count = len(re.sub(r"\[[^\]]*\]|\([^()]*(?:\([^()]*\)[^()]*)*\)", "", returned).split(","))
        names = ", ".join(f"v{i}" for i in range(count))
        arguments = '"x"' if own[2] else ""
        extra = [f"eval {names} in {own[1]}({arguments}) with batch=2 {{ metric m = v0.to(f32).mean() }}"]
    if (words <= {"data", "import"} and own) or {"model", "infer"} <= words:
        return text + "\n" + "\n".join(extra) + "\n"
    added = [line for kind, line in given.items() if kind == "data" or kind not in words]
    return "\n".join(added + [text] + extra) + "\n"


def statements(lines, number):
    """A model of the statements; one job may have many of these models."""
    checks, members, body, depth = [], [], [], 0
    for line in lines:
        if depth == 0 and re.match(MEMBER, line):
            members.append(line.partition(" #")[0].rstrip())
            continue
        body += checked(line, checks, number) if depth == 0 else [line]
        depth += line.partition(" #")[0].count("{") - line.partition(" #")[0].count("}")
    last = (re.findall(r"^\s*(?:autocast\(.*?\) \{ |if .*?\{ )?(\w+)(?:, \w+)* [-+*/]?= ", "\n".join(body), re.M) or ["0"])[-1]
    result = last if checks else "zeros(1)"
    return "\n".join([*checks, f"module Example{number} {{", *("  " + m for m in members), "  def forward() {",
                      *("    " + b for b in body), f"    return {result}", "  }", "}", f"model net{number} = Example{number}()",
                      f"infer example{number}() {{ return net{number}() }}"]) + "\n"


def compiled(ampc, job, text):
    """The errors of the job, and the names of its parameters."""
    job.write_text(text)
    done = subprocess.run([ampc, "--emit=params", job], capture_output=True, text=True)
    return done.stderr if done.returncode else "", re.findall(r"^([\w.]+) \[", done.stdout, re.M)


def main():
    ampc = pathlib.Path(sys.argv[1]).resolve() / "ampc"
    bad, alone, together = [], [], []
    for number, (chapter, heading, text, lines) in enumerate([*entries(), *listings()]):
        where = f"{chapter}: {heading}"
        if not lines and not heading.startswith(("import", "assert")):
            bad.append(f"{where}: no example")
        elif lines and re.match(DECLARATION, "\n".join(lines)):
            alone.append((where, declarations("\n".join(lines))))
        elif lines:
            together.append((where, statements(lines, number), f"net{number}.", text))
    with tempfile.TemporaryDirectory(prefix="ampc-examples-") as folder:
        job = pathlib.Path(folder) / "example.amp"
        wrong, names = compiled(ampc, job, "".join(text for _, text, *_ in together))
        for where, text in alone + [(where, text) for where, text, *_ in together if wrong]:
            why, _ = compiled(ampc, job, text)
            if why:
                bad.append(f"{where}: {why}\n{text}")
    if wrong and not bad:
        bad.append(f"each example is right, and all of them in one job are not: {wrong}")
    for where, _, net, text in together if not wrong else []:
        own = [n.removeprefix(net) for n in names if n.startswith(net)]
        bad += [f"{where}: does not name the parameter {n}" for _, n in (o.split(".", 1) for o in own if re.match(r"layer\.|attention\.", o))
                if text and not re.search(r"\b" + re.escape(n.split(".")[0]) + r"\b", text)]
    print(f"{len(alone) + len(together)} examples")
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
