#!/usr/bin/env python3
"""Imports the ONNX models in nets/. The jobs are as in NAME.expected; their results are PyTorch's, in NAME.npz;
after two steps of training, the weights have the names and shapes of PyTorch's net, in NAME.names. `amp export` and
a second `amp import` change no result.
usage: import.py BUILD [--rewrite] [NAME..]
"""
import array
import ast
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nets")
REFUSED = {"folded", "fresh_folded", "other", "branches", "slices"}  # no weights of PyTorch's net
TOLERANCE = 2e-6
OPTIONS = {"open": ["--size", "x=3,27,36"], "other": ["--train", "Const:0", "--freeze", "seq_norm_*,coefficient"]}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def npy(data):
    """The shape and numbers of an array in NumPy's format."""
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    numbers = array.array({"<f4": "f", "<i8": "q"}[header["descr"]])
    numbers.frombytes(data[10 + size:])
    return header["shape"], numbers


def weights(path):
    """The names and shapes in a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return sorted(f"{name} {entry['shape']}" for name, entry in header.items() if name != "__metadata__")


def check_results(name, amp, job, folder):
    with zipfile.ZipFile(f"{HERE}/{name}.npz") as file:
        arrays = {entry[:-4]: npy(file.read(entry)) for entry in file.namelist()}
    inputs = [key for key in arrays if key[0] == "x"]
    results = [key for key in arrays if key[0] == "y"]
    with open(job, encoding="utf-8") as file:
        block = file.read().split("infer predict(")[1]
    names = [part.split(":")[0].strip() for part in block.split(") {")[0].split("],")]
    command = [amp, "infer", job, "--set", "precision=f32", "-D", "BATCH=2", "-q"]
    for key, argument in zip(inputs, names):
        command += ["--input", f"{argument}={HERE}/{name}.npz:{key}"]
    for i, key in enumerate(results):
        command += ["--output", (f"predict.{i}=" if len(results) > 1 else "") + f"{folder}/{key}.npy"]
    run(*command)
    for key in results:
        with open(f"{folder}/{key}.npy", "rb") as file:
            shape, numbers = npy(file.read())
        os.remove(f"{folder}/{key}.npy")
        if shape != arrays[key][0]:
            sys.exit(f"{name}: {key} is {shape}, PyTorch's is {arrays[key][0]}")
        scale = max(map(abs, arrays[key][1]))
        worst = max(abs(a - b) for a, b in zip(numbers, arrays[key][1])) / scale
        if not worst <= TOLERANCE:
            sys.exit(f"{name}: {key} differs from PyTorch's by {worst:.1e} of the largest number")


def check_step(name, amp, job, folder):
    """A step of SGD, as in make_fixtures.py."""
    with zipfile.ZipFile(f"{HERE}/{name}.npz") as file:
        after = {entry[6:-4]: npy(file.read(entry)) for entry in file.namelist() if entry.startswith("after.")}
    if not after:
        return
    with open(job, encoding="utf-8") as file:
        text = file.read().split("optimizer opt")[0]
    text += f"""optimizer opt = SGD(net, lr=0.1)
data drawn() {{ return npz("{HERE}/{name}.npz", "x0") }}
train x in drawn() with batch=2, epochs=1, shuffle=false {{ minimize net(x).square().mean() with opt }}
"""
    with open(f"{folder}/step.amp", "w", encoding="utf-8") as file:
        file.write(text)
    run(amp, "train", f"{folder}/step.amp", "--save-weights", f"{folder}/step.safetensors", "-q")
    with open(f"{folder}/step.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    for key, (_, numbers) in after.items():
        begin, end = header[key]["data_offsets"]
        got = array.array(numbers.typecode)
        got.frombytes(data[begin:end])
        scale = max(max(map(abs, numbers)), 1e-2)
        worst = max(abs(a - b) for a, b in zip(got, numbers)) / scale
        if not worst <= 1e-4:
            sys.exit(f"{name}: after a step {key} differs from PyTorch's by {worst:.1e} of the largest number")


def check(name, build, rewrite):
    with tempfile.TemporaryDirectory() as folder:
        job, amp = f"{folder}/{name}.amp", f"{build}/amp"
        said = run(amp, "import", *OPTIONS.get(name, []), f"{HERE}/{name}.onnx", "-o", job)
        said = said.replace(f"{folder}/", "")
        with open(job, encoding="utf-8") as file:
            text = file.read() + "".join(f"# {line}\n" for line in said.splitlines())
        if rewrite:
            with open(f"{HERE}/{name}.expected", "w", encoding="utf-8") as file:
                file.write(text)
        with open(f"{HERE}/{name}.expected", encoding="utf-8") as file:
            if file.read() != text:
                sys.exit(f"{name}: the job differs from {name}.expected:\n{text}")
        check_results(name, amp, job, folder)
        check_step(name, amp, job, folder)
        if name in REFUSED or "\ntrain " not in text:
            return
        os.mkdir(f"{folder}/again")
        again = f"{folder}/again/{name}.amp"
        run(amp, "export", "-q", job, "--set", "precision=f32", "-o", f"{folder}/{name}.onnx")
        run(amp, "import", "-q", f"{folder}/{name}.onnx", "-o", again)
        check_results(name, amp, again, folder)
        run(amp, "train", job, "--steps", "2", "--save-weights", f"{folder}/back.safetensors", "-q")
        with open(f"{HERE}/{name}.names", encoding="utf-8") as file:
            names = sorted(file.read().splitlines())
        if weights(f"{folder}/back.safetensors") != names:
            sys.exit(f"{name}: the names of the weights differ from PyTorch's:\n" +
                     "\n".join(set(weights(f"{folder}/back.safetensors")) ^ set(names)))


arguments = [a for a in sys.argv[2:] if a != "--rewrite"]
all_names = sorted(f[:-5] for f in os.listdir(HERE) if f.endswith(".onnx"))
for each in arguments or all_names:
    check(each, sys.argv[1], "--rewrite" in sys.argv)
    print(f"{each}: as in PyTorch")
