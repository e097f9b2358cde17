#!/usr/bin/env python3
"""A static function has a name that no other file of its room has, so that a search finds one function. Names that
stand in several files of a room already are in static_names.txt. That list may only become shorter.
usage: tests/static_names.py [--rewrite]
"""
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KNOWN = os.path.join(ROOT, "tests", "static_names.txt")
FUNCTION = re.compile(r"^static [\w\s*]*?[\s*](\w+)\([^;{]*\)\n\{", re.M)


def shared_names():
    """Lines "room name", for each name that several files of a room have."""
    found = collections.defaultdict(set)
    for part in ("common", "compiler", "runtime", "runner"):
        for folder, _, names in os.walk(os.path.join(ROOT, part)):
            for file in names:
                if not file.endswith(".c"):
                    continue
                with open(os.path.join(folder, file), encoding="utf-8") as f:
                    for name in FUNCTION.findall(f.read()):
                        found[os.path.relpath(folder, ROOT), name].add(file)
    return {f"{room} {name}": sorted(where) for (room, name), where in found.items() if len(where) > 1}


def main():
    shared = shared_names()
    if "--rewrite" in sys.argv:
        with open(KNOWN, "w", encoding="utf-8") as f:
            f.writelines(f"{line}\n" for line in sorted(shared))
        return 0
    with open(KNOWN, encoding="utf-8") as f:
        known = set(f.read().splitlines())
    bad = [f"{line} is in {' and '.join(shared[line])}: rename one" for line in sorted(set(shared) - known)]
    bad += [f"{line} is in one file only: remove it from static_names.txt" for line in sorted(known - set(shared))]
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
