#!/usr/bin/env python3
"""Imports folders of Hugging Face and compares them with transformers: logits or hidden states, gradients of a step of
SGD, and the job's own step. nets.py made the folders; expected.safetensors of each has the numbers of transformers.
usage: folder.py AMP [--folder FOLDER] [--strict] [--faults] [NAME..]
NAME files: only shards and types of GGUF.
--faults: wrong constants in the jobs; the comparison must notice each.
--strict (needs PyTorch, transformers and gguf): makes all folders of nets.py first, compares whole gradients, and loads the
saved weights into the nets of transformers."""
import argparse
import array
import json
import math
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOGITS = 2e-5  # relative to the largest number: f32 beside float64
GRADIENTS = 1e-4  # relative to the norm of a gradient: weights after a step minus weights before it, in f32
FAULTS = {"llama3": "ROPE_THETA=450.0 ROPE_FACTOR=4.0 ROPE_CONTEXT=12 ROPE_HIGH=3.0 ROPE_SCALE=1.01 INTERLEAVED=true EPS=1e-3",
          "mistral": "WINDOW=4 SLIDES=false", "qwen2_window": "WINDOW=4 SLIDES=false", "qwen3": "EPS=1e-3",
          "gemma2": "SOFTCAP=0.0 LOGIT_SOFTCAP=1.6 QUERY_SCALAR=6.0 NORM_SHIFT=0.0 WINDOW=4", "gpt2_bare": "SCALED=false GELU=none",
          "gpt_neox_old": "PARALLEL=false ROTARY=1.0 ROPE_THETA=450.0 GELU=tanh", "bert": "GELU=tanh PAD=3 EPS=1e-3",
          "modernbert": "LOCAL=4 LOCAL_ROPE_THETA=160000.0 ROPE_THETA=10000.0 GELU=tanh PAD=1"}
TRAIN = """
data both() {
  return npy("ids.npy", shape=[LENGTH], dtype=i64, samples=1), npy("targets.npy", shape=[LENGTH], dtype=i64, samples=1)
}
train ids, target in both() with batch=1, steps=1 {
  minimize cross_entropy(net(ids).flatten(0, 1), target.flatten()) with opt
}
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def tensors(path):
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            numbers = array.array({"F32": "f", "I64": "q"}[entry["dtype"]])
            numbers.frombytes(data[8 + size + begin:8 + size + end])
            out[name] = (entry["shape"], numbers)
    return out


def write_npy(path, kind, shape, numbers):
    head = str({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + numbers.tobytes())


def read_npy(path):
    data = path.read_bytes()
    numbers = array.array("f")
    numbers.frombytes(data[10 + struct.unpack("<H", data[8:10])[0]:])
    return numbers


def norm(numbers):
    return sum(v * v for v in numbers) ** 0.5


def difference(found, expected):
    return max(abs(a - b) for a, b in zip(found, expected)) / max(map(abs, expected))


def compare(what, found, expected, bound):
    assert len(found) == len(expected), f"{what}: {len(found)} numbers instead of {len(expected)}"
    worst = difference(found, expected)
    if not worst <= bound:
        sys.exit(f"{what} differ by {worst:.1e} of the largest number; up to {bound} is right")
    return worst


def infer(amp, job, block, shape, work, *more):
    run(amp, "infer", "-q", "--device", "cpu", "--set", "precision=f32", "--block", block, "--input", work / "ids.npy", "--output",
        work / "out.npy", "-D", f"BATCH={shape[0]}", "-D", f"LENGTH={shape[1]}", *more, job)
    return read_npy(work / "out.npy")


def step_text(text, encoder):
    """The job with a step of SGD, whose update is the gradient."""
    text, count = re.subn(r"optimizer opt = .*?(?=\nprecision)", "optimizer opt = SGD(net, lr=1.0)", text, flags=re.S)
    assert count == 1
    text = re.sub(r"text\(DATA, TOKENIZER, (length=[^,]*), samples=1000\)", r'tokens("data.bin", \1)', text)
    if encoder:  # its own train block masks tokens at random
        text = text.split("\ndata corpus()")[0] + TRAIN
    return text


def check_gradients(name, amp, folder, job, expected, work):
    before, encoder = tensors(folder / "model.safetensors"), "hidden" in expected
    shape, ids = expected["ids"]
    write_npy(work / "ids.npy", "<i8", [1, shape[1]], ids[:shape[1]])
    write_npy(work / "targets.npy", "<i8", [1, shape[1]], expected["targets"][1][:shape[1]])
    (work / "data.bin").write_bytes(array.array("H", ids[:shape[1]]).tobytes())
    step = work / "step.amp"
    step.write_text(step_text(job.read_text(), encoder))
    length = shape[1] if encoder else shape[1] - 1
    run(amp, "train", "-q", "--device", "cpu", "--set", "precision=f32", "-D", "BATCH=1", "-D", f"LENGTH={length}", "--steps", 1,
        "--save-weights", work / "w.safetensors", step)
    after = tensors(work / "w.safetensors")
    whole = tensors(folder / "gradients.safetensors") if (folder / "gradients.safetensors").exists() else {}

    worst, seen, prefixes = 0.0, 0, {"gpt2_bare": "transformer."}
    for key, (_, wanted) in expected.items():
        if not key.startswith("gradient."):
            continue
        key = key[9:]
        own = key[len(prefixes.get(name, "")):]
        if own not in before:
            continue  # a tied name
        g = [a - b for a, b in zip(before[own][1], after[key][1])]
        if key in whole:
            found, wanted = g, whole[key][1]
        else:
            found = [norm(g), sum(v * math.cos(i) for i, v in enumerate(g))]
        scale = norm(wanted) if key in whole else wanted[0]
        worst = max(worst, max(abs(a - b) for a, b in zip(found, wanted)) / max(scale, 0.01))
        seen += 1
        if not worst <= GRADIENTS:
            sys.exit(f"{name}: the gradient of {key} differs by {worst:.1e} of its norm; up to {GRADIENTS} is right")
    assert seen > 5, f"{name}: only {seen} gradients were compared"
    return worst


def check(name, amp, folder, work):
    expected, job = tensors(folder / "expected.safetensors"), work / "net.amp"
    run(amp, "import", folder, "-o", job)
    shape, ids = expected["ids"]
    write_npy(work / "ids.npy", "<i8", shape, ids)
    worst = 0.0
    if "hidden" in expected:
        worst = compare(f"{name}: hidden states", infer(amp, job, "hidden", shape, work), expected["hidden"][1], LOGITS)
        compare(f"{name}: vectors", infer(amp, job, "embed", shape, work), expected["embed"][1], LOGITS)
    else:
        worst = compare(f"{name}: logits", infer(amp, job, "next", shape, work), expected["logits"][1], LOGITS)
    text = f"{name}: results {worst:.1e}"
    if (folder / "model.gguf").exists():
        own = work / "gguf" / "net.amp"
        own.parent.mkdir()
        run(amp, "import", folder / "model.gguf", "-o", own)
        worst = compare(f"{name}: logits of GGUF", infer(amp, own, "next", shape, work), expected["logits"][1], LOGITS)
        text += f", GGUF {worst:.1e}"
    if "logits" in expected:
        text += f", gradients {check_gradients(name, amp, folder, job, expected, work):.1e}"
    return text


def check_faults(amp, work):
    for name, faults in FAULTS.items():
        folder, job = HERE / "nets" / name, work / name / "net.amp"
        job.parent.mkdir()
        run(amp, "import", "-q", folder, "-o", job)
        expected = tensors(folder / "expected.safetensors")
        what = "hidden" if "hidden" in expected else "logits"
        write_npy(work / "ids.npy", "<i8", *expected["ids"])
        for fault in faults.split():
            found = infer(amp, job, "hidden" if what == "hidden" else "next", expected["ids"][0], work, "-D", fault)
            worst = difference(found, expected[what][1])
            print(f"{name} with {fault}: {worst:.1e}", flush=True)
            assert not worst <= LOGITS, "the comparison does not notice it"


def check_shards(amp, work):
    """The weights of a net in two files with an index."""
    folder, net = work / "shards", HERE / "nets/llama3"
    folder.mkdir()
    shutil.copy(net / "config.json", folder)
    data = (net / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    entries = [(key, entry) for key, entry in json.loads(data[8:8 + size]).items() if key != "__metadata__"]
    places = {}
    for i, part in enumerate([entries[:7], entries[7:]]):
        header, body = {}, b""
        for key, entry in part:
            begin, end = entry["data_offsets"]
            header[key] = {**entry, "data_offsets": [len(body), len(body) + end - begin]}
            body += data[8 + size + begin:8 + size + end]
            places[key] = f"model-{i}.safetensors"
        text = json.dumps(header).encode()
        (folder / f"model-{i}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    expected = tensors(net / "expected.safetensors")
    run(amp, "import", folder, "-o", folder / "net.amp")
    write_npy(work / "ids.npy", "<i8", *expected["ids"])
    compare("shards", infer(amp, folder / "net.amp", "next", expected["ids"][0], work), expected["logits"][1], LOGITS)
    print("two shards: equal logits")


def check_types(amp, work):
    """Each type of GGUF, in random blocks: the bits must be those of the package gguf."""
    run(amp, "weights", "--type", "f32", HERE / "types.gguf", work / "types.safetensors")
    found, expected = tensors(work / "types.safetensors"), tensors(HERE / "types.safetensors")
    assert set(found) == set(expected)
    for key, (shape, numbers) in expected.items():
        assert found[key][0] == shape and found[key][1].tobytes() == numbers.tobytes(), f"{key} differs"
    print(f"{len(found)} types of GGUF: equal bits")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("amp")
    options.add_argument("--folder", type=Path, default=HERE / "nets")
    options.add_argument("--strict", action="store_true")
    options.add_argument("--faults", action="store_true")
    options.add_argument("names", nargs="*", type=lambda name: Path(name).name)
    options = options.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as beside:
        if options.faults:
            check_faults(options.amp, Path(made))
            return
        folder = options.folder
        nets = None
        if options.strict:
            try:
                import nets
            except ImportError:
                print("SKIPPED: no PyTorch, transformers or gguf")
                sys.exit(77)
            folder = Path(made)
            for name in options.names or nets.NETS:
                nets.make(name, folder / name, whole=True)
                if name in nets.GGUFS:
                    nets.make_gguf(name, folder / name, folder / name / "model.gguf")
        if not options.names or "files" in options.names:
            check_types(options.amp, Path(beside))
            check_shards(options.amp, Path(beside))
        for name in [n for n in options.names if n != "files"] if options.names else sorted(path.name for path in folder.iterdir()):
            with tempfile.TemporaryDirectory() as work:
                text = check(name, options.amp, folder / name, Path(work))
                if nets and (Path(work) / "w.safetensors").exists():
                    nets.strict(name, folder / name, Path(work) / "w.safetensors")
                    text += ", strict"
            print(text, flush=True)


if __name__ == "__main__":
    main()
