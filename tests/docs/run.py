#!/usr/bin/env python3
"""run.py BUILD FILE.md...: runs the commands of each file, one block after the other, as a reader who
pastes them would: in a copy of the tree in which build/ has been made.

A command block is fenced and marked `sh`. A block under a line `<!-- not run by tests: why -->` is
left out, and told. A fenced block without a mark under a line `<!-- file: NAME -->` is written to
NAME first. README.md trains on the MNIST files in the working directory: small ones are put there."""

import gzip
import os
import re
import shutil
import struct
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
        found = re.match(r"<!-- (file|not run by tests): (.*) -->$", lines[at])
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


def put_mnist(folder):
    """As many of Fashion-MNIST's samples as make ten batches, under the names of MNIST's files."""
    source = Path("/usr/share/datasets/fashion-mnist")
    for split, n in (("train", 1280), ("t10k", 1000)):
        for kind, size, rank in (("images-idx3", 784, 3), ("labels-idx1", 1, 1)):
            data = gzip.open(source / f"{split}-{kind}-ubyte.gz").read()
            head = 4 + 4 * rank
            bytes_ = data[:4] + struct.pack(">I", n) + data[8:head] + data[head : head + n * size]
            with gzip.open(folder / f"{split}-{kind}-ubyte.gz", "wb") as f:
                f.write(bytes_)


def make_tree(build):
    folder = Path(tempfile.mkdtemp(prefix="ampc-docs-"))
    for name in ("models", "docs", "scripts", "README.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "build").symlink_to(Path(build).resolve())
    put_mnist(folder)
    return folder


def run_block(folder, name, line, commands):
    """True when each command succeeds; a pipe fails with any of its parts."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    if done.returncode == 0:
        print(f"ok: {name}:{line}: {len(commands.splitlines())} lines")
        return True
    print(f"FAILED: {name}:{line}: exit status {done.returncode}")
    print("    " + (commands + done.stdout[-2000:] + done.stderr[-2000:]).replace("\n", "\n    "))
    return False


def run_file(build, path):
    folder, good, blocks = make_tree(build), True, 0
    name = os.path.relpath(path, ROOT)
    try:
        for note, mark, content, line in parts(Path(path).read_text()):
            if note and note[0] == "file":
                (folder / note[1]).write_text(content)
            elif mark == "sh" and note:
                print(f"left out: {name}:{line}: {note[1]}")
            elif mark == "sh":
                blocks += 1
                good = run_block(folder, name, line, content) and good
            elif mark == "" and "build/amp" in content:
                print(f"FAILED: {name}:{line}: a block of commands is not marked sh")
                good = False
    finally:
        shutil.rmtree(folder)
    print(f"{name}: {blocks} blocks")
    return good


files = [os.path.abspath(f) for f in sys.argv[2:]]
sys.exit(not all([run_file(sys.argv[1], f) for f in files]))
