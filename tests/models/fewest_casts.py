#!/usr/bin/env python3
"""fewest_casts.py AMPC AMP [--losses]

With `fewest_casts(true)`, casts move at most as many bytes as with autocast in every model, and much fewer in BERT-Large and
ViT-B/16.

--losses: instead, trains a small BERT for 20 steps in f32, and in f16 and bf16 with both policies. Each loss differs from that
in f32 by at most the unit roundoff of the type, relative to the loss. Reason: a value that is rounded once has an error of up
to the unit roundoff; a loss is a mean over 1,000 tokens, in which roundings of either sign mostly cancel. So this bound is 50
times what was measured, and still detects a sum or a norm that has lost its f32."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FEWEST = ["--set", "fewest_casts=true"]
GAINS = {"bert_large/bert_large.amp": 0.7, "vit_b_16/vit_b_16.amp": 0.1}  # of autocast's bytes, at most
ROUNDOFF = {"f16": 2.0 ** -11, "bf16": 2.0 ** -8}
SMALL = """VOCAB=257 WIDTH=128 DEPTH=8 HEADS=4 LENGTH=64 SAMPLES=512 ACCUMULATE=1 STEPS=40""".split()


def cast_bytes(ampc, job, *options):
    done = subprocess.run([ampc, "--explain=json", *options, job], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{job}: status {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout).get("cast_bytes", 0)


def compare_bytes(ampc):
    wrong = 0
    for job in sorted(glob.glob(os.path.join(ROOT, "models", "*", "*.amp"))):
        autocast, fewest = (cast_bytes(ampc, job, "--set", "precision=f16", *options) for options in ([], FEWEST))
        most = autocast * next((g for name, g in GAINS.items() if job.endswith(name)), 1)
        if fewest > most:
            wrong += 1
            print(f"FAIL {job}: casts move {fewest} bytes, autocast's {autocast}; at most {most:.0f} are allowed")
    return wrong


def write_pairs(folder):
    import numpy as np
    rng, n, length = np.random.default_rng(0), 512, 64
    ids, segment, follows = np.zeros((n, length), np.int32), np.zeros((n, length), np.uint8), rng.integers(0, 2, n)
    for i in range(n):  # arithmetic sequences; the second text continues the first one, or is random
        step = rng.integers(1, 4)
        first = (rng.integers(1, 90) + step * np.arange(30)) % 90 + 1
        second = (first[-1] + step * np.arange(1, 31)) % 90 + 1 if follows[i] else rng.integers(1, 90, 30)
        ids[i, :63] = np.concatenate([[101], first, [102], second, [102]])
        segment[i, 32:63] = 1
    for split in ("train", "val"):
        for name, data in (("ids", ids), ("segment", segment), ("next", follows.astype(np.int64))):
            np.save(os.path.join(folder, f"{split}_{name}.npy"), data)


def losses(amp, folder, *options):
    sizes = [word for s in SMALL for word in ("-D", s)]
    done = subprocess.run([amp, "train", os.path.join(ROOT, "models", "bert_large", "bert_large.amp"), "--data-dir", folder, *sizes,
                           "--set", "train.log=1", "--steps", "20", "--json", *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"amp train {options}: status {done.returncode}: {done.stderr[-500:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [line["metrics"]["loss"] for line in lines if line["event"] == "step"]


def compare_losses(amp):
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="ampc-fewest-") as folder:
        write_pairs(folder)
        want = losses(amp, folder, "--set", "precision=f32")
        for precision, bound in ROUNDOFF.items():
            for name, options in (("autocast", []), ("fewest_casts", FEWEST)):
                got = losses(amp, folder, "--set", f"precision={precision}", *options)
                most = max(abs(a - b) / b for a, b in zip(got, want, strict=True))
                print(f"{precision} {name}: losses differ from f32 by at most {most:.1e}; allowed {bound:.1e}")
                wrong += not most <= bound
    return wrong


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("ampc")
    reader.add_argument("amp")
    reader.add_argument("--losses", action="store_true")
    options = reader.parse_args()
    return 1 if (compare_losses(options.amp) if options.losses else compare_bytes(options.ampc)) else 0


if __name__ == "__main__":
    sys.exit(main())
