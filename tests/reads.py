#!/usr/bin/env python3
"""Checks that tests read nothing of the tree and the build but what kept.py says, with strace.

usage: reads.py BUILD CTEST_OPTION...
Prints files and folders that a test opens or executes and kept.py does not know, and functions of the compiler that
PARTS of kept.py calls and CALLED does not name. Exit status: 1 if there is one, 77 without strace.
Whether the tests pass does not matter. LeakSanitizer does not work under strace, so BUILD is not build-asan.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import kept

# Functions of the compiler that simt_check calls before it has the texts of a job, or to print them. Code that runs later
# must be one of PARTS.
CALLED = set("""ast_parse_input commands_make compile_create compile_destroy compile_graph compile_job compile_text
    diag_add_source diag_error_count emit_commands emit_kernels emit_own_mistakes emit_program emit_some_kernels grad_none
    gradient_of kernel_owner kernel_text_key op_has_tangent option_wrong options_const options_cuda_path options_read
    options_setting own_scratch tangents_find usage_error""".split())
OPENED = re.compile(r"open(?:at)?\(.* = \d+<([^>]+)>$|execve\(\"([^\"]+)\".* = 0$", re.M)


def environment_of(test):
    variables, changes = kept.environment_of(test)
    out = dict(os.environ, **dict(e.split("=", 1) for e in variables or []))
    for change in changes or []:
        out["PATH"] = re.sub(r"^PATH=path_list_prepend:", "", change) + ":" + out["PATH"]
    return out


def opened_by(test):
    with tempfile.NamedTemporaryFile("r", errors="replace") as log:
        strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-e", "trace=open,openat,execve", "-o", log.name]
        subprocess.run(strace + test["command"], env=environment_of(test), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {os.path.relpath(os.path.realpath(a or b)) for a, b in OPENED.findall(log.read())}


def names(option, files):
    text = subprocess.run(["nm", option, "--format=just-symbols", *files], stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r"^\w+$", text, re.M))


def called(build):
    """Functions of the compiler outside of PARTS that the other objects of PARTS call, except CALLED."""
    objects = {o for part in kept.parts(build) for o in [part, *glob.glob(f"{part}/**/*", recursive=True)] if o.endswith(".o")}
    compiler = set(glob.glob(f"{build}/CMakeFiles/ampc_*.dir/**/*.o", recursive=True))
    return names("-u", objects - compiler) & names("--defined-only", compiler - objects) - CALLED


def main(build, options):
    os.chdir(kept.HOME)
    tracked = set(subprocess.run(["git", "ls-files"], stdout=subprocess.PIPE, text=True).stdout.split("\n"))
    tracked |= {os.path.dirname(path) or "." for path in tracked}
    built = os.path.relpath(build)
    more, unknown = kept.inputs(build), len(called(build))
    print(*(f"PARTS of kept.py calls {name}" for name in called(build)), sep="\n", end="")
    for test in kept.tests_of(build, options):
        reads, _ = more.get(test["name"], ([], []))
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


if not shutil.which("strace"):
    sys.exit(77)
main(os.path.realpath(sys.argv[1]), sys.argv[2:])
