#!/usr/bin/env python3
"""Compares metrics that keep statistics with scikit-learn's values in expected.json, with a smaller last batch: in the
JSON of `amp train`, the output of an emitted program, the table, at the prompt and for early stop. Labels out of range.
    metrics.py AMPC AMP
"""
import csv
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from data import binary_data, classes_data, pixels_data, ranked_data

HERE = pathlib.Path(__file__).parent
ampc, amp = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
bad = 0

JOB = """data d() { return npy("x.npy"), npy("y.npy")TARGET }
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
precision PRECISION
train x, y in d() with batch=1, steps=1 { minimize net(ones(1, 1)).sum() with opt }
eval x, y in d() with batch=BATCH {
METRICS
}
"""


def check(what, good, shown=""):
    global bad
    print(f"{'ok' if good else 'FAILED'}: {what} {'' if good else shown}")
    bad += not good


def run(*args, status=0, text=None):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, input=text, timeout=300)
    check(" ".join(pathlib.Path(str(a)).name for a in args[:2]) + f" gives {status}", done.returncode == status,
          done.stdout + done.stderr)
    return done


def npy(path, shape, kind, values):
    code = {"<f4": "f", "<i8": "q"}[kind]
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() +
                     struct.pack(f"<{len(values)}{code}", *values))


def make(folder, x, shape, y, batch, metrics, precision="f32", target=""):
    folder.mkdir(exist_ok=True)
    npy(folder / "x.npy", shape, "<f4", x)
    npy(folder / "y.npy", shape[:1] + shape[2:], "<i8", y)
    text = JOB.replace("BATCH", str(batch)).replace("METRICS", "\n".join(f"  metric {m}" for m in metrics))
    job = folder / "job.amp"
    job.write_text(text.replace("PRECISION", precision).replace("TARGET", target))
    return job


def evaluated(job, *options):
    done = run(amp, "train", "--device", "cpu", "-q", "--json", *options, job)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line["metrics"] for line in lines if line["event"] == "eval"][-1]


def compare(what, got, want, bound=1e-6):
    for name, value in got.items():
        truth = want[name.replace("dice", "f1")]
        if isinstance(truth, list):
            check(f"{what}: {name}", value == truth, f"{value}, scikit-learn has {truth}")
        else:
            check(f"{what}: {name}", abs(value - truth) <= bound * abs(truth), f"{value}, scikit-learn has {truth}")


def averages(logits, *which):
    return [f'{f}_{a} = {f}({logits}, y, "{a}"IGNORE)' for f in ("f1", "iou", "dice") for a in which]


def main(work):
    want = json.loads((HERE / "expected.json").read_text())
    many = ("macro", "micro", "weighted")

    x, y = classes_data()
    metrics = ["matthews = matthews(x, y)", "confusion = confusion(x, y)", "perplexity = perplexity(x, y)"]
    metrics += ["accuracy = accuracy(x, y)", "accuracy_2 = accuracy(x, y, topk=2)"]
    metrics += [m.replace("IGNORE", "") for m in averages("x", *many)]
    for batch in (1, 20, 53):
        job = make(work / "classes", x, [53, 5], y, batch, metrics)
        compare(f"classes, batch {batch}", evaluated(job), want["classes"])
    first = evaluated(job)
    job = make(work / "half", x, [53, 5], y, 20, [m.replace("(x", "(x.to(f16)") for m in metrics], "f16")
    compare("classes in f16", evaluated(job), want["classes"])
    whole = ["confusion = confusion(argmax(x, 1), y, classes=5)", "accuracy = accuracy(argmax(x, 1), y)"]
    compare("predicted classes", evaluated(make(work / "whole", x, [53, 5], y, 20, whole)), want["classes"])

    x, y = binary_data()
    metrics = ["confusion = confusion(x, y)", "matthews = matthews(x, y)", "f1_binary = f1(x, y)"]
    metrics += ["accuracy = accuracy(x, y)"]
    metrics += [m.replace("IGNORE", "") for m in averages("x", "binary", *many)[1:]]
    job = make(work / "binary", x, [53], y, 20, metrics)
    compare("two classes, one logit", evaluated(job), want["binary"])
    job = make(work / "binary", x, [53, 1], y, 20, metrics)
    compare("two classes, one logit [n, 1]", evaluated(job), want["binary"])

    ranks(work, want)
    spread(work, want)

    x, y = pixels_data()
    ignored = [m.replace("IGNORE", ", ignore_index=255") for m in averages("x", *many)]
    ignored += [f"{f} = {f}(x, y, ignore_index=255)" for f in ("confusion", "matthews", "perplexity", "accuracy")]
    ignored += ["accuracy_2 = accuracy(x, y, topk=2, ignore_index=255)"]
    job = make(work / "pixels", x, [7, 3, 5, 6], y, 3, ignored)
    compare("pixels, some ignored", evaluated(job), want["pixels"])
    errors(work, x, y, want["pixels"]["accuracy"])

    told(work, first)
    wrong(work)


def errors(work, x, y, accuracy):
    """Batches of images with other numbers of labels, one of them without any; `1 - accuracy` is a mean over labels, too."""
    x, y = x + [0.0] * 3 * 60, y + [255] * 60
    one = ["accuracy = accuracy(x, y, ignore_index=255)", "error = 1.0 - accuracy(x, y, ignore_index=255)"]
    for batch, precision in ((2, "f32"), (3, "bf16")):
        job = make(work / "errors", x, [9, 3, 5, 6], y, batch, one, precision)
        compare(f"labels of {precision}, batch {batch}", evaluated(job), {"accuracy": accuracy, "error": 1 - accuracy})
    job = make(work / "errors", x[540:], [3, 3, 5, 6], [255] * 90, 1, one)
    check("no accuracy without labels", evaluated(job) == {"accuracy": None, "error": None})


def ranks(work, want):
    """The area is exact if different scores are in different bins; otherwise it is off by at most half of the pairs in a bin."""
    metrics = ["auc = auc(x, y)", "pearson = pearson(x, y.to(f32))"]
    x, y = ranked_data()
    for batch in (1, 20, 53):
        compare(f"ranks, batch {batch}", evaluated(make(work / "ranks", x, [53], y, batch, metrics)), want["ranked"])
    two = [v for s in x for v in (-s / 2, s / 2)]
    pairs = ["auc = auc(x, y)", "pearson = pearson(x[:, 1] - x[:, 0], y.to(f32))"]
    compare("ranks of two logits", evaluated(make(work / "two", two, [53, 2], y, 20, pairs)), want["ranked"])
    compare("ranks in f16", evaluated(make(work / "short", x, [53], y, 20, metrics, "f16")), want["ranked"])
    whole = make(work / "scores", binary_data()[0], [53], y, 20, metrics)
    compare("scores that share bins", evaluated(whole), want["scores"], 1e-3)
    some = [-100 if i % 5 == 0 else v for i, v in enumerate(y)]
    x[::5] = [1e30 * (-1) ** i for i in range(11)]
    ignored = evaluated(make(work / "some", x, [53], some, 20, metrics[:1]))["auc"]
    kept = [(v, t) for v, t in zip(x, some) if t >= 0]
    pairs = [(a, b) for a, t in kept if t for b, other in kept if not other]
    truth = sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)
    check("ignored samples have no rank", abs(ignored - truth) < 1e-9, f"{ignored}, of pairs {truth}")
    for what, wrong, label in (("a label out of range", 0.0, 2), ("a score that is NaN", math.nan, 1)):
        got = evaluated(make(work / "no_rank", [wrong] + x[1:], [53], [label] + y[1:], 20, metrics[:1]))
        check(f"no area of {what}", got["auc"] is None, got)
    lonely = evaluated(make(work / "lonely", x, [53], [1] * 53, 20, metrics))
    check("no area of one class, no correlation of equal numbers", lonely == {"auc": None, "pearson": None}, lonely)


def spread(work, want):
    """Errors of columns; of a target whose mean is k = 10 deviations away from 0; a column of equal targets; a single
    sample. Bound of R^2: half an ulp of f32 for each of 53 additions, times 1 + k^2."""
    for name, (x, y), shape, target, k in (("columns", classes_data(), [53, 5], "0.5 * flip(x, 1) - x + 3.0", 1),
                                           ("far", binary_data(), [53], "2.0 * x + y.to(f32) + 100.0", 10)):
        for batch in (1, 20, 53):
            job = make(work / name, x, shape, y, batch, [f"rmse = rmse(x, {target})", f"r2 = r2(x, {target})"])
            got = evaluated(job)
            compare(f"errors of {name}, batch {batch}", {"rmse": got["rmse"]}, want[name])
            compare(f"errors of {name}, batch {batch}", {"r2": got["r2"]}, want[name], 53 * 2**-24 * (1 + k * k))
    x, y = binary_data()
    equal = ["right = r2(y.to(f32), y.to(f32))", "wrong = r2(x, y.to(f32))", "one = r2(x[:1], x[:1])", "off = r2(x, 2.0 * x + 1e4)"]
    got = evaluated(make(work / "equal", x, [53], [1] * 53, 53, equal))
    check("R^2 of equal targets, of one sample, of targets far off", got == {"right": 1, "wrong": None, "one": None, "off": None}, got)


def told(work, first):
    """The other places where metrics are printed."""
    job = work / "classes" / "job.amp"
    table = work / "log"
    got = run(amp, "train", "--device", "cpu", "-q", "--log-dir", table, "--seed", "1", job).stdout
    matrix = first["confusion"]
    rows = [[int(word) for word in line.split()] for line in got.splitlines() if line.strip()[:1].isdigit()]
    check("the text has the matrix without names", rows == [[i] + row for i, row in enumerate(matrix)], got)
    row = list(csv.DictReader((table / "metrics.csv").open()))[-1]
    check("the table has the matrix", json.loads(row["eval.confusion"]) == matrix, row)
    check("the table has numbers", abs(float(row["eval.matthews"]) - first["matthews"]) < 1e-6, row)
    run(ampc, job, "-o", work / "job.c")
    line = run(ampc, job, "-o", work / "job.c", "--build-line").stdout.splitlines()[-1]
    subprocess.run(line, shell=True, check=True, cwd=job.parent)
    emitted = run(work / "job", "--quiet", "--data-dir", job.parent).stdout
    check("the emitted program prints the same", emitted == got, emitted)
    prompt = run(amp, "repl", job, text=":train\n:eval\n").stdout
    check("the prompt prints the same", got.strip() in prompt, prompt)
    named(work / "named")
    run(amp, "train", "--device", "cpu", "-q", "--save", work / "c", "--keep-best", "1", job)
    check("the judge is the first metric", list(work.glob("c.best-matthews=0.0727*")), list(work.glob("c*")))


def named(folder):
    """A matrix has the names of the target's classes, if its source has names; another target's names do not count."""
    folder.mkdir()
    rows = [("a b", 0), ("é", 1), ("a b", 1), ("c", 0)]
    (folder / "t.csv").write_text("name,other\n" + "".join(f"{name},{k}\n" for name, k in rows))
    job = folder / "job.amp"
    job.write_text("""data d() { return csv("t.csv", "name", classes=true), csv("t.csv", "other", dtype=i64) }
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
train t, k in d() with batch=1, steps=1 { minimize net(ones(1, 1)).sum() with opt }
eval t, k in d() with batch=3 {
  metric named = confusion(t, t, classes=3)
  metric none = confusion(k, k, classes=3)
}
""")
    got = run(amp, "train", "--device", "cpu", "-q", job).stdout
    want = "eval named:\n  true  0  1  2  predicted\n     0  2  0  0  a b\n     1  0  1  0  c\n     2  0  0  1  é\n"
    check("a matrix with names", want in got and "eval none:\n  true  0  1  2  predicted\n     0  2  0  0\n" in got, got)


def modes(work):
    """Which values are better: the function of a metric decides, also through arithmetic, not its name."""
    x, y = classes_data()
    want = {"acc": ("cross_entropy(x, y)", "MIN"), "loss": ("accuracy(x, y)", "MAX"), "wrong": ("1.0 - accuracy(x, y)", "MIN"),
            "both": ("(cross_entropy(x, y) + 0.5 * mse_loss(x, x)) / 2", "MIN"), "bpb": ("exp(cross_entropy(x, y)) * 100", "MIN"),
            "less": ("-cross_entropy(x, y)", "MAX"), "mixed": ("cross_entropy(x, y) + accuracy(x, y)", None),
            "ratio": ("cross_entropy(x, y) / x.mean()", None), "error": ("x.mean()", None), "fid": ('x.mean() with mode="max"', "MAX"),
            "over": ('accuracy(x, y) with mode="min"', "MIN"), "ppl": ('perplexity(x, y)', None), "f1": ('f1(x, y, "macro")', None)}
    job = make(work / "modes", x, [53, 5], y, 20, [f"{name} = {of}" for name, (of, mode) in want.items()])
    text = run(ampc, job, "-o", "/dev/stdout").stdout
    got = {name: re.search(r"\{.name = \"" + name + r"\".*?(?:\.mode = AMPC_MODE_(\w+))?\}", text)[1] for name in want}
    check("the modes of metrics", got == {name: mode for name, (_, mode) in want.items()}, got)


def wrong(work):
    """The loader reports a label out of range, the device one that the job computes, the matrix a prediction."""
    x, y = classes_data()
    y[17] = 5
    made = make(work / "wrong", x, [53, 5], y, 20, ['f1 = f1(x, y, "macro")', "all = confusion(x, y)"])
    done = run(amp, "train", "--device", "cpu", "-q", made, status=3)
    check("the loader reports it", "sample 17 is 5, expected 0 to 4" in done.stderr and "classes of " in done.stderr, done.stderr)
    made = make(work / "wrong", x, [53, 5], y, 20, ['f1 = f1(x, y, "macro")'], target=" * 1")
    done = run(amp, "train", "--device", "cpu", "-q", made, status=5)
    check("the run reports it", "element [17] of the labels is 5, expected 0 to 4 (classes of f1" in done.stderr, done.stderr)
    x, y = classes_data()
    made = make(work / "wrong", x, [53, 5], y, 53, ["all = confusion(argmax(x, 1) * 2, y, classes=5)"])
    none = 53 - sum(map(sum, evaluated(made)["all"]))
    shown = run(amp, "train", "--device", "cpu", "-q", made).stdout
    check("the matrix reports predictions", none and f"and {none} labels or predictions that are no class" in shown, shown)
    y = [255] * 53
    made = make(work / "none", x, [53, 5], y, 20, ['f1 = f1(x, y, "macro", ignore_index=255)'])
    check("no f1 without samples", evaluated(made)["f1"] is None)


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder))
sys.exit(bad > 0)
