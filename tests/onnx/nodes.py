#!/usr/bin/env python3
"""Runs the node tests of the package onnx: `amp import`, then `amp infer`, whose results are compared with onnx's.
usage: nodes.py BUILD [--rewrite] [--list] [PART OF A NAME]

A job's arguments have samples along the first axis, so each input gets an axis of size 1 in front, which a Squeeze
removes. Each case runs in up to three forms: all inputs are arguments; all but the first are tensors of the file, as
weights are; all are tensors. A case passes if one form is imported. No form may have another result than onnx's.
--list prints each case; --rewrite writes the table into docs/onnx.md, which must have it otherwise. Exit status 77:
onnx is not installed."""
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError:
    print("skipped: the test needs numpy and onnx")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MARKS = "<!-- begin: tests/onnx/nodes.py --rewrite -->", "<!-- end -->"
TYPES = {np.dtype(t) for t in ("f2", "f4", "i4", "i8", "u1", "?")}
RANDOM = {"Bernoulli", "RandomUniformLike", "RandomNormalLike", "RandomUniform", "RandomNormal", "Multinomial"}
MOST_AXES = 6
# of onnx.TensorProto, which numpy has no name for
LETTERS = "abcdefgh"


def cases():
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases
    for case in collect_testcases(None):
        if not case.name.endswith("_expanded") and "_expanded_" not in case.name and case.data_sets:
            yield case


def is_tensor(x):
    return isinstance(x, np.ndarray) or np.isscalar(x) and not isinstance(x, str)


def fits(case):
    """Whether jobs have the types and shapes of the case, and its results are not drawn."""
    inputs, outputs = case.data_sets[0]
    for x in list(inputs) + list(outputs):
        if not is_tensor(x) or np.asarray(x).dtype not in TYPES or np.asarray(x).size == 0:
            return False
        if np.asarray(x).ndim >= MOST_AXES:
            return False
    nodes = case.model.graph.node
    if case.name.startswith("test_training_dropout"): # ampc drops in train blocks only
        return False
    return len(nodes) > 0 and all(n.domain in ("", "ai.onnx") and n.op_type not in RANDOM for n in nodes)


def value_info(name, x):
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    return helper.make_tensor_value_info(name, kind, [1, *x.shape])


def rebuilt(case, constants):
    """The model with an axis in front; the inputs from number `constants` on are tensors of the file."""
    inputs, outputs = [[np.asarray(x) for x in part] for part in case.data_sets[0]]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    nodes = list(graph.node)
    del graph.node[:], graph.value_info[:]
    named_in, named_out = [i.name for i in graph.input], [o.name for o in graph.output]
    graph.value_info.extend(list(graph.input)[:constants] + list(graph.output))
    del graph.input[:], graph.output[:]
    axis = numpy_helper.from_array(np.array([0]), "axis_of_samples")
    graph.initializer.append(axis)
    data = {}
    for k, (name, x) in enumerate(zip(named_in, inputs)):
        if k >= constants:
            graph.initializer.append(numpy_helper.from_array(x, name))
            continue
        graph.input.append(value_info("in_" + LETTERS[k], x))
        graph.node.insert(0, helper.make_node("Squeeze", ["in_" + LETTERS[k], axis.name], [name]))
        data["in_" + LETTERS[k]] = x[None]
    graph.node.extend(nodes)
    for k, (name, y) in enumerate(zip(named_out, outputs)):
        graph.output.append(value_info("out_" + LETTERS[k], y))
        graph.node.append(helper.make_node("Unsqueeze", [name, axis.name], ["out_" + LETTERS[k]]))
    return model, data, outputs


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, (done.stderr + done.stdout).strip()


def compare(case, got, expected):
    """None, or how the results differ."""
    for k, (a, b) in enumerate(zip(got, expected)):
        if a.shape != (1, *b.shape):
            return f"result {k} has shape {list(a.shape[1:])}, not {list(b.shape)}"
        bound = max(case.rtol, 1e-4)
        if b.dtype == np.float16:
            bound = max(bound, 4e-3)
        if b.dtype.kind == "f":
            same = np.allclose(a[0].astype(float), b.astype(float), rtol=bound, atol=max(case.atol, bound / 100), equal_nan=True)
        else:
            same = a.dtype.kind in "iub" and np.array_equal(a[0], b)
        if not same:
            return f"result {k} is {a[0].ravel()[:6]} {a.dtype}, not {b.ravel()[:6]} {b.dtype}"
    return None


def run_form(amp, case, constants, folder):
    """Returns "pass", "refused" or "differs", and a reason."""
    model, data, expected = rebuilt(case, constants)
    path = lambda name: os.path.join(folder, name)
    onnx.save(model, path("net.onnx"))
    status, message = call(amp, "import", "-q", "--force", path("net.onnx"), "-o", path("net.amp"))
    if status:
        if "the loss does not depend on any parameter" in message:
            return "refused", "for training: the loss has no gradient"
        fault = status != 1 or "does not compile" in message
        return ("differs" if fault else "refused"), message
    options = []
    for name, x in data.items():
        np.save(path(name + ".npy"), x)
        options += ["--input", f"{name}={path(name + '.npy')}"]
    out = [path(f"out{k}.npy") for k in range(len(expected))]
    for k, name in enumerate(out):
        options += ["--output", f"predict.{k}={name}" if len(out) > 1 else name]
    status, message = call(amp, "infer", "-q", "--force", "--device", "cpu", "--set", "precision=f32", "-D", "BATCH=1", *options,
                           path("net.amp"))
    if status:
        return "differs", "amp infer: " + message
    reason = compare(case, [np.load(name) for name in out], expected)
    return ("differs", reason) if reason else ("pass", "")


def reason_of(message):
    """The reason in a message of amp import."""
    lines = [line.strip() for line in message.splitlines() if " node" in line and line.startswith("  ")]
    return "; ".join(re.sub(r": \d+ nodes?, the first is .*", "", line) for line in lines) or message


def run_case(amp, case):
    n = len(case.data_sets[0][0])
    reasons, passed = [], False
    with tempfile.TemporaryDirectory() as folder:
        for constants in sorted({n, min(n, 1), 0}, reverse=True):
            result, reason = run_form(amp, case, constants, folder)
            if result == "differs":
                return result, f"with {constants} arguments: {reason}"
            passed = passed or result == "pass"
            if result == "refused":
                reasons.append(reason_of(reason))
    return ("pass", "") if passed else ("refused", reasons[-1])


def op_of(case):
    return max((n.op_type for n in case.model.graph.node), key=lambda op: (op != "Constant", op != "Identity"))


def table(results):
    rows = collections.defaultdict(collections.Counter)
    why = collections.defaultdict(collections.Counter)
    for case, (result, reason) in results:
        rows[op_of(case)][result] += 1
        if result == "refused":
            why[op_of(case)][reason.replace("|", "\\|")] += 1
    lines = ["| Op | Cases | Pass | Refused |", "|---|---:|---:|---|"]
    absent = []
    for op, row in sorted(rows.items()):
        if not row["pass"]:
            absent.append(f"{op} ({sum(row.values())})")
            continue
        reasons = "; ".join(f"{n} {reason}" for reason, n in why[op].most_common())
        lines.append(f"| {op} | {sum(row.values())} | {row['pass']} | {reasons} |")
    total = collections.Counter(result for _, (result, _) in results)
    end = f"Of {len(results)} cases of onnx {onnx.__version__}, {total['pass']} pass and {total['refused']} are refused. These ops have " \
        "no case that passes: " + ", ".join(absent) + "."
    lines += ["", *textwrap.wrap(end, 120, break_long_words=False)]
    return "\n".join(lines), total


def page_with(text, write):
    """Whether docs/onnx.md has this table, unless it is of another version of onnx."""
    page = os.path.join(ROOT, "docs/onnx.md")
    old = open(page, encoding="utf-8").read()
    begin = old.index(MARKS[0]) + len(MARKS[0])
    end = old.index(MARKS[1], begin)
    if write:
        with open(page, "w", encoding="utf-8") as f:
            f.write(old[:begin] + "\n" + text + "\n" + old[end:])
    return write or f"of onnx {onnx.__version__}," not in old or old[begin:end].strip() == text


def main():
    options = [a for a in sys.argv[2:] if a.startswith("--")]
    part = "".join(a for a in sys.argv[2:] if not a.startswith("--"))
    amp = os.path.join(sys.argv[1], "amp")
    chosen = [c for c in cases() if part in c.name and fits(c)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(zip(chosen, pool.map(lambda c: run_case(amp, c), chosen)))
    for case, (result, reason) in results:
        if result == "differs" or "--list" in options:
            print(f"{result}: {case.name}: {reason}")
    text, total = table(results)
    print(dict(total) if part or "--list" in options else text)
    same = part or page_with(text, "--rewrite" in options)
    if not same:
        print("FAILED: docs/onnx.md has another table; --rewrite writes it")
    sys.exit(0 if same and not total["differs"] else 1)


main()
