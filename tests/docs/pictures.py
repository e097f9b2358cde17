#!/usr/bin/env python3
"""pictures.py BUILD: tests that the pictures of README.md, which scripts/pictures makes, are complete and up to date:
the message is the compiler's present one, and the accuracy is the one in README.md."""

import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1]).resolve()
README = (ROOT / "README.md").read_text()
SVG = "{http://www.w3.org/2000/svg}"


def lines(name):
    """The text lines of a picture; pieces with the same y are one line."""
    rows = {}
    for text in xml.parse(ROOT / f"docs/pictures/{name}.svg").iter(SVG + "text"):
        row = rows.setdefault(int(text.get("y")), "")
        column = round((float(text.get("x")) - 14) / 8)
        rows[int(text.get("y"))] = row.ljust(column) + text.text.replace("\u00a0", " ")
    return [rows[y] for y in sorted(rows)]


def wrong_job():
    job = re.search(r"<!-- file: job.amp -->\n```\n(.*?)```", README, re.S).group(1)
    wrong = job.replace("Linear(hidden, 10)", "Linear(100, 10)")
    assert wrong != job, "the job of README.md has no Linear(hidden, 10)"
    return wrong


with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "wrong.amp").write_text(wrong_job())
    told = subprocess.run([BUILD / "ampc", "--check", "wrong.amp"], cwd=folder, text=True, capture_output=True).stderr
shown = lines("error")
assert shown[0] == "$ amp train wrong.amp", shown[0]
assert shown[1:] == [line.rstrip() for line in told.splitlines()], f"README shows\n{shown}\nampc says\n{told}"

accuracy = re.search(r"test accuracy (0\.\d\d), ", README).group(1)
ends = [line for line in lines("train") if line.startswith("eval acc: ")]
assert len(ends) == 1 and ends[0].startswith(f"eval acc: {accuracy}"), ends
assert lines("repl")[0] == "$ amp repl job.amp"
print("three pictures")
