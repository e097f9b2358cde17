#!/usr/bin/env python3
"""graphs.py AMPC AMP [--simt SIMT_CHECK] [--device cuda] [--arm AMP] [--seed N | --fresh] [--graphs N] [--folder DIR]

Draws random graphs. -O0, -O1 and -O2 must give the same bits, and so must a block with and without checkpoint(). For some
graphs, the emitted program must give the same bits as the run in process, the CUDA text thread by thread the same as the C
text, and gradients must equal differences in doubles. With --arm, a run on 64-bit Arm must give the same bits. README.md says how graphs are drawn. A failing graph is shrunk and
written to DIR/SEED.amp, and its failure to DIR/SEED.txt. DIR/done.tsv has a line for each finished job; a run with the same
DIR skips these jobs. At the end, a table of the kinds of failures is printed.
"""
import argparse
import collections
import multiprocessing
import pathlib
import re
import sys
import tempfile
import time

import draw
import job
import shrink
import trial

TOGETHER = 12  # graphs in one job, so that the C compiler is started once for all of them
SHARES = {"emitted": 8, "simt": 24, "bounds": 8, "gradients": 4}  # one job of this many
LIBRARY = {"matrix.md", "image.md", "layers.md"}  # chapters with products and convolutions


def examine(options, first):
    """Runs one job of graphs. Returns how many graphs compile, and [(seed, kind, what)] of the failures."""
    seeds = range(first, min(first + TOGETHER, options.seed + options.graphs))
    number = first // TOGETHER
    with tempfile.TemporaryDirectory(prefix="ampc-graphs-") as folder:
        tools = trial.Tools(options.ampc, options.amp, options.simt, options.device, folder, options.arm)
        reference = draw.Reference(options.ampc, without=LIBRARY if options.arm else ())
        graphs, died = job.draw_graphs(tools, reference, seeds)
        graphs = [g for g in graphs if not options.arm or not trial.uses_library(tools, g)]
        wrong = [(graph, "compiler", what) for graph, what in died]
        if graphs:
            due = [kind for i, kind in enumerate(SHARES) if number % SHARES[kind] == i and options.device == "cpu"]
            variants = ["O1", "O2", "plain"] + [kind for kind in due if kind in trial.VARIANTS]
            if options.arm:
                variants, due = ["arm"], []
            proofs = [kind for kind in due if kind in trial.PROOFS and (kind != "simt" or options.simt)]
            found = trial.examine(tools, list(graphs), variants, proofs)
            wrong += [(g, *found[g.seed]) for g in graphs if g.seed in found]
        for graph, kind, what in wrong:
            small, what = shrink.smallest(tools, graph, kind, what)
            text = trial.smooth(small) if kind == "gradients" else str(job.whole([small]))
            (options.folder / f"{graph.seed}.amp").write_text(text)
            (options.folder / f"{graph.seed}.txt").write_text(f"{kind}: {what}\n")
    return len(graphs), [(graph.seed, kind, what) for graph, kind, what in wrong]


def kind_of(kind, what):
    """The kind of a failure, for the table."""
    status = re.match(r"status (-?\d+)", what)
    null = " (null)" if "(null)" in what else ""
    return f"{kind}: status {status[1]}{null}" if status else f"{kind}: another result"


def examine_pair(pair):
    start = time.monotonic()
    return pair[1], *examine(*pair), time.monotonic() - start


def read_options():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("ampc", type=lambda p: pathlib.Path(p).resolve())
    reader.add_argument("amp", type=lambda p: pathlib.Path(p).resolve())
    reader.add_argument("--simt", type=lambda p: pathlib.Path(p).resolve())
    reader.add_argument("--device", default="cpu", help="cpu or cuda; with cuda, emitted programs, simt and gradients are left out")
    reader.add_argument("--arm", type=lambda p: pathlib.Path(p).resolve(),
                        help="an amp for 64-bit Arm: only compare it, run by qemu-aarch64, on graphs that no library computes")
    reader.add_argument("--seed", type=int, default=0, help="number of the first graph")
    reader.add_argument("--fresh", action="store_true", help="start at a graph that depends on the date")
    reader.add_argument("--graphs", type=int, default=240)
    reader.add_argument("--processes", type=int, default=2)
    reader.add_argument("--folder", type=pathlib.Path, default=None, help="folder for failures and for the record of finished jobs")
    options = reader.parse_args()
    if options.fresh:
        options.seed = 100000 * (int(time.time()) // 86400)
    options.folder = (options.folder or pathlib.Path(tempfile.mkdtemp(prefix="ampc-graphs-"))).resolve()
    return options


def main():
    options = read_options()
    record = options.folder / "done.tsv"
    options.folder.mkdir(parents=True, exist_ok=True)
    done = {int(line.split("\t")[0]) for line in record.read_text().splitlines()} if record.exists() else set()
    todo = [(options, s) for s in range(options.seed, options.seed + options.graphs, TOGETHER) if s not in done]
    kinds, drawn = collections.Counter(), 0
    with multiprocessing.Pool(options.processes) as pool, record.open("a") as log:
        for first, count, wrong, seconds in pool.imap_unordered(examine_pair, todo):
            drawn += count
            for seed, kind, what in wrong:
                kinds[kind_of(kind, what)] += 1
                print(f"graph {seed}: {kind}: {what.splitlines()[0][:200]}; shrunk: {options.folder}/{seed}.amp", flush=True)
            log.write(f"{first}\t{count}\t{len(wrong)}\t{seconds:.1f}\n")
            log.flush()
    print(f"{drawn} graphs of {options.graphs}")
    for kind, n in kinds.most_common():
        print(f"{n:6} {kind}")
    few = len(todo) * TOGETHER // 2
    if drawn < few:
        print(f"FAILED: fewer than {few} graphs compile: does job.py read the compiler's messages?")
    return 1 if kinds or drawn < few else 0


if __name__ == "__main__":
    sys.exit(main())
