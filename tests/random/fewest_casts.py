#!/usr/bin/env python3
"""fewest_casts.py AMPC AMP [--seed N] [--graphs N]

`fewest_casts(true)` on random nets. Their steps are products, norms, and ops that autocast leaves free, each at most once.
So `policy(low, ..)` with a subset of these ops makes exactly these ops 16-bit, and all subsets give all choices of types.
Bytes of casts are those of `ampc --explain`. fewest_casts may never move more than autocast. Of the nets in which some choice
moves less than autocast, it must move the fewest bytes in three of four. In the others, fusion decides otherwise than the pass
expects. The nets of one job must have the same bits at -O0 and -O2."""
import argparse
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import trial

CALLS = ["relu", "abs", "sin", "tanh", "sigmoid", "hardswish"]  # of one operand
SIGNS = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}", "cat": "cat([{0}, {1}], 0)[16:48]",
         "maximum": "maximum({0}, {1})", "minimum": "minimum({0}, {1})"}
MOST = 5  # free ops in a net
TOGETHER = 8  # nets in the job for -O0 and -O2


def draw(seed):
    """(members, statements, loss, free ops) of a net."""
    rng = random.Random(seed)
    free = rng.sample(CALLS + list(SIGNS), MOST)
    members, lines, names, used = [], [], ["x"], []
    for i in range(rng.randint(6, 12)):
        a, b, kind = rng.choice(names[-3:]), rng.choice(names), rng.random()
        if kind < 0.3:
            members.append(f"f{i} = Linear(64, 64)" + (".autocast(f32)" if rng.random() < 0.15 else ""))
            text = f"f{i}({a})"
        elif kind < 0.5:
            members.append(f"f{i} = LayerNorm(64)")
            text = f"f{i}({a})"
        elif kind < 0.55:
            text = f"softmax({a}, -1)"
        elif free:
            used.append(free.pop())
            text = SIGNS.get(used[-1], used[-1] + "({0})").format(a, b)
        else:
            continue
        names.append(f"v{i}")
        lines.append(f"v{i} = {text}")
    terms = [n for n in names[1:] if rng.random() < 0.1 or n == names[-1]]
    return members, lines, " + ".join(f"square({n}.to(f32)).mean()" for n in terms), used


def text_of(nets, clauses):
    """A job with a train block for each net."""
    out = ["data rows() { return synthetic(64, [64]) }", "precision f16 { " + "; ".join(clauses) + " }"]
    for k, (members, lines, loss, _) in enumerate(nets):
        out += [f"module M{k} {{", "  q = Parameter([64], init=uniform_(0.5, 1.5))"] + ["  " + m for m in members]
        out += ["  def forward(x) {", "    x = x * q"] + ["    " + line for line in lines] + ["    return " + loss, "  }", "}"]
        out += [f"model net{k} = M{k}()", f"optimizer opt{k} = SGD(net{k}, lr=0.1)",
                f"train x in rows() with batch=32, steps=2, name=\"g{k}\" {{ minimize net{k}(x) with opt{k} }}"]
    return "\n".join(out) + "\n"


def cast_bytes(tools, net, *clauses):
    path = tools.folder / "net.amp"
    path.write_text(text_of([net], clauses))
    done = subprocess.run([tools.ampc, "--explain=json", path], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path.read_text()}\nstatus {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["cast_bytes"]


def examine(tools, seeds):
    """The numbers of nets in which autocast is not best, and in which fewest_casts is best of these."""
    open_, best_of, failed = 0, 0, False
    for seed in seeds:
        net = draw(seed)
        autocast, fewest = cast_bytes(tools, net), cast_bytes(tools, net, "fewest_casts(true)")
        best = min([autocast] + [cast_bytes(tools, net, f"policy(low, {', '.join(subset)})")
                                 for n in range(1, len(net[3]) + 1) for subset in itertools.combinations(net[3], n)])
        if fewest > autocast:
            failed = True
            print(f"FAIL net {seed}: fewest_casts moves {fewest} bytes, autocast {autocast}\n{text_of([net], ['fewest_casts(true)'])}")
        open_ += best < autocast
        best_of += best < autocast and fewest <= best
    return open_, best_of, failed


def same_bits(tools, seeds):
    text = text_of([draw(seed) for seed in seeds], ["fewest_casts(true)"])
    runs = [trial.trained(tools, text, level, f"O{level}") for level in (0, 2)]
    for wrong, _ in runs:
        if wrong:
            sys.exit(f"FAIL {wrong}")
    different = trial.differences("O2", runs[0][1], runs[1][1])
    if different:
        print(f"FAIL -O0 and -O2 differ: {different}\n{text}")
    return not different


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("ampc", type=lambda p: pathlib.Path(p).resolve())
    reader.add_argument("amp", type=lambda p: pathlib.Path(p).resolve())
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--graphs", type=int, default=16)
    options = reader.parse_args()
    seeds = range(options.seed, options.seed + options.graphs)
    with tempfile.TemporaryDirectory(prefix="ampc-fewest-") as folder:
        tools = trial.Tools(options.ampc, options.amp, None, "cpu", folder)
        open_, best_of, failed = examine(tools, seeds)
        same = same_bits(tools, seeds[:TOGETHER])
    print(f"{len(seeds)} nets; in {open_} a choice moves less than autocast, in {best_of} of these fewest_casts moves the fewest")
    return 1 if failed or not same or not open_ or 4 * best_of < 3 * open_ else 0


if __name__ == "__main__":
    sys.exit(main())
