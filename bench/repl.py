#!/usr/bin/env python3
"""bench/repl.py [AMP]: measures the time until the prompt appears, and from redefining a layer to its next
step, with the Fashion-MNIST job. Prints the minimum over some trials."""
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
AMP = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/amp"))
os.chdir(ROOT)
JOB = "models/fashion_mnist/mlp.amp"
LAYERS = """module MLP(hidden: int = 512, classes: int = 10) {
  fc1 = Linear(784, hidden)
  fc2 = Linear(hidden, %d)
  fc3 = Linear(%d, classes)
  def forward(x: float[N, 28, 28]) -> float[N, classes] {
    x = dropout(relu(fc1(flatten(x, 1))), 0.1)
    x = dropout(relu(fc2(x)), 0.1)
    return fc3(x)
  }
}
:step"""


class Session:
    def __init__(self, env):
        self.child = subprocess.Popen([AMP, "repl", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, bufsize=0, env=env)

    def ask(self, text, answer):
        begin = time.monotonic()
        self.child.stdin.write((text + "\n").encode())
        seen = b""
        while answer not in seen:
            part = self.child.stdout.read(1)
            if not part:
                sys.exit(f"FAILED: the session ended: {seen.decode()}")
            seen += part
        return time.monotonic() - begin

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def show(what, tries, aim):
    print(f"{what}: {min(tries):.3f} s ({len(tries)} tries; aim: {aim} s)")


def main():
    with tempfile.TemporaryDirectory() as cache:  # nothing is built yet: each width is new
        env = dict(os.environ, XDG_CACHE_HOME=cache)
        session = Session(env)
        session.ask(":step", b"trained")
        again = []
        for width in range(248, 200, -8):
            again.append(session.ask(LAYERS % (width, width), b"trained"))
            if again[-1] < 1:
                break
        session.end()
        starts = []
        for _ in range(5):
            begin = time.monotonic()
            session = Session(env)
            session.ask("1 + 1", b"int 2")  # after an answer the prompt has appeared
            starts.append(time.monotonic() - begin)
            session.end()
    show("start to the prompt", starts, 0.3)
    show("a redefined layer to its next step", again, 1.0)


main()
