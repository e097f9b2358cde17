#!/usr/bin/env python3
"""Programs that could take very long. Each must compile, or be refused by a limit that its message names.
usage: hostile.py AMPC          every program, under limits of CPU time and memory, with the expected message
       hostile.py --write DIR   the programs that are small enough for the fuzzer, as files of its corpus

The limits are at least ten times what the slowest program needs; quadratic algorithms exceed them by far.
"""
import os
import resource
import subprocess
import sys
import tempfile

SECONDS, BYTES = 20, 2 << 30  # CPU time, address space; each takes less than 1 s and 0.5 GB
FUZZED = 8000                 # bytes

JOB = """data d(n: int) { return synthetic(n, [8]), synthetic(n, [], i64, 0, 4) }
module MLP(h: int = 8) {
  fc1 = Linear(8, h)
  fc2 = Linear(h, 4)
  def forward(x) {
    %s
    return fc2(relu(fc1(x)))
  }
}
model net = MLP()
optimizer opt = SGD(net, lr=0.1, momentum=0.9) { %s }
precision f16
train x, y in d(64) with batch=16, epochs=2 { minimize cross_entropy(net(x), y) with opt }
"""
LONG = "0123456789abcdef"
SMALL_BRANCHES = "a = 1"
for _ in range(9):
    SMALL_BRANCHES = "if x == 0 { %s }; if x == 0 { %s }; if x == 0 { %s }" % ((SMALL_BRANCHES,) * 3)
SUM = "1"
for _ in range(15):
    SUM = "(%s + %s)" % (SUM, SUM)
SIXTEEN_TIMES = "for i in range(16) { s = s + s }"


def job(body="", group=""):
    return JOB % (body, group)


def lines(fmt, n):
    return "".join(fmt.replace("#", str(i)).replace("@", str(i + 1)) for i in range(n))


def run(body):
    """A job with a def whose body runs once."""
    return "def f(x) {\n%s\n return 3 }\nconst A = f(7)\n" % body


WORK = "the job unrolls to more than 2000000 statements"
TOKENS = "more than 1048576 tokens"
VALUES = "a list has at most 1048576 values"
NESTED = "lists are nested more than 100 deep"
STACK = "calls, expressions and statements nest more than 2000 deep"

# name: (program, text of the first message; None: it compiles)
PROGRAMS = {
    # ---- text ----
    "nul in a comment": (job("# nul \0 here\n    x = tanh(x)"), "byte 0x00: this is no text"),
    "nul 1M": ("\0" * 1000000, "byte 0x00: this is no text"),
    "nul in a string": ('const A = "a\0b"\n', "byte 0x00: this is no text"),
    "newlines 1M": ("\n" * 1000000 + job(), None),
    "lines of comments": ("# x\n" * 500000 + job(), None),
    "a long comment": ("# " + "x" * 8000000 + "\n" + job(), None),
    "a long line": ("const A = 1 # " + "\u00e9" * 2000000 + "\nconst B = A\n", None),
    "a long name": ("const " + "x" * 4000000 + " = 1\n", None),
    "too many tokens": ("const A = [" + "1," * 6000000 + "1]\n", TOKENS),
    "many tokens": ("const A = [" + "1," * 520000 + "1]\n", None),
    "too many bytes": ("#" * (1 << 24) + "\n", "it has more than 16777216 bytes"),
    "quotes": ("const A = " + '"""' * 3000000 + "\n", TOKENS),
    "curly quotes": ("const A = " + "\u201c" * 1000000 + "\n", "E100"),
    "stray characters": ("$ " * 300000, "`$` is no part of the language"),
    "other operators": ("const A = 1 " + "&& 1 " * 200000 + "\n", "there is no `&&`"),
    "open brackets": ("const A = " + ("(" * 150 + "\n") * 2000, "more than 200 brackets are open"),
    "brackets never closed": ("def f(x) { a = ((((((1 + 2\n" * 10000, "is still open"),
    "brackets never opened": ("}\n" * 200000, "closes nothing"),
    "mistakes of syntax, then of names": (lines("const A# $ = #\n", 30000) + lines("const B# = C#\n", 30000), "E100"),
    "operators": ("const A = 1" + "+1" * 300000 + "\n", "more than 500 operations deep"),
    "members": ("const A = f" + ".a" * 300000 + "\n", "more than 500 operations deep"),
    "else if": (run("if x == 0 { return 0 }" + lines(" else if x == # { return 1 }", 1000)),
                "statements are nested more than 500 deep"),
    "endless else if": (run("if x == 0 { return 0 }" + lines(" else if x == # { return 1 }", 20000)),
                        "nested too deeply"),
    # ---- names ----
    "consts 100k": (lines("const A# = #\n", 100000), None),
    "consts of consts": (lines("const A# = A@\n", 50000), "more than 200 declarations depend on one another"),
    "unknown names": (lines("const A# = B#\n", 20000), "unknown name `B0`"),
    "unknown methods": ("infer g(x: f32[1]) {\n" + lines(" a# = x.foo#(1)\n", 50000) + " return x }\n", "has no `foo0`"),
    "locals 50k": (run(lines(" a# = #\n", 50000)), None),
    "members 10k": ("module M {\n" + lines(" l# = Linear(1, 1)\n", 10000) + " def forward(x) { return l0(x) } }\n"
                    "model net = M()\ninfer g(x: f32[1, 1]) { return net(x) }\n", None),
    "arguments 3k": ("def f(" + lines("a#=1, ", 3000) + "b=1) { return 1 }\nconst A = f(" + lines("a#=2, ", 3000) +
                     "b=2)\n", None),
    "names of branches": (run("for i in range(100000) { if i < 0 { " + lines("a# = 1; ", 300) + "} }"), WORK),
    "names of branches in branches": (run("for i in range(100000) { if i < 0 { if i < 0 { " +
                                           lines("a# = 1; ", 20000) + "} } }"), WORK),
    "names of branches in small branches": (run("for i in range(100000) { if i < 0 { " + SMALL_BRANCHES + " } }"), WORK),
    "names of targets": (run("for i in range(100000) { if i < 0 { " + lines("a#, ", 50000) + "b = x } }"), WORK),
    "imports": ("import \"imports.amp\"\n" * 30000, None),
    # ---- values ----
    "nested lists": (job("a = [1]\n for i in range(100000) { a = [a] }\n z = str(a)"), NESTED),
    "shared lists compared": (job("a = [1]\n b = [1]\n for i in range(60) { a = [a, a]\n b = [b, b] }\n assert a == b"),
                              VALUES),
    "shared lists as text": (job("a = [1]\n for i in range(60) { a = [a, a] }\n z = str(a)"), VALUES),
    "shared tuples": (job("a = [1]\n for i in range(60) { a = a, a }\n z = str(a)"), VALUES),
    "shared lists in a module": ("module M { a = [1]\n for i in range(60) { a = [a, a] }\n def forward(x) { return x } }\n"
                                 "model net = M()\n", VALUES),
    "lists times n": (job("for i in range(1000) { z = [0] * 1000000 }"), WORK),
    "lists added": (job("z = []\n for i in range(100000) { z = z + [i] }"), WORK),
    "zip": (run("L = range(1000000)\n for i in range(1000) { M = zip(L, L) }"), VALUES),
    "enumerate": (run("L = range(300000)\n for i in range(1000) { M = enumerate(L) }"), WORK),
    "loops over nothing": (run("L = range(1000000)\n for i in L { for j in L { } }"), WORK),
    "list literals": (run("for i in range(100000) { x = [" + "1," * 50000 + "1] }"), WORK),
    "sums of numbers": (run("for i in range(100000) { x = " + SUM + " }"), WORK),
    "arguments": (run("for i in range(100000) { x = min(" + "1," * 33000 + "1) }"), WORK),
    "arguments of a list": (run("L = range(33000)\n for i in range(100000) { x = min(*L) }"), WORK),
    "parameters": ("def g(" + lines("a#=1, ", 30000) + "b=1) { return b }\n" +
                   run("for i in range(100000) { x = g() }"), WORK),
    "lists compared": (run("L = range(1000)\n for i in range(100000) { assert L == L }"), WORK),
    "texts compared": (run('s = "%s"\n %s\n t = s[1:] + "b"; u = s[1:] + "c"\n for i in range(1000000) { v = t == u }' %
                           (LONG, SIXTEEN_TIMES)), WORK),
    "slices": (run('s = "%s"\n %s\n for i in range(1000000) { v = s[1:] }' % (LONG, SIXTEEN_TIMES)), WORK),
    "a long text of a list": (run('s = "%s"\n %s\n L = [s] * 100000\n t = str(L)' % (LONG, SIXTEEN_TIMES)),
                              "a str has at most 1048576 bytes"),
    "a long list in a message": (run("L = range(1000000) + 1"), "`+` cannot take list [0, 1, 2"),
    "calls in signs": ("def f(n) { return " + "-" * 480 + "f(n) }\nconst A = f(1)\n", STACK),
    "calls in branches": ("def f(n) {\n if n == 0 { return 0 }" + lines(" else if n == -@ { return 1 }", 480) +
                          " else { return f(n) }\n return 3 }\nconst A = f(1)\n", STACK),
    "calls": ("def f(n) { return f(n + 1) }\nconst A = f(1)\n", "calls of `f` nest more than 200 deep"),
    # ---- models ----
    "sums of tensors": ("infer g(x: f32[2]) {\n for i in range(20000) { y = x" + " + x" * 400 + " }\n return x }\n", WORK),
    "a pattern of stars": (job(group='group("*' + "a*" * 18 + 'b", lr=0.2)').replace("fc1", "a" * 40),
                           "matches no parameter"),
    "a pattern of double stars": (job(group='group("' + "**." * 300 + 'b", lr=0.2)'), "matches no parameter"),
    "a pattern of stars that fits": (job(group='group("*' + "a*" * 18 + '.weight", lr=0.2)').replace("fc1", "a" * 40), None),
    "patterns": (job() + "module M { L = [Linear(1, 1) for i in range(1000)]; def forward(x) { return x } }\n"
                 "model big = M()\noptimizer b = SGD(big, lr=0.1) {\n" + 'group("**.bias", lr=0.2)\n' * 200 + "}\n", None),
    "layers in a list": ("module M { L = [Linear(1, 1) for i in range(100000)]; def forward(x) { return x } }\n"
                         "model net = M()\n", WORK),
    "blocks": (lines("infer g#(x: f32[2]) { return x }\n", 65537), "the job has more than 1024 blocks"),
    "blocks that train": (job() + "train x, y in d(64) with batch=4 { minimize cross_entropy(net(x), y) with opt }\n" * 500,
                          None),
    "outputs": ("infer f(x: f32[2]) { return range(65537) }\n", "the job has more than 8192 outputs"),
    "metrics": (job() + "eval x, y in d(64) with batch=4 {\n" + lines(" metric m# = net(x).mean()\n", 5000) + "}\n", None),
    "optimizers": (job() + lines("model n# = MLP()\noptimizer o# = SGD(n#, lr=0.1)\n", 2000), None),
}


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(ampc, name, program, expected):
    """The difference from the expected result, or None."""
    with open("imports.amp", "w", encoding="utf-8") as f:
        f.write(program)
    done = subprocess.run([ampc, "--check", "imports.amp"], stdin=subprocess.DEVNULL, capture_output=True,
                          preexec_fn=limited)
    said = done.stderr.decode(errors="replace")
    first = next((line for line in said.splitlines() if "error" in line), "")
    if done.returncode not in (0, 1, 3):
        return f"status {done.returncode}: {first[:300]}"
    if expected is None:
        return None if done.returncode == 0 else f"it is refused: {first[:300]}"
    if done.returncode == 0 or expected not in first:
        return f"status {done.returncode}, no `{expected}` in: {first[:300]}"
    return None if len(said) < 100000 else f"{len(said)} bytes of messages"


def write(folder):
    for name, (program, _) in PROGRAMS.items():
        if len(program) > FUZZED:
            continue
        with open(os.path.join(folder, "hostile_" + name.replace(" ", "_")), "w", encoding="utf-8") as f:
            f.write("A" + program)  # the first byte chooses the target


def main():
    if sys.argv[1] == "--write":
        write(sys.argv[2])
        return 0
    ampc, bad = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, (program, expected) in PROGRAMS.items():
            wrong = check(ampc, name, program, expected)
            if wrong:
                print(f"FAILED: {name}: {wrong}")
                bad += 1
        os.chdir("/")
    print(f"{len(PROGRAMS) - bad} of {len(PROGRAMS)} hostile programs give the expected result")
    return 1 if bad else 0


sys.exit(main())
