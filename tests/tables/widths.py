#!/usr/bin/env python3
"""Tests that no table for people is wider than 80 columns, for all jobs. A table is recognized by its titles.

usage: tests/tables/widths.py AMPC AMP JOB.amp...
"""
import os
import re
import subprocess
import sys

COLUMNS = 80
ampc, amp, *jobs = sys.argv[1:]
wide, tables = [], 0


def look(command, titles, said=""):
    global tables
    done = subprocess.run(command, input=said, capture_output=True, text=True, env=dict(os.environ, COLUMNS=str(COLUMNS)))
    what = " ".join([os.path.basename(command[0]), *command[1:]])
    if done.returncode:
        wide.append(f"{what}: status {done.returncode}: {done.stderr}")
    wide.extend(f"{what}: {line}" for line in done.stdout.splitlines() if len(line) > COLUMNS)
    tables += bool(titles and re.search(titles, done.stdout, re.M))
    return done.stdout


for job in jobs:
    look([ampc, "--explain", job], "^ *line +layer +")
    look([amp, "inspect", "--arch", "none", job], "^name +")
    look([amp, "inspect", "--arch", "none", "--by", "layer", job], "^layer +")
    look([amp, "inspect", "--arch", "none", "--diff", "f32", "f16", job], "^ +name +")
    look([amp, "repl", "--device", "cpu", job], "^place +value +", ":params\n:memory\n:set\n:casts\n:kernel\n:explain\n")
if tables < 4 * len(jobs):
    wide.append(f"{tables} tables of {len(jobs)} jobs")
look([ampc, "--list-ops"], None)
look([ampc, "--list-passes"], None)
look([ampc, "--help"], None)
look([amp, "repl"], None, ":help\n")
for verb in re.findall("^  ([a-z]+) ", look([amp, "--help"], None), re.M):
    look([amp, verb, "--help"], None)
print("\n".join(wide[:20]) or f"ok: {tables} tables")
sys.exit(bool(wide))
