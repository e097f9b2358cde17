#!/usr/bin/env python3
"""Runs tests of a build with ctest, except those that have passed before with the same inputs.

usage: kept.py [--into DIR] [--share LABEL] [--table] BUILD CTEST_OPTION...
  --share LABEL  with AMPC_SHARE=K/N, only each Nth of the tests with this label runs, and those whose own files have changed
  --into DIR   the folder of results.tsv (key, test, result, seconds, end) and log (output of tests): .cache/tests
  --table      prints a line for each test at the end, not only for those that did not pass

A result is kept under a key: a hash of what the test reads. These are
  - its command and its environment; the files that the command names, and all programs if it names the build folder;
  - the libraries of the build, if the command names a program other than ampc;
  - the folder of each file that the command names; examples/, models/, tests/data/, tests/quick/, and two scripts;
  - the folders and files that READS of ampc_test adds in tests/CMakeLists.txt (BUILD/tests/reads.tsv); `.` is the whole
    tree. A test that READS `always` has no key and always runs;
  - the machine: processor, GPUs, installed packages, the variables of the environment that match VARIABLES below;
  - $TESTS_KEY: scripts/nightly sets it to the commit, so that results of other commits do not count.
A test with TELLS in CMakeLists.txt has a second key. In place of its programs that key has
  - what the command TELLS prints: for each job a hash of all that the compiler hands to the rest of the program;
  - the rest of the program: PARTS below.
So a change of the compiler that changes no text of these jobs does not run the test again. One known key is enough.
tests/reads.py checks with strace that a test reads nothing else of the tree and the build.
"""
import functools
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
VARIABLES = re.compile(
    r"(AMPC?|ASAN|CC|CFLAGS|CUDA|DNNL|FAKE|GOMP|HOME|LANG|LC|LD|LSAN|MOCK|MPI|OMP|PATH|SIMT|TESTS|TMPDIR|TZ|UBSAN|XDG)"
    r"(_.*)?|PYTHON.*|VIRTUAL_ENV"
)
SHARED = ["examples", "models", "tests/canonical.py", "tests/data", "tests/faults/lib.sh", "tests/quick"]
PARTS = """CMakeFiles/*/runner/jit CMakeFiles/*/runner/selftest CMakeFiles/*/compiler/base CMakeFiles/*/compiler/graph
    CMakeFiles/*/compiler/nvrtc CMakeFiles/*/compiler/kernel/nvrtc.c.o tests/CMakeFiles/simt_check.dir
    libampcruntime.a libampcdata.a libampcformats.a libampcbase.a libampcplan.a""".split()
OWNERS = 12  # a job belongs to a few tests; a script that more tests run does not make them all run
TOLD = re.compile(r"^[0-9a-f]{32} .*", re.M)
LINE = re.compile(r" *\d+/(\d+) Test +#\d+: (\S+) .* ([0-9.]+) sec")


@functools.cache
def hash_of(path):
    """The hash of a file, or of the names and contents of all files in a folder; build folders do not count."""
    out = hashlib.blake2b(digest_size=16)
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            if not re.match(r"build$|build-|\.git$|\.cache$|__pycache__$", name):
                out.update(f"{name} {hash_of(os.path.join(path, name))}\n".encode())
    elif os.path.isfile(path):
        with open(path, "rb") as file:
            out.update(file.read())
    else:
        out.update(b"missing")
    return out.hexdigest()


@functools.cache
def machine():
    with open("/proc/cpuinfo") as file:
        cpu = sorted(set(re.findall(r"^(?:flags|model name).*", file.read(), re.M)))
    pip = [sorted(os.listdir(p)) for p in sys.path if p.endswith("-packages") and os.path.isdir(p)]
    return [cpu, os.cpu_count(), sorted(glob.glob("/dev/nvidia*")), hash_of("/var/lib/dpkg/status"), pip]


@functools.cache
def libraries(build):
    names = "include ampcConfig*.cmake libampcrt.a *.so* mock/* cudnn/*"
    return sorted(p for n in names.split() for p in glob.glob(f"{build}/{n}"))


@functools.cache
def programs(build):
    files = glob.glob(f"{build}/*") + glob.glob(f"{build}/tests/*")
    files = [p for p in files if os.path.isfile(p) and (os.access(p, os.X_OK) or p.endswith(".a"))]
    return sorted({*files, f"{build}/share", f"{build}/shared", *libraries(build)})


def parts(build):
    found = {pattern: glob.glob(f"{build}/{pattern}") for pattern in PARTS}
    assert all(found.values()), f"PARTS of kept.py names what {build} lacks: {found}"
    return [path for paths in found.values() for path in paths]


def read_by(build, command, more):
    """The files and folders that a test with this command reads, and what READS adds."""
    found = set(SHARED) | set(more)
    for word in command:
        path = os.path.relpath(word, HOME) if os.path.isabs(word) else word
        inside = os.path.realpath(path).startswith(HOME + "/")
        if os.path.realpath(path) == build:
            found |= set(programs(build))
        elif inside and os.path.isfile(path):
            found.add(path)
            folder = os.path.dirname(path)
            if not os.path.realpath(path).startswith(build + "/"):
                found |= {folder} - {"", "tests"}
            elif os.path.basename(path) != "ampc":
                found |= set(libraries(build))
    return sorted(found)


def inputs(build):
    """READS and TELLS of ampc_test, for each test."""
    try:
        with open(f"{build}/tests/reads.tsv") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
    except FileNotFoundError:
        return {}
    return {name: (reads.split(), tells.split()) for name, reads, tells in rows}


def environment_of(test):
    properties = {p["name"]: p["value"] for p in test["properties"]}
    return [properties.get("ENVIRONMENT"), properties.get("ENVIRONMENT_MODIFICATION")]


def key_of(test, files, told=None):
    shown = [test["name"], test["command"], environment_of(test)]
    environment = sorted((k, v) for k, v in os.environ.items() if VARIABLES.fullmatch(k) and k != "AMPC_SHARE")
    files = [(os.path.relpath(p, HOME), hash_of(p)) for p in files]
    text = json.dumps([shown, environment, files, machine(), told]).replace(HOME, ".")
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def first_key(test, build, reads):
    if "command" not in test or "always" in reads:
        return None
    return key_of(test, read_by(build, test["command"], reads))


def second_key(test, build, reads, tells):
    """The key with what TELLS prints. None if that command fails: then the test must run."""
    told = subprocess.run(tells, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    jobs = sorted(TOLD.findall(told.stdout))
    if told.returncode != 0 or not jobs:
        return None
    scripts = [word for word in test["command"] if not os.path.realpath(word).startswith(build + "/")]
    return key_of(test, read_by(build, scripts, reads + parts(build)), jobs)


def tests_of(build, options):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *options], stdout=subprocess.PIPE)
    return json.loads(listed.stdout)["tests"]


def changed_files():
    """Files that differ from yesterday's commit; all without one, as in a shallow clone."""
    git = functools.partial(subprocess.run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    before = git(["git", "rev-list", "-1", "--first-parent", "--before=1.day", "HEAD"]).stdout.split()
    return git(["git", *(["diff", "--name-only", *before] if before else ["ls-files"])]).stdout.split()


def owned(word):
    """The path, without ending, of a file or folder in a command; the name of a program."""
    path = os.path.relpath(word, HOME) if os.path.isabs(word) else word
    return os.path.splitext(path if os.path.exists(path) and not path.startswith("build") else os.path.basename(path))[0]


def left_out(tests, label):
    """The tests with the label that AMPC_SHARE=K/N leaves to other days."""
    if not label or not os.environ.get("AMPC_SHARE"):
        return []
    k, n = map(int, os.environ["AMPC_SHARE"].split("/"))
    assert 1 <= k <= n, "AMPC_SHARE is K/N, with K from 1 to N"
    shared = sorted(name for name, test in tests.items() if label in str(test["properties"]).split("'"))
    words = {name: set(map(owned, test["command"])) for name, test in tests.items()}
    named = Counter(word for each in words.values() for word in each)
    files = {os.path.splitext(path)[0] for path in changed_files()}
    changed = {part for path in files for part in (path, *os.path.split(path)) if named[part] <= OWNERS}
    left = [name for i, name in enumerate(shared) if i % n != k - 1 and not changed & words[name]]
    print(f"== AMPC_SHARE={k}/{n}: {len(left)} of {len(shared)} tests labelled {label} are left to other days", flush=True)
    return left


def results(into):
    """The last result of each key: test, result, seconds."""
    with open(f"{into}/results.tsv", "a+") as file:
        file.seek(0)
        return {line.split("\t")[0]: line.split("\t")[1:4] for line in file}


def keep(file, keys, name, done):
    for key in keys:
        file.write("\t".join([key or "-", name, *done, time.strftime("%F %H:%M")]) + "\n")
    file.flush()


def run(build, todo, keys, into, options):
    """Runs tests. Writes each result at once, so that an interrupted run keeps its results."""
    names = "|".join(re.escape(name) for name in todo)
    ctest = subprocess.Popen(
        ["ctest", "--test-dir", build, "--output-on-failure", *options, "-R", f"^({names})$"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    done = {}
    with open(f"{into}/log", "a") as log, open(f"{into}/results.tsv", "a") as kept:
        for line in ctest.stdout:
            log.write(line)
            if not re.match(r" +Start +\d+: ", line):
                print(line, end="", flush=True)
            found = LINE.match(line)
            if found and found[1] == str(len(todo)) and found[2] in keys:  # else a failed test printed it
                name, seconds = found.groups()[1:]
                result = "passed" if " Passed " in line else "skipped" if "***Skipped " in line else "failed"
                done[name] = [result, seconds]
                keep(kept, keys[name], name, done[name])
    ctest.wait()
    return done


def main(arguments):
    into, table, label = ".cache/tests", False, None
    while arguments and arguments[0] in ("--into", "--share", "--table"):
        table |= arguments[0] == "--table"
        into = arguments.pop(1) if arguments[0] == "--into" else into
        label = arguments.pop(1) if arguments[0] == "--share" else label
        arguments.pop(0)
    if not arguments:
        sys.exit(__doc__)
    build, options = os.path.realpath(arguments[0]), arguments[1:]
    into = os.path.realpath(into) if os.path.isabs(into) else os.path.join(HOME, into)
    os.chdir(HOME)
    os.makedirs(into, exist_ok=True)
    tests = {test["name"]: test for test in tests_of(build, options)}
    for name in left_out(tests, label):
        del tests[name]
    more, before = inputs(build), results(into)
    keys, done = {}, {}

    def look_up(name):
        reads, tells = more.get(name, ([], []))
        keys[name] = [first_key(tests[name], build, reads)]
        if tells and before.get(keys[name][0], ["", ""])[1] != "passed":
            keys[name].append(second_key(tests[name], build, reads, tells))
        for key in keys[name]:
            if before.get(key, ["", ""])[1] == "passed":
                done[name] = before[key][1:]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(look_up, tests))
    with open(f"{into}/results.tsv", "a") as file:
        for name in done:
            if len(keys[name]) > 1:
                keep(file, keys[name][:1], name, done[name]) # next time its first key is known
    kept = len(done)
    if kept < len(tests):
        done |= run(build, [name for name in tests if name not in done], keys, into, options)
    print(f"== results; what the tests printed: {into}/log")
    count = dict.fromkeys(["passed", "failed", "skipped", "not run"], 0)
    for name in sorted(tests):
        result, seconds = done.get(name, ["not run", "0"])
        count[result] += 1
        if table or result in ("failed", "not run"):
            print(f"{result:<8} {seconds:>9} s  {name}")
    minutes = sum(float(seconds) for _, seconds in done.values()) / 60
    said = ", ".join(f"{n} {result}" for result, n in count.items())
    print(f"{said}; {minutes:.0f} minutes of tests; {kept} had passed before with the same inputs")
    sys.exit(not tests or count["failed"] + count["not run"] > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
