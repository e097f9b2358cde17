#!/usr/bin/env python3
"""signals.py AMPC AMP: hundreds of each signal that is handled, into f32 products and convolutions, of
amp train, an emitted program and the prompt. No signal harms the run; one that ends it leaves a whole
checkpoint and the status 130; one that was ignored before stays ignored. Nothing waits for a time: a
signal is sent at any moment after the first step was told."""
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

AMPC, AMP = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
PATIENCE = 300  # seconds for what hangs, not for what is slow
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
    """A program whose lines are read as they come; begun when `began` stands in one of them."""

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
        """A line that comes from now on; False: the program ended without it."""
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
    """SIGUSR1 as often as it comes, then an end."""
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
    """Each signal that ends a run, twice, after some that save."""
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
    """What nohup and shells turn off stays off."""
    for number in (signal.SIGHUP, signal.SIGINT):
        run = Run(command, preexec_fn=ignoring(number))
        for _ in range(20):
            run.send(number)
        run.skip()
        on = run.wait_for(" step ") and run.wait_for(" step ")
        run.send(signal.SIGTERM)
        check(f"{name}: {number.name} stays ignored", on and run.end() == 130, str(run.tail))


def prompt(name, job):
    """Ctrl-C stops the work of the prompt, again and again, and nothing else."""
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


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
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
                ends(kind, command, resume + ["--steps", "1"])
            ignored(name, train)
            prompt(name, job)
    sys.exit(failures != 0)


main()
