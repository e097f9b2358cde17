#!/usr/bin/env python3
"""Loss, accuracy, bytes and time of updates with moments in 8 bits, compared with f32, paired by seed.

    bench/moments8.py AMP AMPC [--seeds N] [--job FILE.amp] [--option -DEPOCHS=4 ...] [--out FILE.md]

Each variant is the job with another `precision` clause. With one seed, each has the same initial values, batches and
dropout. The seeds are 1 to N, so none is selected. Losses do not depend on the load of the machine; times do."""
import argparse
import datetime
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from weights16 import ROOT, interval, run  # pylint: disable=wrong-import-position

VARIANTS = {"f32": "f32", "bf16": "f32 { moments(bf16) }", "8 bits": "f32 { moments(u8) }"}
STATE = re.compile(r"^ *([0-9,]+)  (?:scales of )?optimizer state", re.M)
WEIGHTS = re.compile(r"^ *([0-9,]+)  weights", re.M)
UPDATE = """data points(n: int) {{ return synthetic(n, [2048]), synthetic(n, [2048]) }}
model net = Linear(2048, 2048)
optimizer opt = AdamW(net, lr=1e-3)
precision {}
train x, y in points(64) with batch=4, epochs=4 {{ minimize mse_loss(net(x), y) with opt }}
"""


def results(arguments, job, seed):
    """Mean loss of the last epoch's test, and its accuracy."""
    text = run([arguments.amp, "train", "--device", "cpu", "--quiet", "--seed", str(seed), *arguments.option, job])
    return [float(re.findall(rf"eval.* {name}: *([0-9.]+)", text)[-1]) for name in ("loss", "acc")]


def count(pattern, text):
    return sum(int(n.replace(",", "")) for n in pattern.findall(text))


def jobs(folder, path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = text.replace("{ metric acc = accuracy(net(image), label) }",
                        "{ logits = net(image); metric acc = accuracy(logits, label); metric loss = cross_entropy(logits, label) }")
    for i, (name, clause) in enumerate(VARIANTS.items()):
        out = os.path.join(folder, f"{i}.amp")
        with open(out, "w", encoding="utf-8") as f:
            f.write(re.sub(r"^precision .*$", lambda _: f"precision {clause}", text, count=1, flags=re.M))
        yield name, out


def update_ms(amp, folder, clause):
    """The shortest of five medians: other work on the machine only adds time."""
    path = os.path.join(folder, "update.amp")
    with open(path, "w", encoding="utf-8") as f:
        f.write(UPDATE.format(clause))
    os.environ["OMP_NUM_THREADS"] = "1"
    found = [re.search(r"opt_adam_update .*?optimizer +([0-9.]+) (us|ms)", run([amp, "profile", "--device", "cpu", path]))
             for _ in range(5)]
    del os.environ["OMP_NUM_THREADS"]
    return min(float(m[1]) / (1000 if m[2] == "us" else 1) for m in found)


def report(rows, bytes_of, times, path, version):
    lines = [f"# Moments in 8 bits\n\n{datetime.date.today()}, {version}, CPU. `bench/moments8.py`: {path}, seeds 1 to "
             f"{len(rows)}. Moments: bytes per weight, with scales and padding. Update: AdamW of 4.2 million weights, "
             "one thread, the shortest of five medians.\n",
             "| Moments | `precision` | Bytes per weight | Test loss | Difference to f32 | 95 % interval | Accuracy | "
             "Difference in points | 95 % interval | Update |", "|---" * 10 + "|"]
    for i, name in enumerate(VARIANTS):
        cells = [name, f"`{VARIANTS[name]}`", f"{bytes_of[name]:.2f}"]
        for k, times_100 in ((0, 1), (1, 100)):
            low, mean, high = interval([row[i][k] - row[0][k] for row in rows]) if i else (0, 0, 0)
            cells.append(f"{times_100 * sum(row[i][k] for row in rows) / len(rows):.{4 - 2 * k}f}" + " %" * k)
            cells += [f"{times_100 * mean:+.4f}", f"{times_100 * low:+.4f} to {times_100 * high:+.4f}"] if i else ["-", "-"]
        lines.append("| " + " | ".join([*cells, f"{times[name]:.1f} ms"]) + " |")
    lines += ["", "| Seed | " + " | ".join(f"{name}: loss, accuracy" for name in VARIANTS) + " |", "|---" * (len(VARIANTS) + 1) + "|"]
    lines += [f"| {i} | " + " | ".join(f"{loss:.4f}, {acc:.4f}" for loss, acc in row) + " |" for i, row in enumerate(rows, 1)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("amp")
    parser.add_argument("ampc")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--job", default="models/fashion_mnist/mlp.amp")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--out")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        variants = dict(jobs(folder, os.path.join(ROOT, arguments.job)))
        memory = {name: run([arguments.ampc, "--emit=memory", "--target=cpu", job]) for name, job in variants.items()}
        bytes_of = {name: 4 * count(STATE, text) / count(WEIGHTS, text) for name, text in memory.items()}
        times = {name: update_ms(arguments.amp, folder, clause) for name, clause in VARIANTS.items()}
        for seed in range(1, arguments.seeds + 1):
            rows.append([results(arguments, job, seed) for job in variants.values()])
            print(seed, rows[-1], flush=True)
    version = run([arguments.amp, "--version"]).split("\n", maxsplit=1)[0]
    text = report(rows, bytes_of, times, " ".join([arguments.job, *arguments.option]), version)
    print(text)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
