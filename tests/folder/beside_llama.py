#!/usr/bin/env python3
"""llama.cpp reads what `amp export --gguf` writes: logits, greedy continuations and ids of texts are those of ampc. Skipped
(77) without pip's llama-cpp-python; its package compiles llama.cpp, which takes ten minutes. The package gguf reads the
files, too, if it is there.
usage: beside_llama.py AMP [NAME..]
"""
import array
import json
import random
import struct
import sys
import tempfile
import unicodedata
from pathlib import Path

from folder import difference, infer, run, tensors, write_npy
from gguf_export import FIXTURES, HERE, NETS, defined, export, imported, small

try:
    import llama_cpp
except ImportError:
    print("SKIPPED: no llama-cpp-python")
    sys.exit(77)
LOGITS = {"f32": 5e-5, "f16": 2e-3}  # relative to the largest; llama.cpp also rounds the operands of f16 products
FLIPS = 8  # in f16 the bound is so many times larger with GELU: near values may become neighbours in its table
PROMPTS, LENGTH, MORE = 20, 5, 12
# llama.cpp looks GELU up in a table of f16. With it, ampc's logits must be as near as without GELU.
GELU = {"gpt2_bare": ("gelu(c_fc(x), approximate=GELU)", "gelu(c_fc(x).to(f16).to(f32), approximate=\"tanh\").to(f16).to(f32)"),
        "gpt_neox_old": ("gelu(dense_h_to_4h(x), approximate=GELU)",
                         "gelu(dense_h_to_4h(x).to(f16).to(f32), approximate=\"tanh\").to(f16).to(f32)"),
        "gemma2": ("gelu(gate_proj(x), approximate=\"tanh\")",
                   "gelu(gate_proj(x).to(f16).to(f32), approximate=\"tanh\").to(f16).to(f32)")}


def open_net(path):
    return llama_cpp.Llama(str(path), n_ctx=64, n_batch=64, logits_all=True, verbose=False, n_threads=1, type_k=llama_cpp.GGML_TYPE_F32,
                           type_v=llama_cpp.GGML_TYPE_F32, flash_attn=False)


def logits(net, ids):
    net.reset()
    net.eval(list(ids))
    return [[float(v) for v in row] for row in net.scores[:len(ids)]]


def greedy(net, ids, n):
    ids = list(ids)
    for _ in range(n):
        last = logits(net, ids)[-1]
        ids.append(max(range(len(last)), key=last.__getitem__))
    return ids


def check_gguf(path):
    """The package gguf finds the same tensors and metadata as our reader."""
    try:
        import gguf
    except ImportError:
        return
    from gguf_export import written
    meta, made = written(path)
    reader = gguf.GGUFReader(str(path))
    assert {t.name: (int(t.tensor_type), t.data.tobytes()) for t in reader.tensors} == {k: (v[0], v[2]) for k, v in made.items()}
    for key, value in meta.items():
        assert reader.fields[key].contents() == value, key


def check_net(amp, name, work):
    more = defined(NETS[name])
    job = imported(amp, HERE / "nets" / name, work / name)
    shape, ids = tensors(HERE / "nets" / name / "expected.safetensors")["ids"]
    write_npy(work / "ids.npy", "<i8", shape, ids)
    export(amp, job, work / "f32.gguf", "--type", "f32", *more)
    export(amp, job, work / "f16.gguf", *more)
    check_gguf(work / "f16.gguf")
    if name in GELU:
        old, new = GELU[name]
        assert old in job.read_text()
        job.write_text(job.read_text().replace(old, new))
    own, text = infer(amp, job, "next", shape, work, *more), name + ":"
    row = len(own) // shape[0]
    for kind, bound in LOGITS.items():
        net, worst = open_net(work / f"{kind}.gguf"), 0
        for i in range(shape[0]):
            found = logits(net, ids[i * shape[1]:(i + 1) * shape[1]])
            worst = max(worst, difference([v for one in found for v in one], own[i * row:(i + 1) * row]))
        assert worst <= bound * (FLIPS if name in GELU and kind == "f16" else 1), f"{name}: logits of llama.cpp in {kind} differ by {worst:.1e}"
        text += f" {kind} {worst:.1e},"
    net, draw = open_net(work / "f32.gguf"), random.Random(1)
    for _ in range(PROMPTS):
        prompt = [draw.randrange(len(own) // shape[0] // shape[1]) for _ in range(LENGTH)]
        (work / "p.bin").write_bytes(array.array("H", prompt).tobytes())
        said = run(amp, "infer", "-q", "--device", "cpu", "--set", "precision=f32", "-D", "BATCH=1", "-D", f"LENGTH={LENGTH + MORE}", *more,
                   "--generate", MORE, "--temperature", 0, "--prompt-file", work / "p.bin", job)
        assert [int(word) for word in said.split()] == greedy(net, prompt, MORE), f"{name}: {prompt} goes on otherwise"
    print(f"{text} {PROMPTS} equal continuations", flush=True)


def check_tokenizer(amp, name, work):
    file = FIXTURES / name
    work.mkdir()
    own = work / name
    own.write_bytes(file.read_bytes())
    if file.suffix == ".json":
        root = json.loads(file.read_text())
        root["added_tokens"] = [t for t in root["added_tokens"] if not any(t[k] for k in ("single_word", "lstrip", "rstrip", "normalized"))]
        own.write_text(json.dumps(root))
    (work / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>" if name in ("llama2.json", "spm_bpe.model") else "<|end|>"}))
    export(amp, small(amp, work, 810, name), work / "net.gguf")
    net = open_net(work / "net.gguf")
    count = 0
    for text in json.loads((FIXTURES / "texts.json").read_text()):
        if not text or len(text) > 3000 or "\0" in text or "<" in text:
            continue
        if name == "qwen.json" and unicodedata.normalize("NFC", text) != text:
            continue  # llama.cpp does not normalize
        if name == "spm_bpe.model" and "the" in text:
            continue  # a token of the user, around which llama.cpp splits first
        (work / "text").write_text(text, newline="")
        run(amp, "tokens", "--force", "--tokenizer", own, "--no-special", work / "text", "-o", work / "ids.bin")
        data = (work / "ids.bin").read_bytes()
        ids = list(struct.unpack(f"<{len(data) // 2}H", data))
        found = net.tokenize(text.encode(), add_bos=False, special=True)
        assert found == ids, f"{name}: {text!r}\n{found}\n{ids}"
        count += 1
    print(f"{name}: equal ids of {count} texts", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for one in sys.argv[2:] or [*NETS, "gpt2.json", "llama3.json", "qwen.json", "llama2.json", "spm_bpe.model"]:
            (check_net if one in NETS else check_tokenizer)(sys.argv[1], one, Path(made) / one if one not in NETS else Path(made))
