#!/usr/bin/env python3
"""Mistakes of people who know PyTorch: the message names the right line, and its cure compiles.

    tests/names/run.py AMPC [CASE..]

cases.txt has the mistakes. A case begins with `== NAME SLOT [LINE]: HELP`. Its lines replace the line `#SLOT` of
frame.amp; with `job` they are the whole program. The first error must be at the LINE-th of these lines (the first one
by default), and a help must contain HELP. Then the cure is followed. Without more lines, this script follows it as it
stands: "write `X`" replaces the text that the message underlines, "leave it out" removes its lines. This is repeated
if the result has another mistake, at most three times. Lines behind `--` are a right program instead, for the slot
that `--` names if it is another one. It must contain the text that the help wants written, whose parts are divided by
dots, and lack the text that the help wants left out.

Another check: no name of the table is a built-in, which the row would hide.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FRAME = (HERE / "frame.amp").read_text()
SLOTS = re.findall(r"^ *#(\w+)$", FRAME, re.M)


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
    if done.returncode not in (0, 1):
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
        wanted = re.match(r"write `([^`]*)`", cure)
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
    for _ in range(3):
        if not found:
            return message, cure, None
        text = None if case["right"] else followed(text, found[0])
        if text is None:
            break
        found = errors(ampc, text)
    return message, cure, f"followed, it has: {found[0]['message']}"


def read_cases():
    for block in re.split(r"^== ", (HERE / "cases.txt").read_text(), flags=re.M)[1:]:
        head, _, body = block.rstrip("\n").partition("\n")
        name, slot, line, wanted = re.match(r"(\w+) (\w+)(?: (\d+))?: (.*)", head).groups()
        wrong, other, right = (re.split(r"\n--(?: (\w+))?\n", body) + [None, ""])[:3]
        yield {"name": name, "slot": slot, "line": int(line or 1), "help": wanted, "wrong": wrong.split("\n"),
               "right": right.split("\n") if right else [], "right_slot": other or slot}


def hidden_names(ampc):
    """Names of the table that are built-ins."""
    text = (HERE.parents[1] / "compiler/syntax/foreign.def").read_text()
    for key in re.findall(r'^(?:NAME|LOSS)\("(\w+)"', text, re.M):
        if subprocess.run([ampc, "--help-on", key], capture_output=True).returncode == 0:
            yield key


def main():
    ampc = str(pathlib.Path(sys.argv[1]).resolve())
    cases = [c for c in read_cases() if not sys.argv[2:] or c["name"] in sys.argv[2:]]
    failed = 0
    print("| Mistake | Message | Cure | |\n|---|---|---|---|")
    for case in cases:
        message, cure, problem = check(ampc, case)
        failed += problem is not None
        wrong = case["wrong"][case["line"] - 1].strip()
        print(f"| {wrong} | {message} | {cure} | {problem or 'ok'} |")
    hidden = [name for name in hidden_names(ampc) if name != "optimizer"]  # a word of declarations
    if hidden:
        print(f"FAILED: built-ins that foreign.def hides: {' '.join(hidden)}")
    print(f"{len(cases) - failed} of {len(cases)}")
    sys.exit(bool(failed or hidden))


main()
