"""Runs a job of graphs in its variants and compares their checkpoints, to the bit."""
import json
import math
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys

import job

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bounds"))
import bounds  # noqa: E402

# Compiles with clang at -O0, in a quarter of the time. The bits are the same, because kernels allow
# no reordering. The CUDA text needs _Float16, which clang 14 lacks on most processors.
QUICK = '#!/bin/sh\nPATH=${PATH#*:}\nfor a; do shift; case $a in -O3) a=-O0 ;; esac; set -- "$@" "$a"; done\nexec %s "$@"\n'


OUTSIDE = r"element \[.*\] of (an index|the labels) is"  # the correct message for an index out of range


class Tools:
    """The programs under test, and a folder for what they write."""

    def __init__(self, ampc, amp, simt, device, folder, arm=None):
        self.ampc, self.amp, self.simt, self.device, self.folder = ampc, amp, simt, device, pathlib.Path(folder)
        self.arm = arm
        for compiler in ("clang", "gcc"):
            quick = self.folder / "quick" / compiler
            quick.mkdir(parents=True, exist_ok=True)
            (quick / "cc").write_text(QUICK % compiler)
            (quick / "cc").chmod(0o755)
        (self.folder / "quick" / "arm").mkdir(exist_ok=True)
        (self.folder / "quick" / "arm" / "cc").symlink_to("/usr/bin/aarch64-linux-gnu-gcc")

    def run(self, *command, compiler="clang"):
        """None, or the failure: the status and the end of the output."""
        environment = dict(os.environ, PATH=f"{self.folder}/quick/{compiler}:{os.environ['PATH']}",
                           XDG_CACHE_HOME=str(self.folder / "cache"))
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=900, env=environment,
                                  cwd=self.folder)
        except subprocess.TimeoutExpired:
            return "no end: killed after 900 s"
        if done.returncode == 0:
            return None
        return f"status {done.returncode}: {(done.stderr + done.stdout)[-1500:]}"


def tensors(path):
    """{name: values} of a checkpoint; all NaNs become equal."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            out["the state"] = {k: v for k, v in entry.items() if not re.match(r"ampc\.(checksum|config|job|model)", k)}
            continue
        first, last = (8 + size + at for at in entry["data_offsets"])
        values = data[first:last]
        if entry["dtype"] == "F32":
            words = struct.unpack(f"<{len(values) // 4}I", values)
            values = tuple(0x7fc00000 if w & 0x7fffffff > 0x7f800000 else w for w in words)
        out[name] = values
    return out


def trained(tools, text, level, name, *options, program=(), compiler="clang"):
    """(failure, checkpoint) of a run at -O`level`; one of them is None."""
    program = program or (tools.amp,)
    path = tools.folder / f"{name}.amp"
    path.write_text(str(text))
    saved = tools.folder / f"{name}.safetensors"
    wrong = tools.run(*program, "train", "--device", tools.device, f"-O{level}", "-q", "--seed", "1", "--save", saved, *options, path,
                      compiler=compiler)
    return (wrong, None) if wrong else (None, tensors(saved))


def on_arm(tools, graphs):
    """(failure, checkpoint) of a run by the amp that is built for 64-bit Arm."""
    return trained(tools, job.whole(graphs), 2, "arm", "--march=armv8-a", program=("qemu-aarch64", tools.arm), compiler="arm")


def uses_library(tools, graph):
    """Whether a library computes a part of the graph on the CPU: a product or a convolution."""
    path = tools.folder / "library.amp"
    path.write_text(str(job.whole([graph])))
    done = subprocess.run([tools.ampc, "--target=cpu", "--emit=commands", path], capture_output=True, text=True, check=False)
    return re.search(r"^  \w+: (product|conv)", done.stdout, re.M) is not None


def emitted(tools, text):
    """(failure, checkpoint) of the program that ampc emits."""
    path, source, saved = (tools.folder / n for n in ("emitted.amp", "emitted.c", "emitted.safetensors"))
    path.write_text(str(text))
    wrong = tools.run(tools.ampc, "--target=cpu", "--force", "-o", source, path)
    if wrong:
        return wrong, None
    line = subprocess.run([tools.ampc, "--target=cpu", "--build-line", "-o", source, path], capture_output=True, text=True,
                          check=True).stdout
    wrong = tools.run(*shlex.split(line)) or tools.run(tools.folder / "emitted", "-q", "--seed", "1", "--save", saved)
    return (wrong, None) if wrong else (None, tensors(saved))


def graph_of(name):
    """The seed of the graph that a tensor of the checkpoint belongs to; -1: no single graph."""
    found = re.search(r"\bg(\d+)[._]", name)
    return int(found[1]) if found else -1


def differences(kind, want, got):
    """{seed: (kind, name of a tensor)} of the tensors that differ."""
    out = {}
    for name in sorted(want, key=lambda n: (n.startswith("optimizer"), n)):
        if got.get(name) != want[name]:
            out.setdefault(graph_of(name), (kind, f"{name} differs"))
    return out if not out or set(out) == {-1} else {s: w for s, w in out.items() if s >= 0}


def smooth(graph):
    """The graph without parts on which differences and gradients disagree: 16-bit types, detach, no_grad."""
    text = str(job.whole([graph]))
    text = re.sub(r"autocast\(\w+\)|\bno_grad\b", "autocast(f32)", text)
    text = re.sub(r"\.to\(b?f16\)", ".to(f32)", text).replace(".detach()", "")
    text = re.sub(r", padding_idx=-?\d+", "", text)  # that row has no gradient
    return re.sub(r"dtype=b?f16", "dtype=f32", re.sub(r"precision f16 \{.*\}", "precision f32", text))


def gradients(tools, graph):
    """The failure of `amp selftest` for one graph; None if it passes or the numbers are meaningless."""
    losses, graph.losses = graph.losses, 1
    path = tools.folder / "gradients.amp"
    path.write_text(smooth(graph))
    graph.losses = losses
    wrong = tools.run(tools.amp, "selftest", path)
    slopes = re.findall(r"FAILED.* the loss rises by (\S+); its gradient predicts (\S+)", wrong or "")
    return None if slopes and says_nothing([tuple(map(float, s)) for s in slopes]) else wrong


def says_nothing(slopes):
    """True if the loss is NaN or huge, or if every gradient is NaN, as PyTorch's is next to the root of a negative number."""
    return any(not abs(difference) < 1e8 for difference, _ in slopes) or all(math.isnan(gradient) for _, gradient in slopes)


def thread_by_thread(tools, graphs):
    """The failure of the SIMT check, or None. It compiles CUDA as C, which has no bf16 arithmetic, so graphs with own ops in bf16
    are left out."""
    path = tools.folder / "simt.amp"
    path.write_text(str(job.whole(graphs)))
    wrong = tools.run(tools.simt, "-O2", path, compiler="gcc")
    if not wrong or "op_bf16" not in wrong:
        return wrong
    rest = [g for g in graphs if "= own_" not in str(job.whole([g]))]
    if len(rest) == len(graphs):
        return wrong
    return thread_by_thread(tools, rest) if rest else None


def within_bounds(tools, graphs):
    """{seed: failure} of the graphs in which a measured value leaves the bound that the compiler has proved."""
    path, out = tools.folder / "bounds.amp", tools.folder / "bounds.json"
    text = job.whole(graphs)
    path.write_text(str(text))
    wrong = tools.run(tools.amp, "probe", "--device", "cpu", "--steps", str(2 * len(graphs)), "--json", "--output", out, path)
    if wrong:
        return {-1: wrong}
    found = {}
    for value in bounds.values_of(out):
        graph = text.owners[value["line"] - 1][0] if value["line"] else None
        found.setdefault(graph.seed if graph else -1, []).append(value)
    wrong = {seed: bounds.outside(values) for seed, values in found.items()}
    # in a loop, an index out of range gives NaN in a gather, and probes do not measure moves
    loops = {g.seed for g in graphs if any("scan t" in line for s in g.steps for line in s.lines)}
    return {seed: what for seed, what in wrong.items() if what and not ("are NaN" in what and seed in loops)}


VARIANTS = {"O1": lambda tools, graphs: trained(tools, job.whole(graphs), 1, "O1"),
            "O2": lambda tools, graphs: trained(tools, job.whole(graphs), 2, "O2"),
            "plain": lambda tools, graphs: trained(tools, job.whole(graphs, plain=True), 2, "plain", "--poison", "--check-memory"),
            "arm": on_arm,
            "emitted": lambda tools, graphs: emitted(tools, job.whole(graphs))}
PROOFS = {"simt": thread_by_thread,
          "bounds": lambda tools, graphs: next(iter(within_bounds(tools, graphs).values()), None),
          "gradients": lambda tools, graphs: gradients(tools, graphs[0])}


def compare(tools, graphs, variants):
    """{seed: (kind, what)} of the failing graphs of one job; seed -1 if the graph is not known."""
    wrong, want = trained(tools, job.whole(graphs), 0, "O0")
    if wrong:
        return {-1: ("O0", wrong)}
    out = {}
    for kind in variants:
        wrong, got = VARIANTS[kind](tools, graphs)
        if wrong:
            return {-1: (kind, wrong)}
        out = {**differences(kind, want, got), **out}
    return out


def outside(kind, what, graphs):
    """The graph with an index out of range, by the line in the message."""
    line = re.search(OUTSIDE + r".*, \w+\.amp:(\d+)\)", what)
    return job.whole(graphs, plain=kind == "plain").owners[int(line[line.lastindex]) - 1][0] if line else None


def examine(tools, graphs, variants, proofs):
    """{seed: (kind, what)} of the failures of these graphs."""
    out = compare(tools, graphs, variants) if variants else {}
    if "simt" in proofs and not out:
        wrong = PROOFS["simt"](tools, graphs)
        out = {-1: ("simt", wrong)} if wrong else {}
    if "bounds" in proofs and not out:
        out = {seed: ("bounds", wrong) for seed, wrong in within_bounds(tools, graphs).items()}
    if -1 in out and len(graphs) > 1:
        alone = outside(*out[-1], graphs)
        parts = ([g for g in graphs if g != alone],) if alone in graphs else (graphs[:len(graphs) // 2], graphs[len(graphs) // 2:])
        return {seed: found for part in parts for seed, found in examine(tools, part, variants, proofs).items()}
    if -1 in out:
        out = {} if re.search(OUTSIDE, out[-1][1]) else {graphs[0].seed: out[-1]}
    for graph in graphs if "gradients" in proofs else []:
        wrong = graph.seed not in out and PROOFS["gradients"](tools, [graph])
        if wrong:
            out[graph.seed] = ("gradients", wrong)
    return out
