#!/usr/bin/env python3
"""Tests that the compiler checks the range of every number of the layer library and of the ops.
usage: numbers.py AMPC [--rewrite]

Puts extreme numbers into each argument of each public def and module of compiler/layers, and into each attribute of
each op of compiler/graph/ops.def that the language can name. The compiler must accept the program, or refuse it with a
message at its line; it must never crash or report an internal error. numbers.expected has a line for each argument,
with the numbers that are accepted. A new argument needs a line; --rewrite writes the file.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ampc = os.path.abspath(sys.argv[1])
expected = pathlib.Path(__file__).with_suffix(".expected")

NUMBERS = {
    "nan": "nan", "inf": "inf", "-inf": "-inf", "1e39": "1e39", "1e-60": "1e-60", "-0.5": "-0.5", "0.5": "0.5",
    "1.5": "1.5", "-1": "-1", "0": "0", "1": "1", "2": "2", "2^31": "2147483648", "2^62": "4611686018427387904",
    "-2^62": "-4611686018427387904", "2^63-1": "9223372036854775807", "-2^63": "-9223372036854775807 - 1",
}

# Values for the other arguments: by name, or by `def.argument` if the name means several things.
GIVEN = {
    "x": "x", "input": "x", "logits": "x", "target": "x", "tensors": "[x, x]", "y": "x", "mask": "x > 0",
    "condition": "x > 0", "value": "0.5", "weight": "w", "dim": "1", "dim0": "1", "dim1": "2", "dims": "[1]",
    "sizes": "[2, 2]", "start": "0", "length": "1", "split_size_or_sections": "2", "chunks": "2", "fill_value": "1",
    "pad": "[1, 1]", "low": "0", "high": "5", "size": "[2, 2]", "p": "0.5", "normalized_shape": "[6]",
    "num_groups": "2", "num_channels": "4", "num_features": "4", "in_features": "6", "out_features": "3",
    "in_channels": "4", "out_channels": "4", "kernel_size": "3", "output_size": "3", "distance": "1", "val": "1.0",
    "shape": "[4, 4]", "unflattened_size": "[2, 2]",
    "model": "net", "lr": "0.1", "end": "0.01", "steps": "10", "peak": "0.1", "milestones": "[5]", "n": "8",
    "path": "\"none\"",
    "bernoulli.p": "x", "mat2": "x[:, 0, 0]", "mm.input": "w2", "mm.mat2": "x[0, 0, :, :2]",
    "bmm.input": "x[0]", "bmm.mat2": "x[0]", "mv.input": "w2", "vec": "x[0, 0, 0]", "addmm.input": "x[0, 0]",
    "mat1": "x[0, 0]", "addmm.mat2": "x[0, 0]", "baddbmm.input": "x[0]", "batch1": "x[0]", "batch2": "x[0]",
    "roll.dims": "1", "shifts": "1", "prelu.weight": "w[:, 0, 0, 0]", "image": "x", "label": "(x[:, 0, 0, 0] > 0).to(i64)",
    "classes": "2", "tensor1": "x", "tensor2": "x", "kl_div.target": "x",
    "nll_loss.target": "(x[:, 0] > 0).to(i64)", "max_pool1d.input": "x[:, :, 0]", "avg_pool1d.input": "x[:, :, 0]",
    "adaptive_avg_pool1d.input": "x[:, :, 0]", "max_pool3d.input": "x.unsqueeze(4)", "avg_pool3d.input": "x.unsqueeze(4)",
    "max_pool3d.kernel_size": "[1, 2, 1]", "avg_pool3d.kernel_size": "[1, 2, 1]", "MaxPool3d.kernel_size": "[1, 2, 1]",
    "AvgPool3d.kernel_size": "[1, 2, 1]", "interpolate.size": "none", "Upsample.size": "none",
    "interpolate.mode": "\"bilinear\"",
    "conv1d.input": "x[:, :, 0]", "conv1d.weight": "w[:, :, 0]",
    "conv3d.input": "x.unsqueeze(2)", "conv3d.weight": "w.unsqueeze(2)", "conv_transpose1d.input": "x[:, :, 0]",
    "conv_transpose1d.weight": "w[:, :, 0]", "conv_transpose3d.input": "x.unsqueeze(2)",
    "conv_transpose3d.weight": "w.unsqueeze(2)", "Conv3d.kernel_size": "[1, 3, 3]", "linear_schedule.start": "0.1",
    "interpolate.scale_factor": "2", "Upsample.scale_factor": "2", "unflatten.dim": "1",
    "cross_entropy.target": "(x[:, 0] > 0).to(i64)", "accuracy.target": "(x[:, 0] > 0).to(i64)",
    "synthetic.shape": "[4, 6, 6]", "synthetic.low": "0.0", "synthetic.high": "1.0", "linear.weight": "w2",
    "matmul.y": "x",
    "query": "x", "key": "x", "attn_mask": "x", "tensor": "(x > 0).to(i64)", "embed_dim": "6", "num_heads": "2",
    "d_model": "6", "nhead": "2", "encoder_layer": "TransformerEncoderLayer(6, 2, 8)", "num_layers": "2",
    "num_classes": "2", "scaled_dot_product_attention.value": "x", "arange.start": "0", "arange.end": "9",
    "k": "2", "tensordot.a": "x", "tensordot.b": "x.permute(2, 3, 0, 1)", "cross.input": "x[:, :3]", "other": "x[:, :3]",
    "dot.input": "x.flatten()", "dot.tensor": "x.flatten()", "input1": "x", "input2": "x", "bilinear.weight": "x[0]",
    "num_samples": "2", "mask_id": "1", "vocab": "9", "ids": "(x > 0).to(i64)", "x2": "x", "running_mean": "x[0, :, 0, 0]",
    "running_var": "x[0, :, 0, 0]", "anchor": "x", "positive": "x", "negative": "x", "cosine_embedding_loss.input1": "x[0, 0]",
    "cosine_embedding_loss.input2": "x[0, 0]", "cosine_embedding_loss.target": "x[0, 0, 0]", "multinomial.input": "x[0, 0]", "data": "[1, 2]",
    "img": "x[:, :3]", "color_jitter.x": "x[:, :3]", "angle": "30", "degrees": "30", "module": "Linear(6, 3)", "floor": "0.0",
    "brightness_factor": "0.5", "contrast_factor": "0.5", "saturation_factor": "0.5", "hue_factor": "0.5", "period": "10",
    "decoder_layer": "TransformerDecoderLayer(6, 2, 8)", "Transformer.d_model": "6", "Transformer.nhead": "2",
    "Transformer.num_encoder_layers": "1", "Transformer.num_decoder_layers": "1", "Transformer.dim_feedforward": "8",
    "auc.target": "(x > 0).to(i64)", "scores": "x", "in1_features": "6", "in2_features": "6", "linspace.start": "0.0", "inverse_sqrt_schedule.warmup": "10", "every": "10", "gamma": "0.5", "metric": "\"acc\"", "idx.shape": "[8]", "randint.size": "[2, 2]", "binary_cross_entropy_with_logits.target": "x",
}
# Sources: their files need not exist, because then only the number can be wrong.
GIVEN |= {f"{source}.samples": "8" for source in ("idx", "npy", "npz", "safetensors", "csv", "raw", "tokens", "text", "jsonl", "cifar10", "images")}
GIVEN |= {f"{source}.shape": "[8]" for source in ("npy", "npz", "safetensors", "raw")}
GIVEN |= {"rotary_frequencies.dim": "4", "quantile.q": "0.5", "posinf": "1.0", "neginf": "-1.0"}
GIVEN |= {"threshold": "0.5", "lerp.end": "x", "lerp.weight": "0.5", "repeats": "2", "upscale_factor": "2", "downscale_factor": "2",
          "fold.input": "x.reshape(-1, 16, 9)", "fold.output_size": "4", "Fold.output_size": "4", "fold.kernel_size": "2",
          "Fold.kernel_size": "2", "theta": "x[:, 0, :2, :3]", "affine_grid.size": "[2, 1, 3, 3]", "grid": "x[..., :2]", "x1": "x",
          "outer.input": "x.flatten()", "vec2": "x.flatten()[:3]", "diag.input": "x[0, 0]", "t.input": "x[0, 0]",
          "meshgrid.tensors": "[x.flatten()[:3], x.flatten()[:3]]", "scatter.index": "(x > 0).to(i64)", "scatter.value": "0.5",
          "scatter_reduce.index": "(x > 0).to(i64)", "scatter_reduce.src": "x", "scatter_reduce.reduce": "\"sum\"",
          "index_add.index": "arange(4)", "source": "x", "log_probs": "log_softmax(x[:, 0], 2)",
          "targets": "(x[0, 0, :, :2] > 0).to(i64) + 1", "input_lengths": "full([6], 2, dtype=i64)",
          "target_lengths": "full([6], 1, dtype=i64)"}
GIVEN |= {"npz.key": "\"x\"", "safetensors.key": "\"x\"", "csv.columns": "0", "csv.header": "false", "tokens.length": "9", "text.length": "9", "jsonl.length": "9",
          "tokenizer": "\"t.json\"", "jsonl.template": "\"chatml\"",
          "images.size": "8", "images.scale": "[0.5, 1]", "csv.dtype": "f32", "raw.dtype": "u8"}
# Arguments without annotation that may be lists of one number for each axis.
LISTS = ("columns", "dim", "dims", "dilation", "distance", "kernel_size", "normalized_shape", "output_padding", "output_size",
         "padding", "ratio", "scale", "scale_factor", "shape", "size", "split_size_or_sections", "stride")
# The inputs of a layer, and which tensor of its result is used, if they are not x and the result
# itself.
IMAGES = {"Conv1d": "x[:, :, 0]", "MaxPool1d": "x[:, :, 0]", "AvgPool1d": "x[:, :, 0]",
          "AdaptiveAvgPool1d": "x[:, :, 0]", "MaxPool3d": "x.unsqueeze(4)", "AvgPool3d": "x.unsqueeze(4)",
          "Conv3d": "x.unsqueeze(2)", "ConvTranspose1d": "x[:, :, 0]",
          "ConvTranspose3d": "x.unsqueeze(2)", "BatchNorm3d": "x.unsqueeze(2)", "BatchNorm1d": "x[:, :, 0, 0]", "TransformerEncoderLayer": "x[:, 0]",
          "Bilinear": "x, x", "CosineSimilarity": "x, x", "Fold": "x.reshape(-1, 16, 9)", "TransformerEncoder": "x[:, 0]",
          "TransformerDecoderLayer": "x[:, 0], x[:, 0]", "TransformerDecoder": "x[:, 0], x[:, 0]",
          "Transformer": "x[:, 0], x[:, 0]", "MultiheadAttention": "x[:, 0], x[:, 0], x[:, 0]"}
MAKERS = ("weight_norm", "spectral_norm")  # functions that return a layer
RESULT = {"mlm_mask": "y[0]", "finfo": "x", "sort": "y[0]", "median": "y[0]", "meshgrid": "y[0]", "topk": "y[0]", "cifar10": "[0]", "jsonl": "[0]", "images": "[0]", "split": "y[0]", "mixup": "y[0]", "MultiheadAttention": "y[0]", "chunk": "y[0]", "unbind": "y[0]", "numel": "x"}


def arguments(text):
    """(name, annotation, has a default) of "x, p: unit = 0.5, k: int(1, 2), mode: "a" | "b", shape=[1, 2]"."""
    depth, quoted, parts = 0, False, [""]
    for c in text:
        quoted ^= c == '"'
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    for part in filter(str.strip, parts):
        name, kind, default = re.match(r"\s*(\w+)\s*(?::\s*(\w+|\")[^=]*)?(=.*)?$", part, re.S).groups()
        yield name, "str" if kind == '"' else kind, default is not None


def of_tables():
    """The names of the defs that are made from tables: optimizers, schedules."""
    table = (ROOT / "compiler/graph/optimizers.def").read_text()
    names = re.findall(r"^AMPC_(?:OPTIMIZER|VARIANT|MEASURED|MATRICES)\((\w+)", table, re.M)
    rows = re.findall(r"AMPC_OP\((schedule_\w+),[^;]*?T_schedule", (ROOT / "compiler/graph/ops.def").read_text())
    return names + [row.removeprefix("schedule_") + "_schedule" for row in rows]


def library():
    """(file, def or module, arguments) of every public name, that is, one without a leading `_`."""
    for path in sorted((ROOT / "compiler/layers").glob("*.amp")):
        for name in of_tables() if path.stem == "optimizers" else ():
            done = subprocess.run([ampc, "--help-on", name], capture_output=True, text=True, check=True)
            yield path.stem, "def", name, list(arguments(re.match(r"\w+\((.*?)\)\n", done.stdout, re.S).group(1)))
        text = re.sub(r"#.*", "", path.read_text())
        for m in re.finditer(r"^(def|module) ([A-Za-z]\w*)(?:\((.*?)\))? *\{", text, re.M | re.S):
            yield path.stem, m.group(1), m.group(2), list(arguments(m.group(3) or ""))


def ops():
    """The ops that the language can name, with their attributes."""
    text = (ROOT / "compiler/graph/ops.def").read_text()
    for m in re.finditer(r"AMPC_OP\(\s*(\w+),\s*\"([^!\"][^\"]*)\"", text):
        inputs, _, attrs = m.group(2).partition(";")
        found = [(name.strip(" ?*"), "tensor", "?" in name) for name in inputs.split(",")]
        for attr in filter(str.strip, attrs.split(",")):
            name, _, kind = attr.partition(":")
            found.append((name.strip(), None if kind[0] in "ifa" else "bool", "=" in kind))
        if attrs:
            yield "ops", "def", m.group(1), found


def job(family, kind, name, call):
    """A training job with the call at a place where it is allowed."""
    init, members, y, optimizer, data, top = "normal_()", "", "x", "SGD(net, lr=0.1)", "synthetic(8, [4, 6, 6])", ""
    if family == "init" and kind == "def" and name.endswith("_"):
        init = call
    elif family == "init":
        members = f"  more = {call}\n"
    elif family == "optimizers" and name == "scaler":
        top = f"precision f16 {{ {call} }}\n"
    elif family == "optimizers":
        optimizer = f"SGD(net, lr={call})" if name.endswith("_schedule") else call
    elif family == "sources":
        data = call + RESULT.get(name, "")
    elif kind == "module" or name in MAKERS:
        members, y = f"  layer = {call}\n", f"layer({IMAGES.get(name, 'x')})"
    else:
        y = call
    return f"""module Net {{
  w = Parameter([4, 4, 3, 3], init={init})
  w2 = Parameter([3, 6], init=normal_())
{members}  def forward(x) {{
    x = x * w.mean()
    y = {y}
    return {"y" if family == "sources" else RESULT.get(name, "y")}.to(f32).sum() + w2.sum()
  }}
}}
model net = Net()
{top}optimizer opt = {optimizer}{" { only(rank=2) }" if optimizer.startswith("Muon") else ""}
data fake() {{ return {data} }}
train x in fake() with batch=2 {{ minimize net(x) with opt }}
eval x in fake() with batch=2 {{ metric acc = net(x) }}
"""


def call_with(name, all_arguments, argument, value):
    words = []
    for other, _, optional in all_arguments:
        needed = not optional or f"{name}.{other}" in GIVEN
        if other == argument:
            words.append(f"{other}={value}")
        elif needed:
            words.append(f"{other}={GIVEN.get(f'{name}.{other}', GIVEN.get(other))}")
    return f"{name}({', '.join(words)})"


def compile_job(text, folder, index):
    path = pathlib.Path(folder) / f"{index}.amp"
    path.write_text(text)
    done = subprocess.run([ampc, "-o", "-", str(path)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=100)
    return done.returncode, done.stderr.replace(str(path), "job.amp")


def cases():
    for family, kind, name, all_arguments in [*library(), *ops()]:
        for argument, annotation, _ in all_arguments:
            if annotation in ("bool", "str", "tensor") or GIVEN.get(argument, "").startswith("x"):
                continue
            forms = ["[%s]", "[%s, %s]"] if annotation == "list" else ["%s", "[%s, %s]"]
            if annotation != "list" and (annotation or argument not in LISTS):
                forms = ["%s"]
            if argument == "part":  # start and end
                forms = ["%s", "[%s, 1]", "[0, %s]"]
            for form in forms:
                for label, number in NUMBERS.items():
                    call = call_with(name, all_arguments, argument, form.replace("%s", number))
                    yield f"{name}.{argument} {form.replace('%s', 'N')}", label, job(family, kind, name, call)


def main():
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        todo = list(cases())
        texts = {}
        for _, _, text in todo:
            texts.setdefault(text, len(texts))
        answers = dict(zip(texts, pool.map(lambda item: compile_job(item[0], folder, item[1]), texts.items())))
    taken, failed = {}, 0
    for argument, label, text in todo:
        status, messages = answers[text]
        # 3: the file of a source does not exist
        taken.setdefault(argument, []).extend([label] if status == 0 else [])
        if status not in (0, 1, 3) or "bug" in messages or "runtime error" in messages or (
                status and "error[" not in messages):
            failed += 1
            print(f"FAILED: {argument} with {label}: status {status}\n{messages[-1500:]}\n{text}")
    found = "".join(f"{argument}: {' '.join(labels) or 'none'}\n" for argument, labels in taken.items())
    if "--rewrite" in sys.argv[2:]:
        expected.write_text(found)
    elif found != expected.read_text():
        failed += 1
        print("".join(difflib.unified_diff(expected.read_text().splitlines(True), found.splitlines(True),
                                           "numbers.expected", "now")))
    print(f"{len(texts)} jobs, {len(taken)} arguments, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
