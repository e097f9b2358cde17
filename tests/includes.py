#!/usr/bin/env python3
"""Includes point one way: grammar -> compiler -> runtime/plan <- runtime, and only the runner sees both.

Reads every #include of a header of ours and refuses those that the table below does not allow. Then it
reads the build: no source file may be compiled into two libraries.
usage: tests/includes.py BUILD [--list]   --list prints which room includes which
"""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Each part, and the parts whose headers it may include beside its own.
PARTS = {
    "runtime/plan": [],
    "runtime": ["runtime/plan"],
    "grammar": ["compiler/syntax", "compiler/diag", "compiler/base", "compiler"],
    "compiler": ["runtime/plan"],
    "runner": ["compiler", "runtime", "runtime/plan"],
    "bench": ["compiler", "runtime", "runtime/plan", "runner"],
}
# Within the compiler: each room, and those that it may include. `base` may be included by all.
ROOMS = {
    "compiler/base": [],
    "compiler/diag": ["compiler"],
    "compiler/syntax": ["compiler", "compiler/diag"],
    "compiler/graph": ["compiler", "compiler/diag", "compiler/syntax"],
    "compiler/rules": ["compiler", "compiler/graph", "compiler/diag"],
    "compiler/lower": ["compiler", "compiler/graph", "compiler/rules", "compiler/syntax", "compiler/diag",
                       "compiler/passes"],
    "compiler/command": ["compiler", "compiler/graph", "compiler/rules"],
    "compiler/passes": ["compiler", "compiler/graph", "compiler/rules", "compiler/command"],
    "compiler/cost": ["compiler", "compiler/graph", "compiler/command"],
    "compiler/explain": ["compiler", "compiler/graph", "compiler/command", "compiler/cost", "compiler/diag"],
    "compiler/nvrtc": [],
    "compiler/help": ["compiler", "compiler/diag"],
    "compiler/emit": ["compiler", "compiler/graph", "compiler/command", "compiler/nvrtc"],
}
INSTALLED = {"ampc_rt.h": "runtime/include", "ampc_plan.h": "runtime/plan", "ampc_state.h": "runtime/plan"}
GENERATED = {"amp.tab.h": "compiler/syntax", "amp.lex.h": "compiler/syntax"}


def sources():
    for part in ("grammar", "compiler", "runtime", "runner", "bench"):
        for folder, _, names in os.walk(os.path.join(ROOT, part)):
            for name in names:
                if name.endswith((".c", ".h", ".y", ".l", ".def")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def includes(path):
    """The folder and the path of each header of ours that a file includes."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        for name in re.findall(r'^\s*#\s*include "([^"]+)"', f.read(), re.M):
            beside = os.path.join(os.path.dirname(path), name)
            if os.path.exists(os.path.join(ROOT, beside)):
                yield os.path.dirname(path), beside
            elif name in INSTALLED:
                yield INSTALLED[name], name
            elif name in GENERATED:
                yield GENERATED[name], name
            else:
                yield os.path.dirname(name), name


def part_of(folder):
    best = ""
    for part in PARTS:
        if (folder == part or folder.startswith(part + "/")) and len(part) > len(best):
            best = part
    return best


def allowed(user, used):
    if user == used:
        return True
    part, other = part_of(user), part_of(used)
    if part == other:
        if part != "compiler" or user == "compiler" or used == "compiler/base":
            return True
        return used in ROOMS[user]
    return other in PARTS[part] or used in PARTS[part]


def check_includes():
    bad, edges = [], set()
    for path in sorted(sources()):
        user = os.path.dirname(path)
        for used, name in includes(path):
            if not name.startswith(("compiler", "runtime", "runner", "templates", "bench")) and "/" in name:
                bad.append(f"{path} includes {name}, which names no part")
            if used != user:
                edges.add((user, used))
            if not allowed(user, used):
                bad.append(f"{path} may not include {name}")
    return bad, edges


def check_libraries(build):
    """One source file, one object: a file that two libraries need belongs to a third."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    seen, bad = {}, []
    for command in commands:
        path = os.path.relpath(command["file"], ROOT)
        if not path.startswith(("compiler/", "runtime/", "runner/")):
            continue
        output = re.search(r"-o (\S+)", command["command"]).group(1)
        if "tests/" in output:  # the mock of NVIDIA's libraries stands in for those
            continue
        if path in seen:
            bad.append(f"{path} is compiled twice: {seen[path]} and {output}")
        seen[path] = output
    if not seen:
        bad.append("compile_commands.json names no source of ours")
    return bad


def main():
    bad, edges = check_includes()
    if len(edges) < 20:
        bad.append(f"only {len(edges)} edges between rooms were seen: the reading is broken")
    if "--list" in sys.argv:
        for user, used in sorted(edges):
            print(f"{user} -> {used}")
    bad += check_libraries(sys.argv[1])
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
