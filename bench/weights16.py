#!/usr/bin/env python3
"""Accuracy and bytes of state without f32 masters, compared with f32, paired by seed.

    bench/weights16.py AMP AMPC [--seeds N] [--job FILE.amp] [--option -DEPOCHS=4 ...] [--out FILE.md]

Each variant is the job with another `precision` clause. With one seed, each starts with the same f32 initial values,
which bf16 weights round, and has the same batches and dropout. The seeds are 1 to N, so none is selected. Accuracy
does not depend on the load of the machine."""
import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "models"))
from seeds import interval  # pylint: disable=wrong-import-position

MOST = 0.003  # the interval of the difference to f32 should lie within this
VARIANTS = {
    "f32": "f32",
    "bf16, f32 masters": "bf16",
    "stochastic": "bf16 { params(bf16, masters=false); moments(bf16) }",
    "kahan": 'bf16 { params(bf16, masters=false, rounding="kahan"); moments(bf16) }',
    "nearest": 'bf16 { params(bf16, masters=false, rounding="nearest") }',
    "moments nearest": 'bf16 { params(bf16, masters=false); moments(bf16, rounding="nearest") }',
}
STATE = re.compile(r"^ *([0-9,]+)  (weights|bf16 copies|rounding errors|optimizer state)", re.M)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} exited with status {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return done.stdout + done.stderr


def accuracy(arguments, job, seed):
    text = run([arguments.amp, "train", "--device", "cpu", "--quiet", "--seed", str(seed), *arguments.option, job])
    return float(re.findall(r"eval acc: *([0-9.]+)", text)[-1])


def state(ampc, job):
    """Bytes of weights, copies, residues and moments."""
    return sum(int(n.replace(",", "")) for n, _ in STATE.findall(run([ampc, "--emit=memory", "--target=cpu", job])))


def jobs(folder, path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    out = {}
    for i, (name, clause) in enumerate(VARIANTS.items()):
        out[name] = os.path.join(folder, f"{i}.amp")
        with open(out[name], "w", encoding="utf-8") as f:
            f.write(re.sub(r"^precision .*$", lambda _: f"precision {clause}", text, count=1, flags=re.M))
    return out


def report(rows, size, path, seconds, version):
    names, base = list(VARIANTS), list(VARIANTS).index("f32")
    lines = [f"# Accuracy and state without f32 masters\n\n{datetime.date.today()}, {version}, CPU. `bench/weights16.py`: "
             f"{path}, seeds 1 to {len(rows)}; {seconds / 60:.0f} minutes in all. State: weights, 16-bit copies, residues "
             "and moments; gradients are f32 in all variants.\n",
             "| Variant | `precision` | State, bytes per weight | Accuracy | Difference to f32 | 95 % interval | Within "
             f"{100 * MOST:.1f} points |", "|---|---|---|---|---|---|---|"]
    for i, name in enumerate(names):
        low, mean, high = interval([row[i] - row[base] for row in rows]) if i != base else (0, 0, 0)
        fits = "-" if i == base else "yes" if -MOST <= low and high <= MOST else "no"
        mean_of = sum(row[i] for row in rows) / len(rows)
        bounds = "-" if i == base else f"{100 * low:+.3f} to {100 * high:+.3f}"
        lines.append(f"| {name} | `{VARIANTS[name]}` | {4 * size[name] / weights(size):.0f} | {100 * mean_of:.2f} % | "
                     f"{100 * mean:+.3f} | {bounds} | {fits} |")
    lines += ["", "| Seed | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {i} | " + " | ".join(f"{a:.4f}" for a in row) + " |" for i, row in enumerate(rows, 1)]
    return "\n".join(lines) + "\n"


def weights(size):
    return size["f32"] / 3  # AdamW in f32: weights and two moments of 4 bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("amp")
    parser.add_argument("ampc")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--job", default="models/fashion_mnist/mlp.amp")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--out")
    arguments = parser.parse_args()
    begin, rows = time.time(), []
    with tempfile.TemporaryDirectory() as folder:
        variants = jobs(folder, os.path.join(ROOT, arguments.job))
        size = {name: state(arguments.ampc, job) for name, job in variants.items()}
        for seed in range(1, arguments.seeds + 1):
            rows.append([accuracy(arguments, job, seed) for job in variants.values()])
            print(seed, *(f"{a:.4f}" for a in rows[-1]), flush=True)
    version = run([arguments.amp, "--version"]).split("\n", maxsplit=1)[0]
    text = report(rows, size, " ".join([arguments.job, *arguments.option]), time.time() - begin, version)
    print(text)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
