#!/usr/bin/env python3
"""Mistakes of people who know PyTorch: the message names the right line, and its cure compiles.

    tests/names/run.py AMPC [CASE..]

cases.txt has the mistakes. A case begins with `== NAME SLOT [LINE]: HELP`. Its lines replace the line `#SLOT` of
frame.amp; with `job` they are the whole program. The first error must be at the LINE-th of these lines (the first one
by default), and a help must contain HELP. Then the cure is followed. Without more lines, this script follows it as it
stands: "write `X`" and "did you mean `X`" replace the text that the message underlines, "leave it out" removes its
lines. This is repeated if the result has another mistake, at most three times. Lines behind `--` are a right program
instead, for the slot that `--` names if it is another one. It must contain the text that the help wants written, whose
parts are divided by dots, and lack the text that the help wants left out.

Each row of compiler/syntax/foreign.def whose cure no case shows is tried with its own example. The help must be the
text of docs/from_pytorch.md, and is followed in the same way. "write `X` in the optimizer" puts X into the frame of
PLACES; sources of data may then lack their files. The test fails for a row whose cure cannot be followed so: it needs
a case.

No row hides what compiles: no name of the table is a built-in, and each use of an attribute has an error.
"""
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "docs"))
from reference import foreign_rows, quoted_cure  # noqa: E402

FRAME = (HERE / "frame.amp").read_text()
SLOTS = re.findall(r"^ *#(\w+)$", FRAME, re.M)
RUN = "x, y in d() with batch=8"
NAMES = "y, mask, loader = x, x > 0, x"  # that examples use
TRAIN = "minimize net(ones(1, 8)).mean() with opt"
EXAMPLES = [("step", [NAMES, "q = %s"]), ("step", ["q = %s"]), ("step", [NAMES, "%s"]), ("top", ["%s"]),
            ("member", ["%s"])]
SOURCE = f"data e() {{ return %s }}\ntrain x in e() with batch=8 {{ {TRAIN} }}"
PLACES = {  # words behind "write `X`" in a cure: the slot for X, and the lines around it
    "in the optimizer": ("top", "optimizer b = SGD(net, %s)"),
    "as a clause of the model": ("top", "model b = Net() { %s }"),
    "in the settings of the train block": ("top", f"train {RUN}, %s {{ {TRAIN} }}"),
    "in an `eval` block": ("end", f"eval {RUN} {{ %s }}"),
    "in the train block": ("end", f"train x in synthetic(64, [3, 40, 40]) with batch=8 {{ q = %s; {TRAIN} }}"),
    "in the body of the module": ("member", "%s"),
    "in a `data` block": ("end", SOURCE),
    "in the sources of the train block": ("end", SOURCE % 'npy("x.npy", shape=[8], samples=100, %s)'),
    "in `csv`": ("end", SOURCE % 'csv("iris.csv", "kind", %s)'),
}
MISSING = re.compile(r"\S+ cannot be opened, so its [a-z ]+ (is|are) unknown: No such file")


def program(slot, lines):
    """(text, number of the first of the lines)"""
    if slot == "job":
        return "\n".join(lines) + "\n", 1
    out, first = [], 0
    for line in FRAME.split("\n"):
        if line.strip() == "#" + slot:
            first = len(out) + 1
            out += lines
        elif line.strip().lstrip("#") not in SLOTS or "#" not in line:
            out.append(line)
    return "\n".join(out), first


def errors(ampc, text):
    with tempfile.NamedTemporaryFile("w", suffix=".amp") as job:
        job.write(text)
        job.flush()
        done = subprocess.run([ampc, "--check", "--error-format=json", job.name], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):  # 3: a file is missing
        sys.exit(f"{ampc}: exit status {done.returncode}\n{done.stderr}\n{text}")
    return [m for m in map(json.loads, done.stderr.splitlines()) if m["severity"] == "error"]


def helps(error):
    return [n["message"] for n in error["notes"] if n["severity"] == "help"]


def followed(text, error):
    """The program with the cure of the error, or None if the help says nothing that can be followed as it stands."""
    lines = text.split("\n")
    start, end = error["line"] - 1, error["end_line"] - 1
    for cure in helps(error):
        if cure.startswith("leave it out"):
            return "\n".join(lines[:start] + lines[end + 1:])
        wanted = re.match(r"(?:write|did you mean) `([^`]*)`", cure)
        if wanted and ".." not in wanted[1]:
            before, behind = lines[start][:error["column"] - 1], lines[end][error["end_column"] - 1:]
            return "\n".join(lines[:start] + [before + wanted[1] + behind] + lines[end + 1:])
    return None


def contains(right, cure):
    """True if the right program has what the help wants written, and lacks what it wants left out."""
    out = re.search(r"leave out `([^`]*)`", cure)
    if out:
        return not all(part in right for part in out[1].split(".."))
    wanted = re.search(r"`([^`]*)`", re.sub(r"^.*\bwrite ", "", cure))
    at, plain = 0, re.sub(r"\s+", " ", right)
    for part in re.split(r"\.\.+", wanted[1]) if wanted else []:
        at = plain.find(part.strip(), at)
        if at < 0:
            return False
    return bool(wanted)


def check(ampc, case):
    """(message, cure, what is wrong or none)"""
    text, first = program(case["slot"], case["wrong"])
    found = errors(ampc, text)
    if not found:
        return "", "", "no error"
    message, cure = found[0]["message"], "; ".join(helps(found[0]))
    if found[0]["line"] != first + case["line"] - 1:
        return message, cure, f"line {found[0]['line']}, not {first + case['line'] - 1}"
    if case["help"] not in cure:
        return message, cure, f"no help with: {case['help']}"
    if case["right"]:
        text = program(case["right_slot"], case["right"])[0]
        if not any(contains("\n".join(case["right"]), c) for c in helps(found[0])):
            return message, cure, "the right program does not follow the help"
        found = errors(ampc, text)
    if found and not case["right"]:
        found = left(ampc, text, found)
    return message, cure, f"followed, it has: {found[0]['message']}" if found else None


def left(ampc, text, found):
    """The errors that stay when the cures are followed as they stand, at most three times."""
    for _ in range(3):
        text = followed(text, found[0]) if found else None
        if text is None:
            break
        found = errors(ampc, text)
    return found


def read_cases():
    for block in re.split(r"^== ", (HERE / "cases.txt").read_text(), flags=re.M)[1:]:
        head, _, body = block.rstrip("\n").partition("\n")
        name, slot, line, wanted = re.match(r"(\w+) (\w+)(?: (\d+))?: (.*)", head).groups()
        wrong, other, right = (re.split(r"\n--(?: (\w+))?\n", body) + [None, ""])[:3]
        yield {"name": name, "slot": slot, "line": int(line or 1), "help": wanted, "wrong": wrong.split("\n"),
               "right": right.split("\n") if right else [], "right_slot": other or slot}


def rows():
    """(key, example, cure) of each row that gives messages; a key of None: a statement."""
    for kind, texts in foreign_rows():
        if kind == "LOSS":
            key, function = texts
            yield key, f"nn.{key}()(x, y)", f"write `{function}`: a loss is a function, as in `{function}(net(x), y)`"
        elif kind in ("NAME", "FORM"):
            yield texts[0] if kind == "NAME" else None, texts[-2], texts[-1]


def shows(case, row):
    """True if the case has the name of the row, or its first word, and a message of it has the cure."""
    key, example, cure = row
    word = re.escape((key or example.split()[0].split(".")[0]).strip(".="))
    pattern = re.sub(r"\\\$(args|base|word|value|1|2)", ".*", re.escape(cure))
    return re.search(rf"(?<!\w){word}(?!\w)", "\n".join(case["wrong"])) and re.fullmatch(pattern, case["cure"])


def tried(ampc, row):
    """What is wrong with the example of a row and its cure, or none."""
    key, example, cure = row
    wanted = quoted_cure(key or "\0", example, cure)
    place = next((PLACES[words] for words in PLACES if f"` {words}" in cure), None)
    problem = None
    for slot, lines in EXAMPLES:
        text = program(slot, [*lines[:-1], lines[-1] % example])[0]
        found = errors(ampc, text)
        for _ in range(3):
            if not found or wanted in (c.removeprefix("write ") for c in helps(found[0])):
                break
            text = followed(text, found[0])
            found = errors(ampc, text) if text else []
        if not found:
            continue
        if place:
            found = errors(ampc, program(place[0], [place[1] % wanted.split("`")[1]])[0])
            found = [e for e in found if not MISSING.match(e["message"])]
        else:
            found = left(ampc, text, found)
        if not found:
            return None
        problem = problem or f"followed, it has: {found[0]['message']}"
    return problem or "no help with this text"


def hidden_names(ampc):
    """Names of the table that compile."""
    keys = [key for key, _, _ in rows() if key]
    known = subprocess.run([ampc, "--help-on", "all"], check=True, capture_output=True, text=True).stdout
    yield from set(keys) & set(re.findall(r"^---- (\w+)", known, re.M)) - {"optimizer"}  # a word of declarations
    calls = [f"{base}%s{call}" for base in ("x", "y", "net") for call in ("", "()", "(1)", "(x)", "(0, 1)")]
    for key in keys:
        uses = ["q = " + call % key for call in calls if key[0] == "."]
        text, first = program("step", uses)
        bad = {e["line"] for e in errors(ampc, text)} if uses else {}
        yield from (use for i, use in enumerate(uses) if first + i not in bad)


def main():
    ampc = str(pathlib.Path(sys.argv[1]).resolve())
    cases = [c for c in read_cases() if not sys.argv[2:] or c["name"] in sys.argv[2:]]
    failed = 0
    print("| Mistake | Message | Cure | |\n|---|---|---|---|")
    workers = concurrent.futures.ThreadPoolExecutor()
    for case, (message, cure, problem) in zip(cases, workers.map(lambda c: check(ampc, c), cases)):
        failed += problem is not None
        case["cure"] = cure
        wrong = case["wrong"][case["line"] - 1].strip()
        print(f"| {wrong} | {message} | {cure} | {problem or 'ok'} |")
    print(f"{len(cases) - failed} of {len(cases)}")
    if sys.argv[2:]:
        sys.exit(bool(failed))
    own = [row for row in rows() if not any(shows(case, row) for case in cases)]
    for (_, example, cure), problem in zip(own, workers.map(lambda row: tried(ampc, row), own)):
        failed += problem is not None
        print(f"{example}: {problem}; it needs a case with: {cure}" if problem else f"{example}: ok")
    for use in hidden_names(ampc):
        failed += 1
        print(f"FAILED: this compiles, and a row of foreign.def hides it or is dead: {use}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
