#!/usr/bin/env python3
"""Includes point one way: grammar -> compiler -> common -> runtime/plan, and runtime -> common -> runtime/plan. Only the
runner includes both sides. runtime/plan includes no other room.

The table below lists every room and the rooms whose headers it includes. A room may name only rooms above it in the
table, so includes form no cycle. The test reads each #include of one of ampc's headers. It refuses an include that the
table does not list, and an entry of the table that no include needs. Headers may not include each other in a cycle
either, even in one room. Then the test reads the build: no source file may be compiled into two libraries.
usage: tests/includes.py BUILD [--list]   --list prints which room includes which
"""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Every room may include the interface between compiler and runtime, common/, and the base of its own part.
OPEN = {"runtime/plan": "", "runtime/include": "", "common": "", "compiler/base": ("compiler", "grammar", "runner", "bench"),
        "runtime/base": ("runtime", "runner", "bench")}
# Each room, and the rooms whose headers it includes in addition to the open ones. Rooms of the same part are listed
# without the part's name: for `compiler/kernel`, "graph" is compiler/graph.
ROOMS = {
    "runtime/data/formats": "",
    "compiler/nvrtc": "",
    "compiler/diag": "",
    "compiler/formula": "",
    "compiler/graph": "diag formula",
    "compiler/syntax": "diag",
    "grammar": "compiler/syntax",
    "compiler/fmt": "syntax",
    "compiler/rules": "graph",
    "compiler/command": "graph rules",
    "compiler/passes": "command graph rules",
    "compiler/passes/decode": "graph passes rules",
    "compiler/passes/fuse": "command passes rules",
    "compiler/passes/memory": "command graph passes",
    "compiler/passes/plan": "command graph passes passes/memory",
    "compiler/kernel": "command diag graph nvrtc",
    "compiler/kernel/template": "command graph kernel",
    "compiler/program": "command diag graph kernel",
    "compiler/lower": "graph syntax",
    "compiler/lower/model": "graph lower",
    "compiler/lower/optimizer": "graph lower lower/model",
    "compiler/lower/block": "lower runtime/data/formats",
    "compiler/lower/own": "graph lower lower/model syntax",
    "compiler/lower/interpret": "diag graph lower lower/block lower/model lower/optimizer lower/own passes syntax",
    "compiler": "graph kernel passes syntax",
    "compiler/cost": "compiler command",
    "compiler/help": "diag lower/interpret",
    "compiler/facts": "diag",
    "compiler/explain": "compiler cost facts graph",
    "compiler/cli": "compiler cost diag explain graph help kernel program",
    "runtime": "",
    "runtime/data/tokenizer": "",
    "runtime/data/texts": "runtime/data/formats runtime/data/tokenizer",
    "runtime/data": "runtime/data/formats",
    "runtime/ranks": "runtime",
    "runtime/cpu": "runtime runtime/ranks",
    "runtime/cuda": "runtime runtime/ranks",
    "runtime/infer": "runtime",
    "runtime/state": "runtime runtime/data/formats",
    "runtime/train": "runtime runtime/ranks state",
    "runner": "compiler/cli compiler/diag runtime/ranks",
    "runner/pages": "compiler/cli compiler/help compiler/syntax runner",
    "runner/jit": "compiler/kernel compiler/nvrtc",
    "runner/cost": "compiler/cost",
    "runner/job": "compiler/cli compiler/cost runtime/train",
    "runner/infer": "compiler compiler/cli runner jit job runtime runtime/data/formats runtime/data/texts"
                    " runtime/data/tokenizer runtime/state",
    "runner/chat": "compiler/cli runner infer job",
    "runner/inspect": "compiler compiler/cli compiler/command compiler/cost compiler/facts compiler/kernel compiler/nvrtc"
                      " runner cost runtime runtime/cuda",
    "runner/probe": "compiler compiler/cli compiler/command compiler/diag compiler/graph runner jit job runtime"
                    " runtime/train",
    "runner/profile": "compiler/cli compiler/cost runner inspect jit job runtime",
    "runner/report": "compiler/cli compiler/cost compiler/kernel compiler/explain compiler/nvrtc compiler/passes/memory"
                     " runner inspect job runtime/data/formats",
    "runner/selftest": "compiler compiler/cli compiler/graph compiler/passes runner jit probe runtime",
    "runner/selftest/ops": "compiler/graph runner/selftest",
    "runner/tune": "compiler compiler/cli compiler/cost compiler/graph compiler/syntax runner jit job probe"
                   " runtime/train",
    "runner/tokens": "compiler/cli runner runtime/data/tokenizer",
    "runner/onnx": "",
    "runner/folder": "runtime/state runtime/data/tokenizer",
    "runner/export": "compiler compiler/cli compiler/graph compiler/syntax runner runner/infer folder job runner/onnx"
                     " runtime/state",
    "runner/import": "compiler compiler/cli compiler/diag compiler/lower/interpret compiler/syntax runner folder job runner/onnx runtime/state",
    "runner/weights": "compiler compiler/cli runner job runtime/state",
    "runner/fmt": "compiler/cli compiler/diag compiler/fmt compiler/syntax runner",
    "runner/train": "compiler compiler/cli compiler/graph runner jit job probe runtime",
    "runner/repl": "compiler compiler/cli compiler/command compiler/cost compiler/kernel compiler/explain compiler/graph compiler/help"
                   " compiler/lower/interpret runner infer jit job probe profile selftest runtime runtime/data runtime/state runtime/train",
    "runner/lsp": "compiler compiler/cli compiler/diag compiler/fmt compiler/graph compiler/help compiler/lower/interpret compiler/syntax"
                  " runner",
    "bench": "compiler runner/jit runtime/cpu",
}
INSTALLED = {"ampc_rt.h": "runtime/include"}
INSTALLED |= {f"ampc_{name}.h": "runtime/plan" for name in ("plan", "commands", "metrics", "declared", "values", "state")}
GENERATED = {"amp.tab.h": "compiler/syntax", "amp.lex.h": "compiler/syntax", "onnx.pb-c.h": "runner/onnx"}


def sources():
    for part in ("common", "grammar", "compiler", "runtime", "runner", "bench"):
        for folder, _, names in os.walk(os.path.join(ROOT, part)):
            for name in names:
                if name.endswith((".c", ".h", ".y", ".l", ".def")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def includes(path):
    """The folder and the path of each of ampc's headers that a file includes."""
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


def part_of(room):
    return room.split("/")[0]


def is_open(user, used):
    """May every room of the user's part include this one?"""
    return used in OPEN and user != "runtime/plan" and (not OPEN[used] or part_of(user) in OPEN[used])


def listed(user):
    """The rooms that the table lists for this one, by their full names."""
    part = part_of(user)
    return [name if name in ROOMS else f"{part}/{name}" for name in ROOMS.get(user, "").split()]


def check_table():
    known, bad = set(), []
    for room in ROOMS:
        bad += [f"the table: {room} names {used}, which is not above it"
                for used in listed(room) if used not in known]
        known.add(room)
    return bad


def circle(graph):
    """The first cycle of a graph (name -> names), as a list; empty if there is none."""
    done = set()

    def walk(name, path):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return []
        for used in sorted(graph.get(name, ())):
            found = walk(used, path + [name])
            if found:
                return found
        done.add(name)
        return []

    return next((c for c in (walk(name, []) for name in sorted(graph)) if c), [])


def check_includes():
    bad, edges, headers = check_table(), set(), {}
    for path in sorted(sources()):
        user = os.path.dirname(path)
        for used, name in includes(path):
            if not name.startswith(("common", "compiler", "runtime", "runner", "templates", "bench")) and "/" in name:
                bad.append(f"{path} includes {name}, which names no part")
            if path.endswith(".h"):
                headers.setdefault(path, set()).add(name)
            if used == user:
                continue
            edges.add((user, used))
            if not is_open(user, used) and used not in listed(user):
                bad.append(f"{path} may not include {name}")
    for user in ROOMS:
        bad += [f"the table: {user} lists {used}, but includes none of its headers"
                for used in listed(user) if (user, used) not in edges]
    found = circle(headers)
    if found:
        bad.append("headers include each other in a cycle: " + " -> ".join(found))
    return bad, edges


def check_libraries(build):
    """Each source file belongs to one library. A file that two libraries need belongs to a third."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    seen, bad = {}, []
    for command in commands:
        path = os.path.relpath(command["file"], ROOT)
        if not path.startswith(("common/", "compiler/", "runtime/", "runner/")):
            continue
        output = re.search(r"-o (\S+)", command["command"]).group(1)
        if "tests/" in output:  # the mock replaces NVIDIA's libraries
            continue
        if path in seen:
            bad.append(f"{path} is compiled twice: {seen[path]} and {output}")
        seen[path] = output
    if not seen:
        bad.append("compile_commands.json names no source file of ampc")
    return bad


def main():
    bad, edges = check_includes()
    if len(edges) < 20:
        bad.append(f"only {len(edges)} edges between rooms were found: the regular expressions no longer match")
    if "--list" in sys.argv:
        for user, used in sorted(edges):
            print(f"{user} -> {used}")
    bad += check_libraries(sys.argv[1])
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
