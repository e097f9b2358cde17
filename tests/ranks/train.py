#!/usr/bin/env python3
"""train.py MPIRUN AMP PART [JOB...]: whole trainings on several ranks.
  losses    without `shards`, losses, metrics and decisions are those of one rank
  bytes     with train.shards=4, any number of ranks writes the same bytes, also resumed with another number
  statistics  of batch norm are the mean over the members; with sync=true they are those of the batch
  gpu MOCK JOB...  `bytes` on GPUs and NCCL, which the libraries in MOCK stand for
  files     a checkpoint of four ranks is that of one rank; `amp eval` on one and on two ranks
  refusals  what differs between ranks, or does not divide, is refused with one message
  output    one rank prints and logs
  models    `bytes` for models: pictures with batch norm, a Transformer on a text, a GAN whose steps overflow and run again"""
import json
import os
import re
import shutil
import struct
import subprocess
import lib
from lib import AMP, MPIRUN, PATIENCE, MODELS, WORK, check, command, content, events, finish, job, run, sys, tensors, work

JOBS = ["forms", "dropout", "masked", "sums", "accumulate", "gan", "plateau", "recurrent", "attention", "scaler", "follow", "penalty", "muon"]
# another training on each number of members: batch norm over the samples of a member, and numbers that each member draws;
# a rounding decides a code of a moment
LOCAL = ["norm", "replay", "weights16", "codes"]
NEAR, TINY = 1e-5, 1e-7


def differences(a, b, path=""):
    """Yields where two JSON values differ: numbers by more than roundings."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from differences(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{path}[{i}]")
    elif isinstance(a, float) and isinstance(b, float):
        if not abs(a - b) <= NEAR * max(abs(a), abs(b)) + TINY:
            yield f"{path}: {a} and {b}"
    elif a != b:
        yield f"{path}: {a} and {b}"


def losses(jobs):
    for name in jobs or JOBS:
        one = events(1, job(name))
        check(f"{name}: at least 30 steps", sum(e["event"] == "step" for e in one) >= 30)
        for n in (2,) if jobs else (2, 3, 4):
            found = list(differences(one, events(n, job(name))))
            check(f"{name} on {n} ranks, as on one", not found, "; ".join(found[:3]))


def same_bytes(name, *args):
    """The checkpoint of the run; any number of ranks must write the same one."""
    given = ("-q", "--set", "train.shards=4", *args)
    for n in 1, 2, 4:
        run(n, *given[:-1], "--save", work(f"{name}{n}"), given[-1])
    whole = content(work(f"{name}1"))
    for n in 2, 4:
        check(f"{name} with shards=4 on {n} ranks, as on one", whole and whole == content(work(f"{name}{n}")))
    return whole


def bytes_(jobs):
    for name in jobs or JOBS + LOCAL:
        path, given = job(name), ("-q", "--set", "train.shards=4")
        whole = same_bytes(name, path)
        run(4, *given, "--steps", "11", "--save", work("part"), path)
        for n in 2, 1:
            run(n, *given, "--resume", work("part"), "--save", work("joined"), path)
            check(f"{name} began on 4 ranks, resumed on {n}", content(work("joined")) == whole)


def gpu(args):
    mock, *jobs = args
    lib.DEVICE = "cuda"
    os.environ |= {"LD_LIBRARY_PATH": mock, "MOCK_CUDA_DEVICES": "4", "XDG_CACHE_HOME": work("cache")}
    bytes_(jobs)


def models(_):
    fashion = "/usr/share/datasets/fashion-mnist"
    if not os.path.exists(fashion) or not shutil.which("bible"):
        print("skipped: needs dataset-fashion-mnist and bible-kjv")
        sys.exit(77)
    given = ("--steps", "12", "--limit-batches", "12")
    same_bytes("fashion_mnist", *given, f"{MODELS}/fashion_mnist/fashion_mnist.amp")
    subprocess.run([f"{MODELS}/gpt2/kjv.sh", WORK], check=True, stdout=subprocess.DEVNULL)
    with open(f"{MODELS}/gpt2/kjv.amp", encoding="utf-8") as file:
        path = text("kjv.amp", file.read().replace("256, 0.0)", "256, 0.1)"))
    check("kjv with dropout", "256, 0.1)" in content(path).decode())
    same_bytes("kjv", *given, "--data-dir", WORK, "-I", f"{MODELS}/gpt2", path)
    subprocess.run([f"{MODELS}/../tests/models/pictures.py", work("pictures"), "40", "32"], check=True, stdout=subprocess.DEVNULL)
    same_bytes("resnet18", *given, "-D", f"DIR={work('pictures')}/", "-D", "SIZE=32", "-D", "CLASSES=10", "-D", "WIDTH=16",
               "--set", "train.batch=32", "--set", "eval.batch=100", f"{MODELS}/resnet18/resnet18.amp")
    with open(f"{MODELS}/dcgan/dcgan.amp", encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("precision")]
    path = text("dcgan.amp", "".join(lines) + 'precision f16 { scaler(init=1e7, on_overflow="replay") }\n')
    same_bytes("dcgan", *given, "-D", "WIDTH=16", path)


def files(_):
    path = job("accumulate")
    for n in 1, 4:
        run(n, "-q", "--steps", "9", "--save", work(f"files{n}"), path)
    one, four = tensors(work("files1")), tensors(work("files4"))
    check("a checkpoint of 4 ranks has the tensors of one rank",
          {name: t[:2] for name, t in one.items()} == {name: t[:2] for name, t in four.items()})
    check("one file", sorted(f for f in os.listdir(WORK) if f.startswith("files4")) == ["files4"])
    evals = [events(n, "--resume", work("files4"), path, verb="eval") for n in (1, 2)]
    check("amp eval of it on one rank", evals[0][0]["metrics"]["loss"] > 0)
    found = list(differences(*evals))
    check("amp eval on two ranks", not found, found)
    for n in 1, 2:
        ends = events(n, "--resume", work("files4"), path)
        check(f"it is resumed on {n}", ends[-1]["status"] == 0 and ends[-1]["step"] == 36, ends[-1])


def statistics(_):
    """Batch norm: running means are the mean over the members, which is that of the batch."""
    for n in 1, 4:
        run(n, "-q", "--steps", "1", "--save", work(f"norm{n}"), job("norm"))
    means = [struct.unpack("<8f", tensors(work(f"norm{n}"))["bn.running_mean"][2]) for n in (1, 4)]
    found = list(differences(list(means[0]), list(means[1])))
    check("running means of four members", not found, found)
    with open(job("norm"), encoding="utf-8") as file:
        sync = text("sync.amp", file.read().replace("BatchNorm2d(8)", "BatchNorm2d(8, sync=true)"))
    apart, one = (list(differences(events(1, path), events(4, path))) for path in (job("norm"), sync))
    check("losses of four members with their own statistics differ", apart)
    check("losses of four members with sync=true", not one, one[:3])


# ---- refusals ----

def refused(name, status, pattern, *call):
    """The command must fail with the status and print one error, which matches."""
    done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    errors = [line for line in done.stderr.splitlines() if re.search(r"\berror(\[|:)", line)]
    good = done.returncode == status and len(errors) == 1 and re.search(pattern, errors[0])
    check(f"{name}: {errors[0] if errors else ''}", good, f"status {done.returncode}, expected {pattern}\n{done.stderr}")


def text(name, content):
    with open(work(name), "w", encoding="utf-8") as file:
        file.write(content)
    return work(name)


def refusals(_):
    amp = [AMP, "train", "--device", "cpu", "-q"]
    a = job("plateau")
    with open(a, encoding="utf-8") as file:
        b = text("b.amp", file.read().replace("factor=0.5", "factor=0.25"))
    names = "rank 0 on .* has .*, rank 1 on .* has .*"

    def two(*first, second):
        return [MPIRUN, "-n", "1", *amp, *first, ":", "-n", "1", *amp, *second]
    refused("two jobs", 2, "the job differs between ranks: " + names, *two(a, second=[b]))
    refused("a setting", 2, "differs between ranks: " + names + "0.25", *two(a, second=["--set", "opt.lr.start=0.25", a]))
    refused("another setting", 2, "differs between ranks: " + names, *two(a, second=["--set", "train.batch=32", a]))
    refused("--steps", 2, "the run differs between ranks: .*--steps 0`?.*--steps 7", *two(a, second=["--steps", "7", a]))
    refused("--save-every", 2, "the run differs between ranks: .*--save-every",
            *two("--save", work("x"), second=["--save", work("x"), "--save-every", "7", a], *[a]))
    refused("precision", 2, "differs between ranks: " + names, *two(a, second=["--set", "precision=f16", a]))
    refused("-O", 2, "the compiled job differs between ranks: rank 0 on .* has `amp .* for cpu, -O2, .*`, .*-O0", *two(a, second=["-O0", a]))
    refused("--march", 2, "has `amp .* --march=native`, .*--march=x86-64`", *two(a, second=["--march=x86-64", a]))
    for folder, samples in ("one", 64), ("two", 32):
        os.makedirs(work(folder), exist_ok=True)
        with open(work(folder + "/x.raw"), "wb") as file:
            file.write(bytes(samples * 8))
    c = text("c.amp", 'data points() { return raw("x.raw", [2], dtype=f32) }\nmodel net = Linear(2, 1)\n'
             "optimizer opt = SGD(net, lr=0.1)\ntrain x in points() with batch=8 { minimize mean(net(x)) with opt }\n")
    text("one/part.amp", "def weighted(x) { return x * 3.0 }\n")
    d = text("d.amp", 'import "part.amp"\nmodel net = Linear(8, 2)\noptimizer opt = SGD(net, lr=0.1)\n'
             "train x in synthetic(64, [8]) with batch=8 { minimize mean(weighted(net(x))) with opt }\n")
    refused("an import that one rank lacks", 3, "error: rank 1 on .*: the job does not compile on this rank's machine",
            *two("-I", work("one"), d, second=[d]))
    refused("no weights", 2, "amp eval: error: rank 0 on .*: the weights are missing", *command(2, a, verb="eval"))
    refused("data", 2, "differs between ranks: " + names, *two("--data-dir", work("one"), second=["--data-dir", work("two"), c], *[c]))
    refused("a batch smaller than the ranks", 1, "batch=2 is too small for 3", *command(3, "--set", "train.batch=2", a))
    refused("4 shards on 3 ranks", 1, "shards=4 cannot be shared out to 3 ranks", *command(3, "--set", "train.shards=4", a))
    refused("3 shards", 1, "`shards` is a power of 2, got 3", *command(1, "--set", "train.shards=3", a))
    head = "model net = Linear(2, 2)\noptimizer opt = SGD(net, lr=0.1)\ntrain x in synthetic(64, [2]) with batch=8 {\n"
    for name, loss in {"softmax over samples": "mean(softmax(net(x), 0) * x)", "samples with samples": "mean(net(x) @ transpose(x, 0, 1))",
                       "a maximum over samples": "amax(net(x), 0).sum()", "a cumulative sum": "mean(cumsum(net(x), 0))",
                       "sorted samples": "mean(sort(net(x), 0)[0][:2])", "samples in turn": "mean(net(x) * flip(x, [0]))",
                       "the first sample": "mean(net(x)[0])", "half a batch": "mean(net(x)[: x.shape[0] // 2])",
                       "a variance": "var(net(x))", "numbered samples": "mean(net(x) * arange(x.shape[0]).to(f32).unsqueeze(1))",
                       "a product over samples": "mean(ones(x.shape[0], x.shape[0]) @ net(x))",
                       "reshaped samples": "mean(net(x).reshape(2, x.shape[0])[0])",
                       "one number more": "mean(randn(x.shape[0] + 1).sum() * net(x))",
                       "random numbers of samples side by side": "mean(dropout(stack([net(x), x], 0).flatten(0, 1), 0.5))",
                       "samples as keys": "mean(scaled_dot_product_attention(x, x, x) * net(x))",
                       "samples in a sequence": "mean(scaled_dot_product_attention(net(x), ones(9, 2), rand(9, 2), is_causal=true))",
                       "groups of samples": "mean(scaled_dot_product_attention(net(x).unsqueeze(1), ones(2, 3, 2), ones(2, 3, 2), enable_gqa=true))",
                       "operations by samples": "mean(net(x)) if x.shape[0] > 4 else sum(net(x))"}.items():
        path = text("mix.amp", head + f"  minimize {loss} with opt\n}}\n")
        refused(name, 1, r"mix.amp:4:\d+: error\[E605\]", *command(2, path))


# ---- output ----

def output(_):
    path = job("plateau")
    out, err = run(2, "--log", "10", "--save", work("best"), path)
    check("one final row for each metric", [out.count(f"eval {m}") for m in ("acc", "loss")] == [0, 0] or out.count("acc") == 1, out)
    lines = re.findall(r"step (\d+)/", err)
    check("one progress line at a time", lines and len(lines) == len(set(lines)), err)
    check("one line for each change of a setting", len(set(re.findall(r"opt.lr is .*", err))) == err.count("opt.lr is "), err)
    check("one early stop", err.count("stopped early") == 1, err)
    rows = [json.loads(line) for line in run(2, "--json", "-q", path)[0].splitlines()]
    keys = [(r["event"], r.get("block"), r.get("step")) for r in rows]
    check("each JSON line once", len(keys) == len(set(keys)), keys)
    check("each JSON line names the rank", all((r["rank"], r["ranks"]) == (0, 2) for r in rows), rows[0])
    run(2, "-q", "--log-dir", work("log"), path)
    names = [re.sub(r"\d{6,}.*", "N", f) for f in os.listdir(work("log"))]
    check("one log folder", len(names) == len(set(names)) and "metrics.csv" in names, names)
    with open(work("log/metrics.csv"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    check("one row for each report", len(lines) > 2 and len(lines) == len(set(lines)), lines)
    _, err = run(2, "-v", "--set", "train.shards=4", path)
    rows = re.findall(r"^ *rank (\d) on .*2 of 4", err, re.M)
    check("-v prints a row for each rank", rows == ["0", "1"], err)


PARTS = {"losses": losses, "bytes": bytes_, "files": files, "statistics": statistics, "models": models,
          "refusals": refusals, "output": output, "gpu": gpu}
PARTS[sys.argv[3]](sys.argv[4:])
finish()
