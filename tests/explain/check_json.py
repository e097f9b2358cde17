#!/usr/bin/env python3
"""Tests that `ampc --explain=json` prints what docs/explain.md describes: valid JSON with these keys, whose totals are the
sums of the nodes; no weight is cast in a step. Each job is explained for a GPU and for this machine's processor.

usage: tests/explain/check_json.py AMPC JOB.amp...
"""
import json
import math
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLOATS = {"f16", "bf16", "f32"}


def documented():
    """The keys of each table; headings such as `### nodes[]` begin a table."""
    keys, table = {}, None
    with open(os.path.join(ROOT, "docs", "explain.md"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("#"):
                found = re.search(r"`([a-z_]+)", line)
                table = found.group(1) if found else None
            elif table and line.startswith("| `"):
                keys.setdefault(table, set()).update(re.findall(r"`([a-z_]+)`", line.split("|")[1]))
    return keys


class Checker:
    def __init__(self, job):
        self.job, self.bad = job, []

    def check(self, good, what):
        if not good:
            self.bad.append(f"{self.job}: {what}")

    def keys(self, found, table, keys):
        self.check(set(found) == keys[table], f"keys of {table}: {sorted(set(found) ^ keys[table])}")

    def block(self, b, keys, extra):
        nodes = b["nodes"]
        self.keys(set(b) - extra, "block", keys)
        self.check(nodes, "no nodes")
        for n in nodes:
            self.keys(n, "nodes", keys)
            self.check(n["reason"] or n["dtype"] not in FLOATS, f"{n['id']} {n['op']} has no reason")
            self.check(n["flops"] >= 0 and n["predicted_us"] >= 0, f"{n['id']} has negative costs")
        ids = {n["id"]: n for n in nodes}
        for n in nodes:
            for c in n["casts_before"] + n["casts_after"]:
                self.check(c["id"] not in ids or ids[c["id"]]["cast_bytes"] == c["bytes"], f"a cast of {n['id']}")
        for key in ("cast_bytes", "read", "written"):
            self.check(sum(n[key] for n in nodes) == b[key], f"{key} is not the sum of the nodes")
        self.check(sum(n["weight_cast"] for n in nodes) == b["weight_casts"], "weight_casts")
        by = {}
        for n in nodes:
            by[n["flops_dtype"]] = by.get(n["flops_dtype"], 0) + n["flops"]
        self.check({k: v for k, v in by.items() if v} == b["flops_by_dtype"], "flops_by_dtype")
        p = b["predicted"]
        self.check(math.isclose(sum(n["predicted_us"] for n in nodes), p["us"], rel_tol=1e-6, abs_tol=1e-6), "us of nodes")
        self.check(math.isclose(sum(p["us_by_dtype"].values()), p["us"], rel_tol=1e-6, abs_tol=1e-6), "us_by_dtype")
        self.check(math.isclose(sum(p["parts"].values()), p["us"], rel_tol=1e-6, abs_tol=1e-6), "us of parts")
        self.check(b["weight_casts"] == 0, f"{b['weight_casts']} casts of weights")


def explain(ampc, job, *options):
    run = subprocess.run([ampc, "--explain=json", *options, job], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"FAILED: {job}: {run.stderr}")
    return json.loads(run.stdout)


def main():
    bad, keys = [], documented()
    for table in ("block", "nodes", "predicted"):
        if len(keys.get(table, ())) < 5:
            raise SystemExit(f"FAILED: docs/explain.md has no table of the keys of {table}")
    top = keys["job"]
    if len(sys.argv) < 3:
        raise SystemExit("no jobs")
    for job, *options in [(job, *options) for job in sys.argv[2:] for options in ([], ["--target=cpu"])]:
        found = explain(sys.argv[1], job, *options)
        c = Checker(" ".join([*options, job]))
        if "block" not in found:  # a file for others to import
            c.check(set(found) == top and not found["others"], "keys of a file without blocks")
            bad += c.bad
            continue
        c.block(found, keys, top)
        c.check(top <= set(found), f"no {sorted(top - set(found))}")
        c.check(isinstance(found["answer"], list) and found["memory_bytes"] > 0, "answer, memory_bytes")
        c.check(set(found["predicted"]) <= keys["predicted"], "keys of predicted")
        c.check(found["predicted"]["us"] > 0, "a step takes no time")
        if options:
            c.check(found["target"] == found["predicted"]["gpu"] == "cpu", "target and what is predicted for")
            c.check(not any(n["tensor_cores"] for n in found["nodes"]), "tensor cores of a processor")
        for other in found["others"]:
            c.block(other, keys, set())
        bad += c.bad
    for line in bad[:20]:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
