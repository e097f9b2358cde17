#!/usr/bin/env python3
"""torch2safetensors.py SCRIPT AMP: tests the files that scripts/torch2safetensors makes from files of torch.save,
and that `load` reads them. Exits with status 77 (skipped) without PyTorch."""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
except ImportError:
    sys.exit(77)

SCRIPT, AMP = (str(Path(a).resolve()) for a in sys.argv[1:3])
JOB = """model net = Sequential(Linear(3, 2), BatchNorm1d(2)) {{ load("{0}") }}
data points() {{ return synthetic(4, [3]) }}
eval x in points() with batch=4 {{ metric w = sum(net[0].weight) }}
"""


def run(*arguments, status=0, says=""):
    done = subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status and says in done.stdout + done.stderr, (arguments, done)


def tensors(path):
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + n])
    header.pop("__metadata__")
    return {k: (e["dtype"], e["shape"], raw[8 + n :][slice(*e["data_offsets"])]) for k, e in header.items()}


with tempfile.TemporaryDirectory() as folder:
    work = Path(folder)
    torch.manual_seed(1)
    torch.save({"a": torch.ones(1)}, work / "over.pt")
    before = (work / "over.pt").read_bytes()
    (work / "link.safetensors").symlink_to("over.pt")
    (work / "mine.safetensors").write_text("mine, not a tensor file")
    run(work / "over.pt", work / "over.pt", status=1, says="which this command reads")
    run(work / "over.pt", work / "link.safetensors", status=1, says="which this command reads")
    run(work / "over.pt", work / "mine.safetensors", status=1, says="no safetensors file")
    assert (work / "over.pt").read_bytes() == before
    assert (work / "mine.safetensors").read_text().startswith("mine")
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    state = net.state_dict()
    torch.save(state, work / "plain.pth")
    run(work / "plain.pth", says="7 tensors")
    plain = tensors(work / "plain.safetensors")
    assert list(plain) == list(state)
    assert plain["0.weight"] == ("F32", [2, 3], state["0.weight"].numpy().tobytes())
    assert plain["1.num_batches_tracked"] == ("I64", [], bytes(8))

    wrapped = {f"module.{k}": v for k, v in state.items()}
    for name, value in {"a": {"state_dict": wrapped, "epoch": 3}, "b": {"model": state, "optimizer": {}}, "c": wrapped}.items():
        torch.save(value, work / f"{name}.pt")
        run(work / f"{name}.pt", work / "out.safetensors")
        assert tensors(work / "out.safetensors") == plain, name
    torch.save({"model": state, "ema": state}, work / "two.pt")
    run(work / "two.pt", status=1, says="several: model, ema")
    run(work / "two.pt", "--key", "ema", says="7 tensors")
    run(work / "two.pt", "--key", "best", status=1, says="has no best: it has model, ema")
    torch.save({"weights": state}, work / "odd.pt")
    run(work / "odd.pt", status=1, says="it has weights; say where it is with --key")
    torch.save([1, 2], work / "list.pt")
    run(work / "list.pt", status=1, says="it has list")
    torch.save(net, work / "program.pt")
    run(work / "program.pt", status=1, says="is no file of tensors alone")
    (work / "text.pt").write_text("hello")
    run(work / "text.pt", status=1, says="is no file of tensors alone")
    run(work / "gone.pt", status=1, says="cannot read")
    run(work / "plain.pth", work / "no" / "where.safetensors", status=1, says="cannot write")

    kinds = {"f16": torch.tensor([1.5, -2]).half(), "bf16": torch.tensor([[1.5], [-2]]).bfloat16(),
             "turned": torch.arange(6.0).reshape(2, 3).t(), "empty": torch.zeros(0, 3), "b": torch.tensor(True)}  # fmt: skip
    torch.save({**kinds, "step": 3}, work / "kinds.pt")
    run(work / "kinds.pt", says="left out, no tensors: step")
    made = tensors(work / "kinds.safetensors")
    assert made["f16"] == ("F16", [2], struct.pack("<2e", 1.5, -2)) and made["bf16"][:2] == ("BF16", [2, 1])
    assert made["turned"] == ("F32", [3, 2], struct.pack("<6f", 0, 3, 1, 4, 2, 5)) and made["empty"][2] == b""
    torch.save({"z": torch.complex(torch.zeros(1), torch.ones(1))}, work / "complex.pt")
    run(work / "complex.pt", status=1, says="safetensors has no such tensor")

    (work / "job.amp").write_text(JOB.format("plain.safetensors"))
    done = subprocess.run([AMP, "eval", "--device", "cpu", str(work / "job.amp")], capture_output=True, text=True)
    assert done.returncode == 0 and "loaded 7 of 7" in done.stderr, done
    got = float(done.stdout.split()[-1])
    assert abs(got - float(state["0.weight"].sum())) < 1e-4, (got, state["0.weight"].sum())
print("torch2safetensors: ok")
