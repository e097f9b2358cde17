#!/usr/bin/env python3
"""Tests the curves of `amp report --log`: one run, runs beside each other, long tables and damaged ones. What the page
shows is compared with the tables, which this test reads in its own way.

usage: tests/report/runs.py AMP [--pictures DIR]   without Chromium, only the data of the pages are tested
"""
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import chromium
from report import check, check_looks, data_of, failures, run

JOB = """data samples() { return synthetic(256, [8]), synthetic(256, [], dtype=i64, low=0, high=4) }
module Net() { fc = Linear(8, 4)
  def forward(x) { return fc(x) } }
model net = Net()
optimizer opt = SGD(net, lr=0.1)
precision f16
train x, y in samples() with batch=32, epochs=3, log=1 { minimize cross_entropy(net(x), y) with opt }
eval x, y in samples() with batch=64 {
  metric loss = cross_entropy(net(x), y)
  metric acc = accuracy(net(x), y)
}
"""


def table(folder):
    """{column: [(step, value), ..]} of the numbers in metrics.csv."""
    out = {}
    with open(os.path.join(folder, "metrics.csv"), encoding="utf-8") as f:
        for row in csv.DictReader(f):
            for name, text in row.items():
                if text and name != "block":
                    out.setdefault(name, []).append((int(row["step"]), float(text)))
    return out


def points(page, log, name):
    column = next(c for c in data_of(page)[1]["logs"][log]["columns"] if c["name"] == name)
    flat = column["points"]
    return column, list(zip(flat[::3], flat[2::3]))


def near(a, b):
    return a[0] == b[0] and math.isclose(a[1], b[1], rel_tol=1e-5)


def number(v):
    """As the page prints numbers from 0.001 to 1000."""
    return f"{float(f'{v:.4g}'):g}"


def make_runs(amp, work):
    """Two runs with different settings and columns; the second one has no run.json after a while."""
    with open(os.path.join(work, "job.amp"), "w", encoding="utf-8") as f:
        f.write(JOB)
    run(amp, "train", "--device", "cpu", "--quiet", "--log-dir", "first", "job.amp", cwd=work)
    text = JOB.replace("metric acc", "metric acc3 = 3.0 * cross_entropy(net(x), y)\n  metric acc")
    with open(os.path.join(work, "job.amp"), "w", encoding="utf-8") as f:
        f.write(text)
    run(amp, "train", "--device", "cpu", "--quiet", "--log-dir", "sub/second", "--set", "precision=bf16", "--set",
        "opt.lr=0.05", "--seed", "7", "--limit-batches", "8", "--max-time", "1.5m", "job.amp", cwd=work)
    with open(os.path.join(work, "sub/second/run.json"), encoding="utf-8") as f:
        found = json.load(f)
    wanted = {"run": "job.amp", "precision": "bf16", "device": "cpu", "seed": 7, "resumed at step": 0, "const": {},
              "optimizers": {"opt": "SGD"}, "options": {"max-time": 90, "limit-batches": 8}, "blocks": {"train": {"batch": 32, "epochs": 3}, "eval": {"batch": 64}}}
    check({k: found.get(k) for k in wanted} == wanted, f"run.json: {found}")
    check(math.isclose(found["settings"]["opt.lr"], 0.05, rel_tol=1e-5), f"settings of run.json: {found['settings']}")


def check_one(b, amp, work, pictures):
    """Train and eval beside each other, losses first; values at the end and best values; no chart of constants."""
    page, log = os.path.join(work, "one.html"), os.path.join(work, "first")
    told = run(amp, "report", "--gpu", "cpu", "--log", log, "-o", page, os.path.join(work, "job.amp"))
    check("; times are predictions for this CPU, " in told, f"the device: {told}")
    wanted = table(log)
    for name in ("train.loss", "eval.loss", "eval.acc"):
        got = points(page, 0, name)[1]
        check(len(got) == len(wanted[name]) and all(map(near, got, wanted[name])), f"{name}: {got}, not {wanted[name]}")
    if not b:
        return
    check_looks(b, "run", page, pictures)
    check(b.value("document.querySelector('main > section').id") == "run", "the run is not first")
    check("the CPU of the machine that made this page" in b.value("document.getElementById('top').textContent"), "the device on the page")
    titles = b.value("[...document.querySelectorAll('#run figure h3')].map(e => e.textContent)")
    norms = [f"norm of the {what}" for what in ("gradients", "weights", "updates")]
    order = ["loss", "acc", *norms, "training speed, samples per second"] # the time of waiting may be constant
    check(titles[:len(order)] == order, f"charts: {titles}")
    legend = b.value("document.querySelector('#run figure .legend').innerText").replace("\n", " ")
    for block in ("train", "eval"):
        series = wanted[block + ".loss"]
        best = min(series, key=lambda p: p[1])
        end = f"{block} {number(series[-1][1])} at the end" + ("" if best is series[-1] else f", best {number(best[1])} at step {best[0]}")
        check(end in legend, f"legend: {legend}, not {end}")
    check("learning rate 0.1" in b.value("document.getElementById('run').textContent"), "constants are not named")


def check_two(b, amp, work, pictures):
    """Without a job: metrics, the settings that differ, curves by step and by time."""
    page = os.path.join(work, "runs.html")
    run(amp, "report", "--log", "first", "--log", "sub/second/", cwd=work)
    if not b:
        return
    check_looks(b, "runs", page, pictures)
    first, second = table(os.path.join(work, "first")), table(os.path.join(work, "sub/second"))
    rows = {r[0]: r[1:] for r in b.value("[...document.querySelectorAll('table.runs')].slice(0, 2).flatMap(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent)))")}
    for name, pick in (("train.loss", min), ("eval.loss", min), ("eval.acc", max), ("eval.acc3", min)):
        for i, log in enumerate((first, second)):
            label, series = name.replace(".", " "), log.get(name)
            best = series and pick(series, key=lambda p: (p[1], -p[0] if pick is max else p[0]))
            for which, p in (("best", best), ("last", series and series[-1])):
                text = f"{number(p[1])} at step {p[0]}" if p else "-"
                check(rows[f"{label}, {which}"][i] == text, f"{label}, {which} of run {i}: {rows[f'{label}, {which}'][i]}, not {text}")
    settings = {k: v for k, v in rows.items() if ", " not in k}
    check(settings == {"precision": ["f16", "bf16"], "seed": ["0", "7"], "opt.lr": ["0.1", "0.05"],
                        "--max-time": ["-", "90"], "--limit-batches": ["-", "8"]}, f"settings: {settings}")
    titles = b.value("[...document.querySelectorAll('#run figure h3')].map(e => e.textContent)")
    check(titles[:4] == ["loss (train)", "loss (eval)", "acc3 (eval)", "acc (eval)"], f"charts: {titles}")
    check(b.value("document.querySelector('#run figure').querySelectorAll('.curve:not(.thin)').length") == 2, "curves of two runs")
    check(b.value("document.querySelectorAll('#run figure')[2].querySelector('.legend b').textContent") == "second ", "a column of one run")
    path = "document.querySelector('#run .curve').getAttribute('d')"
    by_step = b.value(path)
    b.value("document.querySelectorAll('#run .tool')[1].id = 'time'")
    b.click("#time")
    check(b.value(path) != by_step, "the axis of time")
    b.value("document.querySelector('#run svg').focus()")
    b.key("End")
    wanted = f"first {number(first['train.loss'][-1][1])} at step 24"
    check(wanted in b.value("document.querySelector('#run .reading').textContent"), f"keyboard: not {wanted}")


def check_best(b, amp, work):
    """run.json says which values of a metric are better; its name says nothing. Without that, no value is the best."""
    for name in ("better", "worse"):
        os.mkdir(os.path.join(work, name))
        with open(os.path.join(work, name, "metrics.csv"), "w", encoding="utf-8") as f:
            f.write(f"step,block,errors.acc,errors.loss\n1,errors,0.5,4\n2,errors,{0.9 if name == 'better' else 0.7},3\n")
        with open(os.path.join(work, name, "run.json"), "w", encoding="utf-8") as f:
            f.write('{"run": "a.amp", "modes": {"errors.acc": "max"}}')
    run(amp, "report", "--log", "better", "--log", "worse", cwd=work)
    if b:
        b.open(os.path.join(work, "runs.html"))
        row = b.value("[...document.querySelector('table.runs').tBodies[0].rows[0].cells].map(c => c.innerHTML.replace(/<.?span[^>]*>/g, ''))")
        check(row == ["<b>errors acc</b>, best", "<b>0.9</b> at step 2", "0.7 at step 2"], f"best of runs: {row}")
        rows = b.value("[...document.querySelector('table.runs').tBodies[0].rows].map(r => r.cells[0].textContent)")
        check(rows == ["errors acc, best", "errors acc, last", "errors loss, last"], f"best of known modes only: {rows}")


def check_long(b, amp, work):
    """Of a long table: little memory; spikes, the first and the last value of each column; means. The run was resumed."""
    log, page, draw = os.path.join(work, "long"), os.path.join(work, "long.html"), random.Random(1)
    os.mkdir(log)
    steps = 100_000
    with open(os.path.join(log, "metrics.csv"), "w", encoding="utf-8") as f:
        f.write("step,epoch,block,seconds,norm/a,train.loss\n")
        for i in range(1, steps + 1):
            f.write(f"{i},1,train,{(i - 1) % 60_000 / 100:.3f},{draw.gauss(0, 1):.9g},{9.0 if i == 77_777 else 1 + draw.random():.9g}\n")
            if i == 50_000:
                f.write(f"{i},1,train,499.99,nan,-inf\n")
        f.write("100001,1,train,400,0.5,3.")  # the run is writing this row
    done = subprocess.run(["bash", "-c", 'ulimit -v 200000; exec "$@"', "-", amp, "report", "--log", log, "-o", page],
                          capture_output=True, text=True)
    check(done.returncode == 0, f"a long table: {done}")
    wanted = {k: [p for p in v if math.isfinite(p[1])] for k, v in table(log).items()}
    for name in ("norm/a", "train.loss"):
        column, got = points(page, 0, name)
        all_points = [p for p in wanted[name] if p[0] <= steps]
        check(column["count"] == steps and column["bad"] == 1 and column["first_bad"] == 50_000, f"{name}: {column['count']}")
        check(200 < len(got) < 600, f"{name}: {len(got)} points")
        for what, p in (("first", all_points[0]), ("last", all_points[-1]), ("lowest", min(all_points, key=lambda p: p[1])),
                        ("highest", max(all_points, key=lambda p: p[1]))):
            check(any(near(p, q) for q in got), f"{name}: the {what} point {p} is lost")
        check([p[0] for p in got] == sorted(p[0] for p in got), f"{name}: the order of steps")
        seconds = column["points"][1::3]
        check(seconds == sorted(seconds) and math.isclose(seconds[-1], 999.98, rel_tol=1e-5), f"{name}: seconds of a resumed run")
        means, middle = column["means"][2::3], {"norm/a": 0, "train.loss": 1.5}[name]
        check(len(means) > 100 and all(abs(v - middle) < 0.4 for v in means), f"{name}: means {means}")
    if b:
        b.open(page)
        heights = b.value("document.querySelector('#run .curve:not(.thin)').getAttribute('d').match(/ [0-9.]+/g).map(Number)")
        check(max(heights) - min(heights) < 5, f"a smooth curve from {min(heights)} to {max(heights)}")


def check_damaged(b, amp, work):
    """Damaged files get an answer, and odd ones a page without errors."""
    log = os.path.join(work, "odd")
    os.mkdir(log)
    nest = json.dumps({"run": {"a": [1, {"b": None}]}, "<b>": "<script>document.documentElement.dataset.hacked = 1</script>",
                       "precision": 5, "__proto__": {"x": 1}})
    for rows, settings, why in (
            ("", None, "not a table that --log-dir writes"), ("a,b\n1,2\n", None, "not a table that --log-dir writes"),
            ("step,x\nfoo,1\n", None, "metrics.csv, line 2: the step is no number"),
            ("step,x\n1,2,3\n", None, "line 2: more fields than the first line"),
            ("step" + ",x" * 5000 + "\n", None, "more than 4096 columns"),
            ("step,x\n1,1\n", "garbage", "run.json: not the settings of a run: '[' or '{' expected"),
            ("step,x\n1,1\n", "[1]", "run.json: not the settings of a run: no JSON object"),
            ("step,x\n1,1\n", "[" * 5000, "maximum parsing depth"), ("step,x\n1,1\n", " " * 2_000_000, "more than 1048576 bytes"),
            ("step\n", None, None), ("step,train.loss\n1,nan\n2,inf\n", None, None), ("step,x\n1,abc\n2,[[1]]\n", None, None),
            ("step,x\n-5,1e308\n5,-1e308\n", None, None), ('step,block,"a,b.<b>"\n1,"a,b",3\n2,"a,b",4\n', nest, None)):
        with open(os.path.join(log, "metrics.csv"), "w", encoding="utf-8") as f:
            f.write(rows)
        if os.path.exists(os.path.join(log, "run.json")):
            os.remove(os.path.join(log, "run.json"))
        if settings:
            with open(os.path.join(log, "run.json"), "w", encoding="utf-8") as f:
                f.write(settings)
        page = os.path.join(work, "odd.html")
        done = subprocess.run([amp, "report", "--log", log, "-o", page], capture_output=True, text=True)
        check(done.returncode == (3 if why else 0) and (why or "") in done.stderr, f"{rows[:40]!r}: {done}")
        if b and not why:
            b.open(page)
            check(not b.errors, f"{rows[:40]!r}: {b.errors[:3]}")
            b.errors.clear()
    check(not b or b.value("document.documentElement.dataset.hacked") is None, "text of run.json is run")
    for options, status, why in ((["--log", log] * 13, 2, "a page has at most 12 runs"), (["--gpu", "h200", "--log", log], 2, "no job was given"),
                                 (["--no-ptx", "--log", log], 2, "no job was given"), (["--set", "a=1", "--log", log], 2, "no job was given"),
                                 (["--log", os.path.join(work, "none")], 3, "--log takes a folder that amp train --log-dir wrote"), ([], 2, "no job was given")):
        done = subprocess.run([amp, "report", *options], capture_output=True, text=True)
        check(done.returncode == status and why in done.stderr, f"{options}: {done}")


def main():
    amp = os.path.abspath(sys.argv[1])
    pictures = sys.argv[3] if sys.argv[2:3] == ["--pictures"] else None
    with tempfile.TemporaryDirectory() as work:
        b = chromium.Browser() if chromium.find() else None
        try:
            make_runs(amp, work)
            check_one(b, amp, work, pictures)
            check_two(b, amp, work, pictures)
            check_best(b, amp, work)
            check_long(b, amp, work)
            check_damaged(b, amp, work)
        finally:
            if b:
                b.close()
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
