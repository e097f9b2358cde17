#!/usr/bin/env python3
"""Exports the infer blocks of models with drawn weights, runs them in ONNX Runtime (in onnx's reference evaluator if
they contain bf16, which ONNX Runtime does not compute on CPUs) and compares the results with those of `amp infer`.
usage: compare.py BUILD [PART OF A NAME]   status 77: onnx or onnxruntime is not installed"""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALL = ("f32", "f16", "bf16")
SMALL = ["-D", "SIZE=64"]
# job, block, options, sizes of the caller (a size without a name of its own is ARGUMENT_AXIS), precisions in addition to the job's own
CASES = [
    ("tests/onnx/more", "integers", [], {}, ()),
    ("tests/onnx/more", "floats", [], {}, ALL[:2]),
    ("tests/onnx/more", "sizes", [], {"S": 5, "T": 9}, ALL[:2]),
    ("tests/onnx/more", "sampled", [], {"BATCH": 3, "S": 4, "T": 3}, ()),
    ("tests/onnx/more", "twofold", [], {"S": 5, "x_0": 11}, ()),
    ("tests/onnx/more", "scanned", [], {"S": 6}, ALL[:2]),
    ("tests/onnx/more", "images", [], {"BATCH": 3, "H": 40}, ALL),
    ("tests/onnx/weights16", "out", [], {"BATCH": 3}, ()),
    ("models/cart_pole/cart_pole", "push", [], {}, ALL),
    ("models/gpt2/kjv", "next", [], {"S": 40}, ALL),
    ("models/gpt2/generate", "next", ["-D", "C=48", "-D", "V=99", "-D", "T=64"], {"S": 40}, ALL),
    ("models/silero_vad/silero_vad", "speech", [], {"BATCH": 2}, ALL),
    ("models/autoencoder/autoencoder", "encode", [], {"BATCH": 5}, ALL),
    ("models/autoencoder/autoencoder", "decode", [], {"BATCH": 5}, ALL),
    ("models/autoencoder/autoencoder", "reconstruct", [], {"BATCH": 5}, ALL),
    ("models/vae/vae", "reconstruct", [], {"BATCH": 5}, ALL),
    ("models/convlstm/convlstm", "logits", [], {"BATCH": 3}, ALL),
    ("models/bert_large/minilm", "hidden", ["-D", "DEPTH=2", "-D", "VOCAB=999"], {"BATCH": 3}, ALL),
    ("models/bert_large/minilm", "embed", [], {"BATCH": 3}, ()),
    ("models/efficientnet_lite0/efficientnet_lite0", "classify", ["-D", "IMAGE=64"], {"BATCH": 2}, ("f16",)),
    ("models/efficientnet_lite0/efficientnet_lite0", "logits", ["-D", "IMAGE=64"], {"BATCH": 2}, ALL),
    ("models/efficientnet_b0/efficientnet_b0", "logits", SMALL, {"BATCH": 2}, ALL),
    ("models/resnet18/resnet18", "logits", SMALL, {"BATCH": 2}, ALL),
    ("models/resnet50/resnet50", "logits", SMALL, {"BATCH": 2}, ("f32",)),
    ("models/vit_b_16/vit_b_16", "logits", [*SMALL, "-D", "DEPTH=2"], {"BATCH": 2}, ALL),
    ("models/unet/unet", "segment", [*SMALL, "-D", "WIDTH=16"], {"BATCH": 2}, ALL),
    ("models/mnist_cnn/mnist_cnn", "logits", [], {"BATCH": 2}, ALL),
]
BOUND = {"f32": 1e-4, "f16": 2e-2, "bf16": 0.1}  # of the largest number of a result
NARROW = {"bf16": onnx.TensorProto.BFLOAT16, "f16": onnx.TensorProto.FLOAT16}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stderr}{done.stdout}"
    return done.stdout


# ---- weights ----

TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "U8": np.uint8, "BOOL": np.bool_}


def safetensors(path, tensors):
    names = {np.dtype(v): k for k, v in TYPES.items()}
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            f.write(value.tobytes())


def tensors_of(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    for name, e in json.loads(data[8:8 + n]).items():
        if name != "__metadata__" and e["dtype"] in TYPES:
            begin, end = e["data_offsets"]
            yield name, np.frombuffer(data[8 + n + begin:8 + n + end], TYPES[e["dtype"]]).reshape(e["shape"])


def parameters(build, job, options):
    """Name, shape and whether it counts, of each parameter and buffer."""
    for line in run(f"{build}/ampc", "--emit=params", *options, job).splitlines():
        if " [" in line:
            name, rest = line.split(" ", 1)
            yield name, [int(s) for s in rest[1:rest.index("]")].split(",") if s.strip()], " i64" in rest


def drawn_weights(build, job, options, rng):
    tensors = {}
    for name, shape, counts in parameters(build, job, options):
        if counts:
            tensors[name] = np.ones(shape, np.int64)
        elif name.endswith("running_var"):
            tensors[name] = rng.uniform(0.5, 2, shape).astype(np.float32)
        else:
            fan = max(1, int(np.prod(shape[1:])))
            tensors[name] = (rng.standard_normal(shape) / fan ** 0.5 + (len(shape) == 1) * 0.5).astype(np.float32)
    return tensors


# ---- inputs and results ----


def drawn_input(info, sizes, rng):
    shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in info.type.tensor_type.shape.dim]
    kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    if kind == np.float32:
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(0, 2 if kind == np.bool_ else 90, shape).astype(kind)


def precision_of(model):
    """The narrowest type of its weights and casts."""
    types = {t.data_type for t in model.graph.initializer} | {
        a.i for n in model.graph.node if n.op_type == "Cast" for a in n.attribute}
    return next((p for p, t in NARROW.items() if t in types), "f32")


def results(path, inputs):
    """What ONNX Runtime computes. It checks the types of a model with bf16, too."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        if precision_of(onnx.load(path)) != "bf16":
            raise
    return ReferenceEvaluator(onnx.load(path)).run(None, inputs)


def infer(build, folder, model, inputs, options):
    """What `amp infer` computes."""
    names, arguments = [o.name for o in onnx.load(model).graph.output], []
    for name, value in inputs.items():
        np.save(f"{folder}/{name}.npy", value)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    for i, name in enumerate(names):
        out = f"{folder}/out{i}.npy"
        arguments += ["--output", f"{name}={out}" if len(names) > 1 else out]
    run(f"{build}/amp", "infer", "-q", "--device", "cpu", *arguments, *options)
    return [np.load(f"{folder}/out{i}.npy") for i in range(len(names))]


def compare(got, want):
    """The largest difference, relative to the largest number of its result."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert a.shape == b.shape, f"shape {a.shape}, not {b.shape}"
        with np.errstate(invalid="ignore"):
            difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
        assert np.isfinite(difference).all(), f"{a} is not {b}"
        finite = np.abs(b[np.isfinite(b)])
        worst = max(worst, difference.max(initial=0) / max(finite.max(initial=0), 1e-30))
    return worst


def check(build, folder, case, options):
    name, block, _, sizes, _ = case
    job, rng = f"{ROOT}/{name}.amp", np.random.default_rng(1)
    weights, path = f"{folder}/weights.safetensors", f"{folder}/net.onnx"
    safetensors(weights, drawn_weights(build, job, options, rng))
    run(f"{build}/amp", "export", "-q", "--block", block, "--resume", weights, "-o", path, *options, job)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    inputs = {i.name: drawn_input(i, sizes, rng) for i in model.graph.input}
    given = [x for k, v in sizes.items() if k.isupper() for x in ("-D" if k == "BATCH" else "--dim", f"{k}={v}")]
    want = infer(build, folder, path, inputs, ["--block", block, "--weights", weights, *options, *given, job])
    return compare(results(path, inputs), want), precision_of(model), len(model.graph.node)


def judge(text, attempt):
    """Prints and returns whether attempt(folder) passed; it returns that and what it has found."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            good, found = attempt(folder)
            text += f": {found}"
        except Exception as e:  # pylint: disable=broad-except
            good, text = False, f"{text}: {str(e)[:1500]}"
    print(f"{'passed' if good else 'FAILED'} {text}", flush=True)
    return good


def main():
    build, failed = sys.argv[1], 0
    for case in CASES:
        for asked in ("", *case[4]):
            text = f"{case[0].split('/')[-1]} {case[1]} {asked or 'as written'}"
            if len(sys.argv) > 2 and sys.argv[2] not in text:
                continue
            options = [*case[2], *(["--set", f"precision={asked}"] if asked else [])]

            def attempt(folder):
                worst, found, count = check(build, folder, case, options)
                good = worst <= BOUND[found] and (not asked or found in (asked, "f32"))
                return good, f"{found}, {count} operations, {worst:.1e}"

            failed += not judge(text, attempt)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
