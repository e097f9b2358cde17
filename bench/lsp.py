#!/usr/bin/env python3
"""bench/lsp.py [AMP [JOB]]: measures how long `amp lsp` takes from an edit to its diagnostics, and to the first answer
about types. The job is models/gpt2/gpt2.amp. Prints the median and the maximum of 100 edits."""
import os
import statistics
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests/lsp"))
from client import Client  # noqa: E402

EDITS = 100


def show(what, times):
    print(f"{what}: median {statistics.median(times) * 1000:.1f} ms, maximum {max(times) * 1000:.1f} ms ({len(times)} edits)")


def main():
    amp = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/amp")
    job = os.path.realpath(sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "models/gpt2/gpt2.amp"))
    with open(job, encoding="utf-8") as f:
        text = f.read()
    client = Client(amp)
    client.open(job, text)
    client.diagnostics(job)
    found, hints = [], []
    for i in range(EDITS):
        begin = time.monotonic()
        client.change(job, text + f"# edit {i}\n", i + 2)
        client.diagnostics(job)
        found.append(time.monotonic() - begin)
        client.hints(job)
        hints.append(time.monotonic() - begin)
    client.close()
    show("from an edit to its diagnostics", found)
    show("from an edit to the types of all assignments", hints)


main()
