#!/usr/bin/env python3
"""terminal.py AMP: every command of the prompt on a terminal, as a user types it: editing, completion, history, open
brackets, Ctrl-C at the prompt and during work, Ctrl-D."""
import codecs
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time

AMP = os.path.realpath(sys.argv[1])
os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
WORK = tempfile.mkdtemp()
PATIENCE = 300  # seconds; long enough for slow commands, to detect a hang


class Failed(Exception):
    pass


class Terminal:
    """A child process on a terminal of 100 columns; `seen` is its output."""

    def __init__(self, *args, **environment):
        env = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8", XDG_STATE_HOME=WORK + "/state", NO_COLOR="1")
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":intercept_tls_get_addr=0"
        env.update(environment)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(AMP, [AMP, *args], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.seen = self.raw = ""  # raw: with escape sequences
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.held = ""  # the start of an escape sequence whose end was not read yet
        self.at = 0  # the output before this position has been checked

    def read(self, until):
        ready, _, _ = select.select([self.fd], [], [], max(0, until - time.time()))
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the child has closed the terminal
            return False
        text = self.decode(data)
        self.raw += text
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", self.held + text)
        self.held = re.search(r"(\x1b(\[[0-9;?]*)?)?$", plain).group()
        self.seen += plain.removesuffix(self.held)
        return bool(data)

    def expect(self, pattern, what=None):
        until = time.time() + PATIENCE
        while True:
            found = re.compile(pattern, re.M).search(self.seen, self.at)
            if found:
                self.at = found.end()
                return found
            if not self.read(until):
                raise Failed(f"{what or pattern}: not seen in\n{self.seen[self.at:]}")

    def send(self, text):
        os.write(self.fd, text.encode())

    def type(self, line, *patterns):
        """Types a line, waits for the expected output and the next prompt."""
        self.send(line + "\r")
        for pattern in patterns:
            self.expect(pattern, f"answer to {line}")
        self.expect(r"^amp> ", f"prompt after {line}")

    def interrupt(self):
        self.send("\x03")

    def end(self):
        until = time.time() + PATIENCE
        while self.read(until):
            pass
        status = self.wait()
        os.close(self.fd)
        return status

    def wait(self):
        until = time.time() + PATIENCE
        while time.time() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise Failed("the session does not end")


def write_editor(name, command):
    path = os.path.join(WORK, name)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + command + "\n")
    os.chmod(path, 0o755)
    return path


def every_command():
    editor = write_editor("edit", 'sed -i "s/= ampc_silu/= R(3.0) * ampc_silu/" "$1"')
    t = Terminal("repl", "tests/repl/small.amp", EDITOR=editor)
    t.expect(r"^amp [0-9.]+, tests/repl/small.amp; :help .*:quit", "the banner")
    t.expect(r"^amp> ")
    t.type("1 + 1", r"^int 2$")
    t.type("net(ones(2, 8))", r"^f16\[2, 4\]$")
    t.type("y = ones(3) * 2", r"^y: f32\[3\]$")
    t.type("a = 1; a += 2", r"^a: int 3$")
    t.type("y", r"^\[2.0000, 2.0000, 2.0000\]  f32\[3\]$")
    t.type(":help", r":train \[N\]", r":quit")
    t.type(":help loss", r"^:loss")
    t.type(":loss", r"no step was trained yet")
    t.type(":train 40", r"step 40/32  epoch 5  loss [0-9.]+", r"^trained 40 steps in ")
    t.type(":step", r"^trained 1 step in ")
    t.type(":eval", r"^eval acc: 0\.[0-9]{4}$")
    t.type(":infer", r"has no infer block")
    t.type(":generate 3 a", r"has no infer block")
    t.type(":loss", r"^loss$", r"^ +[0-9.]+ ┤[\u2800-\u28ff]{88}$", r"step 1 to 41, last [0-9.]+")
    t.type(":scaler", r"^scale 65536 \(dynamic\)$", r"^skipped 0 of 41 steps$")
    t.type(":params", r"^fc1.weight +f32\[16, 8\] +opt +[0-9.]+$", r"^total 212 parameters$")
    t.type(":params fc2.*", r"^total 68 parameters$")
    t.type(":grad fc2.bias", r"^range: ", r"^norm [0-9.e-]+; divided by the loss scale 65536$")
    t.type(":show logits", r"^f16\[32, 4\]$", r"^range: ", r"small.amp:11:40  linear runs in f16: `precision f16`, line 15$")
    t.type(":show y", r"^i64\[32\]$|\]  i64\[32\]$")
    t.type(":show fc1", r"^f16\[32, 16\]$")
    t.type(":show loss", r"^[0-9.]+  f32\[\]$")
    t.type(":show fc1.weight", r"^f32\[16, 8\]$", r"stored type$", r"^read as f16\[16, 8\]")
    t.type(":type net(ones(7, 8))", r"^f16\[7, 4\]  linear runs in f16")
    t.type(":memory", r"^weights +[0-9.]+ kB$", r"^total ")
    t.type(":time net(ones(64, 8))", r"^[0-9.]+ ms \(median of [0-9]+; least [0-9.]+ ms\), [0-9]+ kernels$")
    t.type(":graph", r"%[0-9]+ = linear f16", r"^# block 1: eval")
    t.type(":graph lower", r"%[0-9]+ = minimize")
    t.type(":casts logits", r"logits +f16\[32, 4\] -> f32", r"^1 cast$")
    t.type(":kernel", r"^net_silu: ")
    t.type(":kernel net_silu", r"^ +[0-9]+  __global__ void net_silu\(")
    number = re.search(r"^ +([0-9]+)  __global__ void net_silu\(", t.seen, re.M).group(1)
    t.type(f":blame {number}", rf"^{number}: __global__ void net_silu", r"^written by compiler/kernel/kernel.c:[0-9]+$")
    t.type(":kernel net_silu edit", r"^:kernel net_silu reload runs ")
    t.type(":kernel net_silu reload", r"^net_silu runs the edited text$")
    t.type(":kernel", r"^net_silu: .*\(edited\)$")
    t.type(":step", r"^trained 1 step in ")
    t.type(":ptx net_silu", r"\.entry net_silu\(|NVRTC is not on this machine")
    t.type(":sass net_silu", r"net_silu|nvdisasm is not on this machine")
    t.type(f":write {WORK}/a.amp", r"^wrote .*/a.amp: amp train .*/a.amp$")
    t.type(f":save {WORK}/a", r"^saved .* at step 42$")
    t.type(":set opt.lr=0.001")
    t.type(":set", r"^opt.lr +0.001$")
    t.type(":step", r"opt.lr 0.001 ")
    t.type(f":save {WORK}/b", r"^saved .* at step 43$")
    t.type(f":diff ckpt {WORK}/a {WORK}/b", r"^step 42 and 43$", r"^fc1.weight: [0-9]+ of 128 differ")
    t.type(":diff precision f16 f32", r"^- .*linear f16", r"^\+ .*linear f32")
    t.type(":diff pass lower precision", r"^\+ .*cast f16")
    t.type(f":load {WORK}/a", r"^loaded .*: step 42$")
    t.type(":precision bf16")
    t.type(":precision", r"^bf16$")
    t.type(":step", r"step 43/32 ")
    t.type(":const HIDDEN=24")
    t.type(":params fc1.weight", r"f32\[24, 8\]")
    t.type(":explain", r"predicted .* on this CPU", r"fc1 .*linear runs in bf16")
    t.type(":explain h200", r"predicted .* on H200", r"fc1 .*linear runs in bf16")
    t.type(":undo", r"^took back :const HIDDEN=24$")
    t.type(":hist fc1.weight", r"^ +-?[0-9.]+ ┤█", r"^f32\[16, 8\]$", r"^range: ")
    t.type(":probe", r"^all numbers are absolute values; least: the smallest above 0")
    t.type(":profile 2", r"^train, batch 32: ", r"^fc1_linear ", r"^measured: the mean")
    t.type(":profile all", r"^amp: all: expected a number of steps: ")
    t.type(":reload")
    t.type(":open tests/repl/small.amp")
    t.type(":train", r"step 8/32 |step 32/32 ", r"^trained 32 steps in ", r"^eval acc: ")
    t.type(":train", r"^all 32 steps of the job are done")
    t.type(":nonsense", r"no command :nonsense")
    t.send(":quit\r")
    if t.end() != 0:
        raise Failed("the status after :quit, mistakes or not, is that of a user who has seen them: 0")


def colors():
    """Half blocks in two colours, 24 bits or 256."""
    ramp = ":image arange(64).reshape(8, 8)"
    for environment, first, last in [
        ({"COLORTERM": "truecolor"}, "\x1b[38;2;0;0;0m\x1b[48;2;", "\x1b[38;2;255;255;255m\x1b[48;2;255;255;255m▀\x1b[0m"),
        ({"COLORTERM": "", "TERM": "xterm-256color"}, "\x1b[38;5;232m\x1b[48;5;", "\x1b[38;5;255m\x1b[48;5;255m▀\x1b[0m"),
    ]:
        t = Terminal("repl", NO_COLOR="", **environment)
        t.expect(r"^amp> ")
        t.type(ramp, r"^▀{40}$", r"i64\[8, 8\], black 0, white 63")
        if first not in t.raw or last not in t.raw:
            raise Failed(f"colours of {environment}: {t.raw!r}")
        t.send("\x04")
        t.end()


def narrow():
    """While a run goes on, its line never wraps; at the end it is printed in full, broken between fields."""
    t = Terminal("repl", "tests/repl/small.amp", COLUMNS="40")
    t.expect(r"^amp> ")
    t.type(":train 40", r"loss [0-9.]+\n  acc [0-9.]+  opt.lr 0.01  scale 65536\n  skipped 0$", r"^trained 40 steps")
    t.type(":set foo=1", r"^amp: the program has no setting foo;\n  :set lists them$")
    shown = [part.split("\r\n") for part in t.raw.split("\r\x1b[K")[1:]]
    if len(shown) < 2 or any(len(part[0]) > 39 for part in shown if len(part) == 1):
        raise Failed(f"lines of a run: {shown}")
    t.send("\x04")
    t.end()
    t = Terminal("repl", "tests/repl/small.amp", COLUMNS="30")
    t.expect(r"^amp> ")
    t.type(":hist fc1.weight", r"^ +-?[0-9.]+ ┤█", r"^range: ")
    t.send("\x04")
    t.end()
    t = Terminal("repl", "tests/repl/small.amp", COLUMNS="80")
    t.expect(r"^amp> ")
    start = len(t.seen)
    t.type(":help", r"third input")
    lines = t.seen[start:].split("\n")
    if len(lines) > 24 or max(map(len, lines)) > 80:
        raise Failed(f":help does not fit a terminal: {lines}")
    t.type("optimizer o = SGD(net, lrr=1)", r"^      help: did you mean `lr`\? [^\n]*,$", r"^        \w")
    t.send("\x04")
    t.end()


def keys():
    t = Terminal("repl", "tests/repl/small.amp")
    t.expect(r"^amp> ")
    t.send(":par\t")  # completed and followed by a blank
    t.expect(r":params ")
    t.send("fc1.w\t\r")
    t.expect(r"^fc1.weight +f32\[16, 8\]")
    t.expect(r"^amp> ")
    t.send("net.fc2.b\t")
    t.expect(r"net\.fc2\.bias")
    t.send(".size(0)\r")
    t.expect(r"^int 4$")
    t.expect(r"^amp> ")
    t.send("sigm\t")
    t.expect(r"sigmoid")
    t.send("\x15HID\t\r")  # Ctrl-U deletes the line
    t.expect(r"^int 16$")
    t.expect(r"^amp> ")
    t.send(":open tests/repl\t")  # a folder gets no blank, so the next Tab looks into it
    t.expect(r"tests/repl/$")
    t.send("sm\t")
    t.expect(r"all\.amp ")
    t.send("\x15")
    t.send("net.fc\t\t")  # several completions are listed
    t.expect(r"net\.fc1\.weight +net\.fc1\.bias")
    t.send("\x15")
    t.send(":set opt.weight_d\t")
    t.expect(r"opt\.weight_decay=")
    t.send("\x08\x08=\t")  # behind = Tab completes the current value
    t.expect(r"0\.01 ")
    t.send("\r")
    t.expect(r"^amp> ")
    # an open bracket continues the input; Ctrl-C discards it
    t.send("[1,\r")
    t.expect(r"^\.\.\.> ")
    t.send("2]\r")
    t.expect(r"^list \[1, 2\]$")
    t.expect(r"^amp> ")
    t.send("def f(x) {\r")
    t.expect(r"^\.\.\.> ")
    t.interrupt()
    t.expect(r"\^C\n")
    t.expect(r"^amp> ")
    t.send("half a lin")
    t.interrupt()
    t.expect(r"\^C\n")
    t.expect(r"^amp> ")
    t.type("3 * 3", r"^int 9$")
    t.send("\x10\r")  # Ctrl-P: the previous line
    t.expect(r"^int 9$", "the history")
    t.expect(r"^amp> ")
    # an input of several lines is one entry: two steps back, then it runs again
    t.send("def g(x) {\r")
    t.expect(r"^\.\.\.> ")
    t.send("  return x * 7\r")
    t.expect(r"^\.\.\.> ")
    t.type("}")
    t.type("g(2)", r"^int 14$")
    t.send("\x1b[A\x1b[A")
    t.expect(r"def g\(x\) \{\n  return x \* 7\n\}", "the whole input")
    t.send("\r")
    t.expect(r"^amp> ")
    t.type("g(3)", r"^int 21$")
    # Ctrl-C during training returns to the prompt and keeps the state
    t.type(":set opt.lr=0.002")
    t.send(":train 100000000\r")
    t.expect(r"step [0-9]+/32")
    t.interrupt()
    steps = int(t.expect(r"^interrupted after ([0-9]+) steps?").group(1))
    t.expect(r"^amp> ")
    t.type(f":save {WORK}/c", rf"^saved .* at step {steps}$")
    t.type(":step", rf"step {steps + 1}/32 ")
    # no evaluation follows, unlike at the end of a job
    with open("tests/repl/small.amp", encoding="utf-8") as small, open(WORK + "/long.amp", "w", encoding="utf-8") as long:
        long.write(small.read().replace("epochs=4", "epochs=1000000"))
    t.type(f":open {WORK}/long.amp")
    t.send(":train\r")
    t.expect(r"step [0-9]+/8000000")
    t.interrupt()
    answer = t.expect(r"interrupted (?:after [0-9]+ steps?|in the evaluation)((.|\n)*)^amp> ").group(1)
    if "eval" in answer:
        raise Failed(f"an interrupted training is evaluated:\n{answer}")
    t.send(":time net(ones(512, 8))\r")
    t.interrupt()
    t.expect(r"^amp> ")
    t.type("x" * 3000 + " = 1")  # the prompt line is redrawn many times
    t.type("7 * 7", r"^int 49$")
    t.type("grün", r"error\[E1|unknown name|no part of the language")
    t.type("5 * 5", r"^int 25$")
    t.send("\x04")  # Ctrl-D
    if t.end() != 0:
        raise Failed("the status after Ctrl-D")
    # the next session has the history
    t = Terminal("repl")
    t.expect(r"^amp [0-9.]+, no job")
    t.expect(r"^amp> ")
    t.send("\x123 * \r")  # Ctrl-R searches the history; run the entry that it finds
    t.expect(r"3 \* 3", "a search in the history")
    t.send("\r")
    t.expect(r"^int 9$")
    t.type("6 * 7", r"^int 42$")
    t.send("\x04")
    t.end()
    if os.stat(WORK + "/state/ampc/history").st_mode & 0o077:
        raise Failed("others may read the history")
    # end of input inside of an open bracket, and a hang-up
    t = Terminal("repl")
    t.expect(r"^amp> ")
    t.send("module {\r")
    t.expect(r"^\.\.\.> ")
    t.send("\x04")
    t.expect(r"error\[E")
    t.expect(r"^amp> ")
    os.close(t.fd)  # a hang-up; if it is ignored, the input ends
    if t.wait() not in (0, 130):
        raise Failed("a hang-up ends the session")


def main():
    try:
        for test in (every_command, colors, narrow, keys):
            test()
            print("ok:", test.__name__)
    except Failed as reason:
        print("FAILED:", reason)
        return 1
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    return 0


sys.exit(main())
