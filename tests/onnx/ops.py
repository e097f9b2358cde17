#!/usr/bin/env python3
"""Exports each case of tests/torch/cases.def, which calls a layer or function, and runs the model in ONNX Runtime. In
f32 the result is compared with PyTorch's of the fixture, in f16 with that of `amp infer`. Cases that ONNX cannot express
are in refused.txt. usage: ops.py BUILD f32|f16 [PART OF A NAME]"""
import os
import re
import subprocess
import sys
import tempfile

from compare import BOUND, ROOT, compare, infer, np, onnx, parameters, results, safetensors, tensors_of

TORCH = os.path.join(ROOT, "tests", "torch")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def cases():
    text = open(os.path.join(TORCH, "cases.def"), encoding="utf-8").read()
    for name, rest in re.findall(r"^CASE\((\w+),(.*?)\)$(?=\n\s*(?:CASE|/\*|#|\Z|\n))", text, re.M | re.S):
        parts, at = [], 0  # strings that only space separates are one
        for m in TEXT.finditer(rest):
            if parts and not rest[at:m.start()].strip():
                parts[-1] += m[1]
            else:
                parts.append(m[1])
            at = m.end()
        yield name, *(p.replace("\\n", "\n").replace('\\"', '"') for p in parts[:2])


def job_of(members, output, fixture):
    arg = f"t: i64{list(fixture['t'].shape)}" if "t" in fixture else ""
    return (f"module M {{\n  {members}\n  def forward({arg[:1]}) {{ return {output} }}\n}}\nmodel net = M()\n"
            f"infer out({arg}) {{ return net({arg[:1]}) }}\n")


def check(build, precision, folder, case, fixture):
    """The largest difference, or None if the export is refused. Some cases are not allowed in f16."""
    name, members, output = case
    job, weights, path = (f"{folder}/{name}{end}" for end in (".amp", ".safetensors", ".onnx"))
    with open(job, "w", encoding="utf-8") as f:
        f.write(job_of(members, output, fixture))
    kept = {k: v for k, v in fixture.items() if "/" not in k and k not in ("t", "g", "out", "loss")}
    for part, shape, counts in parameters(build, job, []):
        if counts:
            kept[part] = np.zeros(shape, np.int64)
    safetensors(weights, kept)
    options = ["--set", f"precision={precision}"]
    done = subprocess.run([f"{build}/amp", "export", "-q", "--resume", weights, "-o", path, *options, job],
                          capture_output=True, text=True, check=False)
    if done.returncode == 1 and "error[E801]" in done.stderr:
        return None
    if done.returncode == 1 and "error[E403]" in done.stderr and precision != "f32":
        return 0.0
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(onnx.load(path), full_check=True)
    inputs = {"t": fixture["t"]} if "t" in fixture else {}
    got = results(path, inputs)
    want = [fixture["out"]] if precision == "f32" else infer(build, folder, path, inputs, [*options, "--weights", weights, job])
    return compare(got, want)


def main():
    build, precision = sys.argv[1:3]
    part = sys.argv[3] if len(sys.argv) > 3 else ""
    refused = set(open(os.path.join(ROOT, "tests", "onnx", "refused.txt"), encoding="utf-8").read().split())
    fixtures = {}
    for name, value in tensors_of(os.path.join(TORCH, "ops.safetensors")):
        case, _, key = name.partition("/")
        fixtures.setdefault(case, {})[key] = value
    failed = n = 0
    for case in cases():
        if part not in case[0] or case[0] not in fixtures:
            continue
        n += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                worst = check(build, precision, folder, case, fixtures[case[0]])
                good = case[0] in refused if worst is None else worst <= BOUND[precision] and (case[0] not in refused or precision != "f32")
                text = "refused" if worst is None else f"{worst:.2e}"
            except Exception as e:  # pylint: disable=broad-except
                good, text = False, str(e)[:600]
        failed += not good
        if not good:
            print(f"FAILED {case[0]}: {text}", flush=True)
    print(f"{n} cases in {precision}, {failed} failed")
    return failed > 0 or n == 0


if __name__ == "__main__":
    sys.exit(main())
