#!/usr/bin/env python3
"""Accuracies in 16 bits compared with f32, paired by seed: the 95 % interval of the mean difference.

    seeds.py AMP JOB [--seeds N] [--most SHARE] [--option -DEPOCHS=1 ...] [--out FILE.md]

With one seed, each precision starts with the same weights and the same batches. The test fails unless the intervals of
f16 - f32 and of bf16 - f32 contain 0 and lie between -SHARE and SHARE. The seeds are 1 to N, so none is selected."""
import argparse
import datetime
import math
import re
import statistics
import subprocess
import sys
import time

PRECISIONS = "f32", "f16", "bf16"


def t_density(x, df):
    """The density of Student's t."""
    log = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(log - (df + 1) / 2 * math.log1p(x * x / df))


def t_quantile(share, df, steps=200_000, last=50.0):
    """The x for which Student's t has the probability `share` between -x and x, by the trapezoid rule."""
    width, area, before = last / steps, 0.0, t_density(0.0, df)
    for i in range(1, steps + 1):
        here = t_density(i * width, df)
        area += width * (before + here)  # both sides
        if area >= share:
            return i * width
        before = here
    raise ValueError("too few differences")


def interval(differences):
    mean, n = statistics.fmean(differences), len(differences)
    half = t_quantile(0.95, n - 1) * statistics.stdev(differences) / math.sqrt(n)
    return mean - half, mean, mean + half


def accuracy(arguments, precision, seed):
    command = [arguments.amp, "train", "--device", "cpu", "--quiet", "--seed", str(seed), "--set", f"precision={precision}",
               *arguments.option, arguments.job]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.findall(r"eval acc: *([0-9.]+)", done.stdout + done.stderr)
    if done.returncode or not found:
        sys.exit(f"{' '.join(command)} exited with status {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return float(found[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("amp")
    parser.add_argument("job")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--most", type=float, default=0.003)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--out")
    arguments = parser.parse_args()
    assert abs(t_quantile(0.95, 19) - 2.0930) < 1e-3  # the value in tables
    begin, rows = time.time(), []
    for seed in range(1, arguments.seeds + 1):
        rows.append([accuracy(arguments, precision, seed) for precision in PRECISIONS])
        print(seed, *(f"{a:.4f}" for a in rows[-1]), flush=True)
    lines, good = [], True
    for i, precision in enumerate(PRECISIONS[1:], 1):
        low, mean, high = interval([row[i] - row[0] for row in rows])
        fits = low <= 0 <= high and -arguments.most <= low and high <= arguments.most
        good = good and fits
        lines.append(f"| {precision} - f32 | {100 * mean:+.3f} % | {100 * low:+.3f} % to {100 * high:+.3f} % | "
                     f"{'yes' if fits else 'no'} |")
    text = "\n".join(["| Difference of accuracies | Mean | 95 % interval | 0 in it, and within "
                      f"{100 * arguments.most:.1f} % |", "|---|---|---|---|", *lines, ""])
    print(text)
    if arguments.out:
        write(arguments, rows, text, time.time() - begin)
    sys.exit(not good)


def write(arguments, rows, text, seconds):
    version = subprocess.run([arguments.amp, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    with open(arguments.out, "w", encoding="utf-8") as f:
        f.write(f"# Accuracy in 16 bits and in f32, paired by seed\n\n{datetime.date.today()}, {version}, CPU. "
                f"`tests/models/seeds.py`: {arguments.job} {' '.join(arguments.option)}, seeds 1 to {len(rows)}, each the same "
                f"weights and batches in each precision; {seconds / 60:.0f} minutes in all.\n\n{text}\n"
                "| Seed | f32 | f16 | bf16 |\n|---|---|---|---|\n")
        f.writelines(f"| {i} | " + " | ".join(f"{a:.4f}" for a in row) + " |\n" for i, row in enumerate(rows, 1))


if __name__ == "__main__":
    main()
