#!/usr/bin/env python3
"""run.py BUILD FILE.md...: runs the commands of each file, one block after the other, as if a reader pasted them, in a
copy of the tree with a finished build/.

A command block is fenced and marked `sh`. A block under a line `<!-- not run by tests: why -->` is skipped, and the
script prints that. A fenced block without a mark under a line `<!-- file: NAME -->` is written to NAME first. Under a
line `<!-- prints: TEXT -->`, the output of the commands must match the regular expression TEXT. Under a line
`<!-- shows: COMMAND -->`, a block is an excerpt of the output of COMMAND: each of its lines, up to a final `..`, must be
part of an output line, in order, with any blanks; `..` and `...` stand for lines left out. These commands train on the
data of Debian's dataset-fashion-mnist."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 1200


def parts(text):
    """(kind, argument, content, line): kind is the note before a block or the block's own mark."""
    note, lines = None, text.split("\n")
    at = 0
    while at < len(lines):
        found = re.match(r"<!-- (file|prints|shows|not run by tests): (.*) -->$", lines[at])
        fence = re.match(r"```(\w*)$", lines[at])
        if found:
            note = found.groups()
        elif fence:
            end = at + 1
            while lines[end] != "```":
                end += 1
            yield note, fence.group(1), "\n".join(lines[at + 1 : end]) + "\n", at + 1
            note, at = None, end
        elif lines[at].strip():
            note = None
        at += 1


def make_tree(build):
    folder = Path(tempfile.mkdtemp(prefix="ampc-docs-"))
    for name in ("models", "examples", "docs", "scripts", "tests/folder", "tests/onnx", "README.md", "ARCHITECTURE.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "build").symlink_to(Path(build).resolve())
    return folder


def run(folder, commands):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)


def check_shown(folder, name, line, command, shown):
    done = run(folder, command)
    printed = iter((done.stdout + done.stderr).split("\n"))
    for text in shown.splitlines():
        text = " ".join(text.removesuffix("..").split())
        if text not in ("", ".") and not any(text in " ".join(p.split()) for p in printed):
            print(f"FAILED: {name}:{line}: {command} does not print, or not in this order:\n    {text}")
            return False
    print(f"ok: {name}:{line}: shown by {command}")
    return True


def run_block(folder, name, line, commands, wanted):
    """True when each command succeeds and `wanted` is printed; a pipe fails with any of its parts."""
    done = run(folder, commands)
    printed = re.search(wanted, done.stdout)
    if done.returncode == 0 and printed:
        print(f"ok: {name}:{line}: {len(commands.splitlines())} lines")
        return True
    why = "" if printed else f", does not print {wanted}"
    print(f"FAILED: {name}:{line}: exit status {done.returncode}{why}")
    print("    " + (commands + done.stdout[-2000:] + done.stderr[-2000:]).replace("\n", "\n    "))
    return False


def run_file(build, path):
    folder, good, blocks = make_tree(build), True, 0
    name = os.path.relpath(path, ROOT)
    try:
        for note, mark, content, line in parts(Path(path).read_text()):
            if note and note[0] == "file":
                (folder / note[1]).write_text(content)
            elif note and note[0] == "shows":
                blocks += 1
                good = check_shown(folder, name, line, note[1], content) and good
            elif mark == "sh" and note and note[0] != "prints":
                print(f"skipped: {name}:{line}: {note[1]}")
            elif mark == "sh":
                blocks += 1
                good = run_block(folder, name, line, content, note[1] if note else "") and good
            elif mark == "" and "build/amp" in content:
                print(f"FAILED: {name}:{line}: a block of commands is not marked sh")
                good = False
    finally:
        shutil.rmtree(folder)
    print(f"{name}: {blocks} blocks")
    return good


files = [os.path.abspath(f) for f in sys.argv[2:]]
sys.exit(not all([run_file(sys.argv[1], f) for f in files]))
