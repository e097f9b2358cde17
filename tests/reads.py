#!/usr/bin/env python3
"""Checks that tests read nothing of the tree and the build but what kept.py says, with strace.

usage: reads.py BUILD CTEST_OPTION...
Prints files and folders that a test opens or executes and kept.py does not know. Exit status: 1 if there is one.
Whether the tests pass does not matter. LeakSanitizer does not work under strace, so BUILD is not build-asan.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

import kept

OPENED = re.compile(r"open(?:at)?\(.* = \d+<([^>]+)>$|execve\(\"([^\"]+)\".* = 0$", re.M)


def environment_of(test):
    properties = {p["name"]: p["value"] for p in test["properties"]}
    out = dict(os.environ, **dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", [])))
    for change in properties.get("ENVIRONMENT_MODIFICATION", []):
        out["PATH"] = re.sub(r"^PATH=path_list_prepend:", "", change) + ":" + out["PATH"]
    return out


def opened_by(test):
    with tempfile.NamedTemporaryFile("r", errors="replace") as log:
        strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-e", "trace=open,openat,execve", "-o", log.name]
        subprocess.run(strace + test["command"], env=environment_of(test), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {os.path.relpath(os.path.realpath(a or b)) for a, b in OPENED.findall(log.read())}


def main(build, options):
    os.chdir(kept.HOME)
    tracked = set(subprocess.run(["git", "ls-files"], stdout=subprocess.PIPE, text=True).stdout.split("\n"))
    tracked |= {os.path.dirname(path) or "." for path in tracked}
    built = os.path.relpath(build)
    more, unknown = kept.inputs(build), 0
    for test in kept.tests_of(build, options):
        reads = more.get(test["name"], [])
        if "always" in reads or "." in reads:
            continue
        known = kept.read_by(build, test["command"], reads)
        linked = glob.glob(f"{build}/include/*") if f"{build}/include" in known else []
        known = tuple(os.path.relpath(os.path.realpath(path)) for path in [*known, *linked])
        opened = [p for p in opened_by(test) if p in tracked or p.startswith(built + "/") and os.path.isfile(p)]
        news = sorted(p for p in opened if p not in known and not p.startswith(tuple(k + "/" for k in known)))
        if news:
            print(f"{test['name']} also reads {' '.join(news[:9])}{' ..' if news[9:] else ''}", flush=True)
            unknown += 1
    sys.exit(unknown > 0)


main(os.path.realpath(sys.argv[1]), sys.argv[2:])
