#!/usr/bin/env python3
"""Runs that are lost for a planted cause, and what `amp train` says about them.

The head of each job tells what must be true of the diagnosis:
  # cause: NAME        the most likely cause that it names; `none`: the run is not lost
  # says: PATTERN      it contains this
  # cure: OLD => NEW   the job with this change, which the diagnosis advises, is not lost
If the most likely cause advises `--set SETTING=VALUE` or `clip_norm=VALUE`, the run with it must not be lost either.
usage: run.py AMP [NAME...]   NAME: a job; without names, all
"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NAN, INF = float("nan"), float("inf")


def npy(name, rows, typ="f"):
    """Writes rows of equal length; a row may hold rows."""
    shape = [len(rows)]
    flat = rows
    while isinstance(flat[0], list):
        shape.append(len(flat[0]))
        flat = [x for row in flat for x in row]
    kind = {"f": "<f4", "H": "<u2"}[typ]
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack(f"<{len(flat)}{typ}", *flat))


def planted(n, width, sample=-1, value=0.0):
    """Returns n rows of ordinary numbers; one element of `sample` is the value."""
    rows = [[((7 * i + 3 * k) % 11 - 5) / 4 for k in range(width)] for i in range(n)]
    if sample >= 0:
        rows[sample][1] = value
    return rows


def make_data():
    npy("nan.npy", planted(32, 4, 9, NAN))
    npy("inf.npy", planted(32, 4, 21, -INF))
    npy("huge.npy", planted(32, 4, 13, 1e30))
    npy("column.npy", [row[:3] + [3e5 + 1e5 * row[3]] + row[4:] for row in planted(32, 8)])
    npy("raw.npy", [[(9973 * (4 * i + k)) % 65536 for k in range(4)] for i in range(32)])
    npy("zero.npy", [row if i % 8 else [0.0] * 4 for i, row in enumerate(planted(32, 4))])
    npy("constant.npy", [row[:3] + [1.0] for row in planted(32, 4)])
    npy("dead.npy", [row[:3] + [0.0] for row in planted(32, 4)])
    # a scan multiplies by the first number 24 times: about 0.9 each time, in one batch 3
    npy("steps.npy", [[[3.0 if 32 <= i < 40 else 0.8 + i % 5 / 20, i % 3 / 2] for _ in range(24)] for i in range(64)])
    weights = {"weight": [0.1, NAN, 0.2, 0.3], "bias": [0.0]}
    head, at = {}, 0
    for name, values in weights.items():
        shape = [1, 4] if name == "weight" else [1]
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * len(values)]}
        at += 4 * len(values)
    text = json.dumps(head).encode()
    with open("nan.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for values in weights.values():
            f.write(struct.pack(f"<{len(values)}f", *values))


def train(amp, job, *options):
    command = [amp, "train", "-q", "--device", "cpu", "--data-dir", ".", *options, job]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr


def check(amp, job):
    """Returns what is wrong, or an empty text."""
    head = open(job).read()
    cause = re.search(r"^# cause: (.*)$", head, re.M)[1]
    status, said = train(amp, job)
    if cause == "none":
        return "" if status == 0 else f"the control is lost\n{said}"
    if status != 5:
        return f"exit status {status}, not 5\n{said}"
    found = re.search(r"^  most likely cause: (.*)$", said, re.M)
    if not found or found[1] != cause:
        return f"expected the cause {cause}\n{said}"
    said_flat = re.sub(r"\n    +", " ", said)
    for pattern in re.findall(r"^# says: (.*)$", head, re.M):
        if not re.search(pattern, said_flat):
            return f'no "{pattern}" in\n{said}'
    for before, after in re.findall(r"mean loss is (\S+) in the first half and (\S+) in", said_flat):
        if float(after) > 1.2 * float(before):  # the data are random
            return f"the loss rises with the advised rate\n{said}"
    cured = "cured_" + os.path.basename(job)
    advice = re.search(r"likely cause: [^\n]* help: (?:--set ([^ :,]+)|add (clip_norm=[^ ]+))", said_flat)
    change = re.search(r"^# cure: (.*?) => (.*)$", head, re.M)
    text = head[head.index("\ndata") :]
    options = []
    if change:
        text = text.replace(change[1], change[2])
    elif advice and advice[1]:
        options = ["--set", advice[1]]
    elif advice:
        text = text.replace(" lr=", f" {advice[2]}, lr=")
    else:
        return ""
    with open(cured, "w") as f:
        f.write(text)
    status, said_then = train(amp, cured, *options)
    if status:
        return f"it is lost with its cure, too\n{said}\n{said_then}"
    return ""


def check_prompt(amp):
    """The prompt says the same, and what it advises works. Returns what is wrong, or an empty text."""
    shutil.copy(f"{HERE}/rate_sgd.amp", "prompt.amp")

    def ask(*lines):
        done = subprocess.run([amp, "repl", "--device", "cpu", "prompt.amp"], input="\n".join(lines), text=True,
                              timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return re.sub(r"\n    +", " ", done.stdout)

    said = ask(":train")
    advice = re.search(r"likely cause: learning rate .* help: (:open prompt.amp), then (:set opt.lr=[^ ]+):", said)
    if not advice:
        return said
    said = ask(":train", advice[1], advice[2], ":train")
    return "" if said.count("likely cause") == 1 and "trained 80 steps" in said else said


def check_interrupt(amp):
    """Ctrl-C ends the repetition of a long run. Returns what is wrong, or an empty text."""
    text = open(f"{HERE}/rate_later.amp").read()
    with open("long.amp", "w") as f:
        f.write(text.replace("[400]", "[60000]").replace("epochs=200", "epochs=20000"))
    command = [amp, "train", "-q", "--device", "cpu", "long.amp"]
    # a shell may have made this script ignore Ctrl-C, and the run would inherit that
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as run:
        said = run.stderr.readline()
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        said += run.stderr.read()
    ended = "(--save-every)" in said or "no diagnosis: interrupted" in said  # the latter if it still compiles
    return "" if run.returncode == 5 and ended else said


def main():
    amp = os.path.abspath(sys.argv[1])
    jobs = sorted(glob.glob(f"{HERE}/*.amp"))
    if sys.argv[2:]:
        jobs = [f"{HERE}/{name}.amp" for name in sys.argv[2:]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_data()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = list(pool.map(lambda job: check(amp, job), jobs))
        if not sys.argv[2:]:
            jobs += ["the prompt", "Ctrl-C"]
            wrong += [check_prompt(amp), check_interrupt(amp)]
        os.chdir("/")
    for job, why in zip(jobs, wrong):
        print(f"{'FAILED' if why else 'ok'}: {os.path.basename(job)}{': ' + why if why else ''}")
    sys.exit(1 if any(wrong) else 0)


if __name__ == "__main__":
    main()
