#!/usr/bin/env python3
"""signals.py AMPC AMP: sends hundreds of each handled signal to amp train, an emitted program and the prompt, during
f32 products and convolutions. No signal may harm the run. A signal that ends it must leave a complete checkpoint and
status 130. A signal that was ignored before must stay ignored. The same holds before the first step, where a hanging C
compiler must be ended too, and after the last step. No test depends on a time: a signal is sent at a random moment after
a state was observed."""
import os
import queue
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

AMPC, AMP = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
PATIENCE = 300  # seconds; long enough for slow programs, to detect a hang
HANDLED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
RANDOM = random.Random(1)

JOBS = {
    "products": """
data numbers(n: int) { return synthetic(n, [256]), synthetic(n, [], dtype=i64, low=0, high=4) }
module Net() {
  fc1 = Linear(256, 512)
  fc2 = Linear(512, 512)
  fc3 = Linear(512, 4)
  def forward(x) { return fc3(relu(fc2(relu(fc1(x))))) }
}
""",
    "convolutions": """
data numbers(n: int) { return synthetic(n, [8, 16, 16]), synthetic(n, [], dtype=i64, low=0, high=4) }
module Net() {
  c1 = Conv2d(8, 32, 3, padding=1)
  c2 = Conv2d(32, 32, 3, padding=1)
  fc = Linear(32, 4)
  def forward(x) { return fc(mean(relu(c2(relu(c1(x)))), (2, 3))) }
}
""",
}
TAIL = """model net = Net()
optimizer opt = SGD(net, lr=0.001)
precision f32
train x, y in numbers(512) with batch=64, epochs=1000000, log=1 { minimize cross_entropy(net(x), y) with opt }
"""
failures = 0


def check(name, good, text=""):
    global failures
    if good:
        print("ok:", name, flush=True)
    else:
        failures += 1
        print("FAILED:", name, text, flush=True)


class Run:
    """A running program. Its lines are read as they come; it has begun when a line contains `began`."""

    def __init__(self, command, began=" step 1/", **how):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, **how)
        self.lines, self.tail = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()
        if began:
            self.wait_for(began)

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def wait_for(self, text):
        """Waits for a line that contains the text; False: the program ended without one."""
        while True:
            line = self.lines.get(timeout=PATIENCE)
            if line is None:
                self.lines.put(None)
                return False
            self.tail = self.tail[-8:] + [line]
            if text in line:
                return True

    def skip(self):
        while not self.lines.empty() and self.lines.queue[0] is not None:
            self.lines.get()

    def runs(self):
        return self.child.poll() is None

    def send(self, number):
        self.child.send_signal(number)

    def type(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def end(self):
        status = self.child.wait(PATIENCE)
        self.wait_for("nothing is ever printed like this")
        return status


def ignoring(number):
    return lambda: signal.signal(number, signal.SIG_IGN)


def defaults():
    for number in HANDLED:
        signal.signal(number, signal.SIG_DFL)


def storm(name, command):
    """Sends many SIGUSR1, then SIGTERM."""
    run = Run(command, preexec_fn=defaults)
    for _ in range(400):
        if not run.runs():
            break
        run.send(signal.SIGUSR1)
        time.sleep(RANDOM.random() * 0.002)
    survived = run.runs()
    if survived:
        run.send(signal.SIGTERM)
    status = run.end()
    check(f"{name}: 400 SIGUSR1", survived and status == 130, f"status {status} {run.tail}")


def ends(name, command, resume):
    """Sends each signal that ends a run, twice, after some that save."""
    for number in HANDLED * 2:
        if os.path.exists("saved"):
            os.unlink("saved")
        run = Run(command + ["--save", "saved"], preexec_fn=defaults)
        for _ in range(RANDOM.randrange(3)):
            run.send(signal.SIGUSR1)
            time.sleep(RANDOM.random() * 0.01)
        run.send(number)
        status = run.end()
        again = subprocess.run(resume + ["--resume", "saved", "-q"], capture_output=True, text=True)
        good = status == 130 and again.returncode == 0
        check(f"{name}: {number.name}", good, f"status {status} {run.tail} {again.stderr}")


def ignored(name, command):
    """Signals that nohup and shells ignore stay ignored."""
    for number in (signal.SIGHUP, signal.SIGINT):
        run = Run(command, preexec_fn=ignoring(number))
        for _ in range(20):
            run.send(number)
        run.skip()
        on = run.wait_for(" step ") and run.wait_for(" step ")
        run.send(signal.SIGTERM)
        check(f"{name}: {number.name} stays ignored", on and run.end() == 130, str(run.tail))


def prompt(name, job):
    """Ctrl-C interrupts the current command of the prompt, again and again, but not the session."""
    run = Run([AMP, "repl", "--device", "cpu", job], began=None, preexec_fn=defaults)
    done = 0
    while done < 100:
        run.type(":train 100000000")
        if not run.wait_for("step "):  # trained, or the end of the session
            break
        time.sleep(RANDOM.random() * 0.003)
        run.send(signal.SIGINT)
        if not run.wait_for("interrupted after"):
            break
        done += 1
    if run.runs():
        run.type(":quit")
    status = run.end()
    check(f"{name}: the prompt, 100 SIGINT", done == 100 and status == 0, f"{done}, status {status} {run.tail}")


# ---- before the first step: a compiler that hangs until `go` is there ----------------------------

COMPILER = """#!/bin/sh
case "$1" in --version) exec REAL --version ;; esac
PREPARE
echo $$ >>pids
sleep 100000 & echo $! >>pids; touch hangs
while [ ! -e go ]; do sleep 0.01; done
kill $!
exec REAL "$@"
"""


def wait_until(what, good):
    """Waits until good() is true; False after PATIENCE."""
    end = time.monotonic() + PATIENCE
    while not good():
        if time.monotonic() > end:
            print("waited for", what, flush=True)
            return False
        time.sleep(0.005)
    return True


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Hanging:
    """A program whose compiler hangs; `prepare`: a line of the compiler's shell."""

    def __init__(self, command, prepare="", began=None):
        shutil.rmtree("hanging", ignore_errors=True)
        os.makedirs("hanging/bin")
        os.makedirs("hanging/temp")
        with open("hanging/bin/cc", "w", encoding="utf-8") as f:
            f.write(COMPILER.replace("REAL", shutil.which("cc")).replace("PREPARE", prepare))
        os.chmod("hanging/bin/cc", 0o755)
        here = os.path.realpath("hanging")
        env = dict(os.environ, PATH=f"{here}/bin:{os.environ['PATH']}", XDG_CACHE_HOME=f"{here}/cache",
                   TMPDIR=f"{here}/temp", XDG_STATE_HOME=f"{here}/state")
        self.run = Run(command, began=began, preexec_fn=defaults, cwd=here, env=env)

    def hangs(self):
        return wait_until("the compiler", lambda: os.path.exists("hanging/hangs") or not self.run.runs())

    def left(self):
        """The processes and files that are left over."""
        with open("hanging/pids", encoding="utf-8") as f:
            pids = f.read().split()
        gone = wait_until("the compiler's end", lambda: all(is_gone(pid) for pid in pids))
        return ([] if gone else pids) + os.listdir("hanging/cache/ampc") + os.listdir("hanging/temp")


def compiling(name, command):
    for number in HANDLED:
        h = Hanging(command)
        h.hangs()
        h.run.send(number)
        status = h.run.end()
        left = h.left()
        good = status == 130 and not left and any("interrupted" in line for line in h.run.tail)
        check(f"{name}: {number.name} while a compiler hangs", good, f"status {status} {h.run.tail} {left}")
    h = Hanging(command, "trap '' TERM")
    h.hangs()
    h.run.send(signal.SIGTERM)
    status = h.run.end()
    left = h.left()
    check(f"{name}: a compiler that ignores SIGTERM", status == 130 and not left, f"status {status} {left}")


def saving(name, command):
    """Sends SIGUSR1 before the first step, and then repeatedly until the process ends."""
    h = Hanging(command + ["--save", "saved"])
    h.hangs()
    h.run.send(signal.SIGUSR1)
    open("hanging/go", "w", encoding="utf-8").close()
    told = h.run.wait_for("saved saved at step 1")
    while h.run.runs():
        h.run.send(signal.SIGUSR1)
    check(f"{name}: SIGUSR1 from before the first step to the end", told and h.run.end() == 0, str(h.run.tail))


def saving_emitted(command):
    """Sends SIGUSR1 repeatedly from the moment when the handler is installed."""
    def caught():
        with open(f"/proc/{run.child.pid}/status", encoding="utf-8") as f:
            for line in f:
                if line.startswith("SigCgt:"):
                    return int(line.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1 or not run.runs()
        return not run.runs()
    run = Run(command + ["--save", "saved"], began=None, preexec_fn=defaults)
    wait_until("the handler", caught)
    while run.runs():
        run.send(signal.SIGUSR1)
    status = run.end()
    check("emitted: SIGUSR1 to the end", status == 0, f"status {status} {run.tail}")


def prompt_compiling(job):
    """Ctrl-C ends the compiler but not the session; SIGTERM ends both."""
    h = Hanging([AMP, "repl", "--device", "cpu", job])
    h.run.type(":train 1")
    h.hangs()
    h.run.send(signal.SIGINT)
    told = h.run.wait_for("amp: interrupted")
    left = h.left()
    os.unlink("hanging/hangs")
    h.run.type(":train 1")
    h.hangs()
    h.run.send(signal.SIGTERM)
    status = h.run.end()
    left += h.left()
    check("the prompt: a compiler that hangs", told and status == 130 and not left, f"status {status} {left}")
    run = Run([AMP, "repl"], began=None, preexec_fn=defaults)
    run.type("1 + 1")
    run.wait_for("int 2")
    run.send(signal.SIGTERM)
    check("the prompt: SIGTERM", run.end() == 130, str(run.tail))


def twice(name, command):
    """timeout(1) sends the same signal to its child and to the child's group. On a busy machine the second one may
    arrive so late that it counts as another signal; then the run ends without saving."""
    for number in HANDLED:
        statuses, saved = [], False
        while len(statuses) < 10 and not saved:
            run = Run(command + ["--save", "saved"], preexec_fn=defaults)
            run.send(number)
            run.send(number)
            statuses.append(run.end())
            saved = any("--resume saved" in line for line in run.tail)
        check(f"{name}: {number.name} twice at once", saved and set(statuses) == {130}, f"{statuses} {run.tail}")


SHORT = """data numbers(n: int) { return synthetic(n, [8]), synthetic(n, [], dtype=i64, low=0, high=4) }
model net = Linear(8, 4)
optimizer opt = SGD(net, lr=0.001)
train x, y in numbers(256) with batch=4, epochs=1 { minimize cross_entropy(net(x), y) with opt }
eval x, y in numbers(8) with batch=8 { metric acc = accuracy(net(x), y) }
infer f(x: f32[4, 8]) { return net(x) }
"""


def around():
    with open("short.amp", "w", encoding="utf-8") as f:
        f.write(SHORT)
    job = os.path.realpath("short.amp")
    train = [AMP, "train", "--device", "cpu", job]
    compiling("amp train", train)
    saving("amp train", train)
    subprocess.run(train + ["-q", "--save", "weights"], check=True, capture_output=True)
    weights = os.path.realpath("weights")
    compiling("amp eval", [AMP, "eval", "--device", "cpu", "--resume", weights, job])
    with open("in.npy", "wb") as f:
        head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 8), }".ljust(117) + "\n"
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(4 * 4 * 8))
    files = ["--input", os.path.realpath("in.npy"), "--output", os.path.realpath("out.npy")]
    compiling("amp infer", [AMP, "infer", "--device", "cpu", "--weights", weights, *files, job])
    compiling("amp probe", [AMP, "probe", "--device", "cpu", job])
    compiling("amp selftest", [AMP, "selftest", "--device", "cpu", "--filter", "relu"])
    prompt_compiling(job)
    subprocess.run([AMPC, "--target=cpu", "-o", "short.c", job], check=True)
    line = subprocess.run([AMPC, "--target=cpu", "--build-line", "-o", "short.c", job], check=True,
                          capture_output=True, text=True).stdout
    subprocess.run(line, shell=True, check=True)
    saving_emitted(["./short"])


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        around()
        for name, text in JOBS.items():
            job = name + ".amp"
            with open(job, "w", encoding="utf-8") as f:
                f.write(text + TAIL)
            subprocess.run([AMPC, "--target=cpu", "-o", name + ".c", job], check=True)
            line = subprocess.run([AMPC, "--target=cpu", "--build-line", "-o", name + ".c", job], check=True,
                                  capture_output=True, text=True).stdout
            subprocess.run(line, shell=True, check=True)
            train = [AMP, "train", "--device", "cpu", job]
            for kind, command, resume in (("amp train", train, train), ("emitted", ["./" + name], ["./" + name])):
                kind = f"{name}, {kind}"
                storm(kind, command)
                twice(kind, command)
                ends(kind, command, resume + ["--steps", "1"])
            ignored(name, train)
            prompt(name, job)
    sys.exit(failures != 0)


main()
