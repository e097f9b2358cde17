#!/usr/bin/env python3
"""`amp export --gguf`: nets/ as GGUF files. Their import gives the same net and the same bits; q8_0 has the bits of the
package gguf (q8_0.safetensors, made by nets.py); a job that GGUF cannot express is refused by name.
usage: gguf_export.py AMP NET    a net of nets/
       gguf_export.py AMP files  types, tokenizers, refused jobs
"""
import array
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf_file
from folder import compare, infer, read_npy, run, tensors, write_npy

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "tokenizers/fixtures"
NETS = {"llama3": "", "qwen3": "", "gpt2_bare": "", "gpt_neox_old": "", "gemma2": "QUERY_SCALAR=6.0",  # what llama.cpp has
        "mistral": "SLIDES=false WINDOW=0", "qwen2_window": "SLIDES=false"}
SAME = 2e-6  # logits, relative to the largest: the same numbers in another order of features
NUMBERS = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}
FILE_TYPES = {"f32": 0, "f16": 1, "q8_0": 7, "bf16": 32}
LLAMA = {"general.architecture": "llama", "llama.block_count": 2, "llama.context_length": 32, "llama.embedding_length": 12,
         "llama.feed_forward_length": 20, "llama.attention.head_count": 2, "llama.attention.head_count_kv": 2,
         "llama.attention.key_length": 6, "llama.attention.value_length": 6, "llama.rope.dimension_count": 6,
         "llama.rope.freq_base": 500.0, "llama.vocab_size": 29, "general.file_type": 0, "general.alignment": 32,
         "general.name": "net", "general.quantization_version": 2, "tokenizer.ggml.model": "none"}


def export(amp, job, out, *more):
    return run(amp, "export", "--gguf", out, *more, job)


def written(path):
    return gguf_file.read(Path(path).read_bytes())


def floats(data):
    return sorted(struct.unpack(f"<{len(data) // 4}f", data))


def defined(text):
    return [word for one in text.split() for word in ("-D", one)]


def imported(amp, net, folder):
    folder.mkdir()
    run(amp, "import", "-q", net, "-o", folder / "net.amp")
    return folder / "net.amp"


def check_net(amp, name, work):
    net, more = HERE / "nets" / name, defined(NETS[name])
    job = imported(amp, net, work / "own")
    said = export(amp, job, work / "net.gguf", "--type", "f32", *more)
    assert "has no tokenizer" in said and "token numbers only" in said, said
    assert ("llama.cpp computes GELU by tanh" in said) == (name == "gpt_neox_old"), said
    again = imported(amp, work / "net.gguf", work / "again")
    export(amp, again, work / "again.gguf", "--type", "f32")
    assert (work / "net.gguf").read_bytes() == (work / "again.gguf").read_bytes(), "another file after its import"

    meta, made = written(work / "net.gguf")
    source = [floats(array.array("f", numbers).tobytes()) for _, numbers in tensors(net / "model.safetensors").values()]
    norms = name == "gemma2"  # llama.cpp's are larger by 1
    for key, (kind, _, data) in made.items():
        assert kind == 0
        if "norm" in key and norms:
            assert any(len(s) == len(data) // 4 and all(abs(a + 1 - b) < 1e-6 for a, b in zip(s, floats(data))) for s in source), key
        elif key != "rope_freqs.weight":
            assert floats(data) in source, f"{key}: its numbers are not those of a weight"
    if name == "llama3":
        for key, value in LLAMA.items():
            assert meta[key] == value, f"{key}: {meta[key]}"
        assert set(meta) - set(LLAMA) == {"llama.attention.layer_norm_rms_epsilon"}
    if (net / "model.gguf").exists():  # the package gguf wrote it
        for key, (kind, shape, data) in written(net / "model.gguf")[1].items():
            assert made[key][:2] == (kind, shape), key
            worst = max(abs(a - b) for a, b in zip(floats(made[key][2]), floats(data)))
            assert made[key][2] == data or (key == "rope_freqs.weight" and worst < 1e-6), key

    shape, ids = tensors(net / "expected.safetensors")["ids"]
    write_npy(work / "ids.npy", "<i8", shape, ids)
    gelu = ["-D", "GELU=tanh"] if name == "gpt_neox_old" else []
    own = infer(amp, job, "next", shape, work, *more, *gelu)
    worst = compare("logits", infer(amp, again, "next", shape, work), own, SAME)
    for kind, bound in (("f16", 6e-4), ("bf16", 5e-3), ("q8_0", 6e-4)):  # rows of 12 are no blocks of q8_0: f16
        export(amp, job, work / f"{kind}.gguf", "--type", kind, *more)
        meta, narrow = written(work / f"{kind}.gguf")
        assert meta["general.file_type"] == FILE_TYPES[kind]
        for key, (number, shape, data) in narrow.items():
            matrix = len(shape) == 2 and key != "position_embd.weight"
            assert number == (NUMBERS["f16" if kind == "q8_0" else kind] if matrix else 0), key
        run(amp, "weights", "--type", "f32", work / f"{kind}.gguf", work / "narrow.safetensors", "--force")
        for key, (_, numbers) in tensors(work / "narrow.safetensors").items():
            whole = struct.unpack(f"<{len(numbers)}f", made[key][2])
            assert all(abs(a - b) <= bound * abs(b) + 1e-7 for a, b in zip(numbers, whole)), f"{kind}: {key}"
    print(f"{name}: logits {worst:.1e}")


# ---- a net with wide rows and a vocabulary ----

def small(amp, work, vocab, tokenizer="tokenizer.json", **first):
    """A job of a small Llama with drawn weights; `first`: tensors that are given."""
    width, inner = 64, 96
    config = {"model_type": "llama", "vocab_size": vocab, "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": 1,
              "num_attention_heads": 2, "tie_word_embeddings": True}
    draw, before = random.Random(5), "model.layers.0."
    shapes = {"model.embed_tokens.weight": [vocab, width], "model.norm.weight": [width],
              before + "input_layernorm.weight": [width], before + "post_attention_layernorm.weight": [width]}
    shapes.update({f"{before}self_attn.{k}_proj.weight": [width, width] for k in "qkvo"})
    shapes.update({f"{before}mlp.{k}_proj.weight": [width, inner] if k == "down" else [inner, width] for k in ("gate", "up", "down")})
    header, body = {}, b""
    for key, shape in shapes.items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        data = first.get(key.split(".")[1]) or array.array("f", [draw.gauss(0, 0.1) for _ in range(n)]).tobytes()
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    (work / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    (work / "config.json").write_text(json.dumps(config))
    run(amp, "import", "-q", "--force", work, "-o", work / "net.amp")
    (work / "net.amp").write_text((work / "net.amp").read_text().replace('"tokenizer.json"', f'"{tokenizer}"'))
    return work / "net.amp"


def check_q8_0(amp, work):
    data = (HERE / "q8_0.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    entries = {key: data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]]
               for key, e in json.loads(data[8:8 + size]).items() if key != "__metadata__"}
    job = small(amp, work, 16, embed_tokens=entries["x"])
    export(amp, job, work / "net.gguf", "--type", "q8_0")
    _, made = written(work / "net.gguf")
    assert made["token_embd.weight"] == (8, [16, 64], entries["blocks"]), "q8_0 has other bits than the package gguf"
    assert made["output_norm.weight"][0] == 0 and made["blk.0.ffn_down.weight"][0] == 8
    _, whole = written(export(amp, job, work / "f32.gguf", "--type", "f32") and work / "f32.gguf")
    again = imported(amp, work / "net.gguf", work / "again")
    write_npy(work / "ids.npy", "<i8", [1, 8], array.array("q", range(8)))
    run(amp, "weights", work / "net.gguf", work / "net.safetensors")
    for key, (_, numbers) in tensors(work / "net.safetensors").items():
        rows = struct.unpack(f"<{len(numbers)}f", whole[key][2])
        for at in range(0, len(rows), 32):
            bound = max(map(abs, rows[at:at + 32])) / 127 * 0.57  # half a step, and the rounding of the scale to f16
            if key != "token_embd.weight":  # has numbers that no f16 is near
                assert all(abs(a - b) <= bound for a, b in zip(numbers[at:at + 32], rows[at:at + 32])), key
    assert again.exists()
    print("q8_0: equal bits")


# ---- tokenizers ----

def check_tokenizer(amp, name, file, ours, work, prepared=None):
    """The ids of a tokenizer, and of the one that the import of the GGUF file writes."""
    work.mkdir()
    root = None
    if file.suffix == ".json":
        root = json.loads(file.read_text())
        lost = ("single_word", "lstrip", "rstrip", "normalized")
        root["added_tokens"] = [t for t in root["added_tokens"] if not any(t[flag] for flag in lost)]
        file = work / "tokenizer.json"
        file.write_text(json.dumps(root))
    else:
        file = Path(shutil.copy(file, work))
    (work / "tokenizer_config.json").write_text(json.dumps(
        {"bos_token": "<s>", "eos_token": {"content": ours["eos"]}, "chat_template": [{"name": "default", "template": "{{ x }}"}]}))
    job = small(amp, work, 810, file.name)
    said = export(amp, job, work / "net.gguf")
    assert "warning" not in said, said
    meta, _ = written(work / "net.gguf")
    tokens = meta["tokenizer.ggml.tokens"]
    assert len(tokens) == 810 and len(meta["tokenizer.ggml.token_type"]) == 810 and tokens[809] == "[PAD809]"
    assert meta["tokenizer.chat_template"] == "{{ x }}" and tokens[meta["tokenizer.ggml.eos_token_id"]] == ours["eos"]
    for key, value in ours["meta"].items():
        assert meta[key] == value, f"{name}: {key} is {meta.get(key)}"
    again = imported(amp, work / "net.gguf", work / "again")
    export(amp, again, work / "again.gguf")
    if file.suffix == ".json":  # a .model has other scores, in the same order
        assert (work / "net.gguf").read_bytes() == (work / "again.gguf").read_bytes(), "another file after its import"
    words = [t for t in json.loads((FIXTURES / "texts.json").read_text()) if len(t) < 3000]
    if prepared:
        words = [t for t in words if not any(word in t for word in prepared)]
    (work / "texts").write_text("\n".join(words))
    ids = []
    for i, tokenizer in enumerate([file, work / "again/tokenizer.json"]):
        run(amp, "tokens", "--tokenizer", tokenizer, "--no-special", work / "texts", "-o", work / f"{i}.bin")
        ids.append((work / f"{i}.bin").read_bytes())
    assert ids[0] and ids[0] == ids[1], f"{name}: the ids differ"
    print(f"{name}: {len(ids[0]) // 2} ids")


def check_tokenizers(amp, work):
    added = ("<x>", "the", "<s>", "</s>", "<unk>")
    bytes_of = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.add_bos_token": False}
    pieces = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.add_space_prefix": True, "tokenizer.ggml.bos_token_id": 1,
              "tokenizer.ggml.unknown_token_id": 0}
    for name, pre in (("gpt2", "gpt-2"), ("qwen", "qwen2"), ("llama3", "llama-bpe")):
        meta = {**bytes_of, "tokenizer.ggml.pre": pre, "tokenizer.ggml.add_bos_token": name == "llama3"}
        check_tokenizer(amp, name, FIXTURES / f"{name}.json", {"eos": "<|end|>", "meta": meta}, work / name)
    check_tokenizer(amp, "llama2", FIXTURES / "llama2.json",
                    {"eos": "</s>", "meta": {**pieces, "tokenizer.ggml.add_bos_token": True}}, work / "llama2", added)
    check_tokenizer(amp, "spm_bpe", FIXTURES / "spm_bpe.model", {"eos": "</s>", "meta": pieces}, work / "spm", added)


# ---- what is refused ----

def refuse(amp, job, wanted, *more, status=2, gguf="bad.gguf"):
    out = job.parent / gguf
    done = subprocess.run([str(w) for w in (amp, "export", "--gguf", out, *more, job)], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    assert done.returncode == status and len(lines) == 1 and re.search(wanted, lines[0]), f"{wanted}: {done.returncode}\n{done.stderr}"
    assert not out.exists() and not list(job.parent.glob(f".*{gguf}*")), f"{wanted}: a file is left"


def changed(job, old, new):
    text = job.read_text()
    assert old in text
    (job.parent / "changed.amp").write_text(text.replace(old, new))
    return job.parent / "changed.amp"


def check_refused(amp, work):
    jobs = {name: imported(amp, HERE / "nets" / name, work / name) for name in [*NETS, "bert"]}
    llama = jobs["llama3"]
    refuse(amp, jobs["mistral"], "llama.cpp's llama computes something else: .*`SLIDES` is true, there false")
    refuse(amp, jobs["gemma2"], "llama.cpp's gemma2 computes something else: `QUERY_SCALAR` is 10.0, there 6$")
    refuse(amp, jobs["gemma2"], "SOFTCAP is 0, but llama.cpp's gemma2 needs a bound", "-D", "QUERY_SCALAR=6.0", "-D", "SOFTCAP=0.0")
    refuse(amp, jobs["gpt2_bare"], "llama.cpp's gpt2 computes something else: `GELU` is \"none\", there \"tanh\"$", "-D", "GELU=none")
    refuse(amp, jobs["gpt2_bare"], "`SCALED` is false, there true$", "-D", "SCALED=false")
    refuse(amp, jobs["gpt_neox_old"], "`TIED` is true, there false$", "-D", "TIED=true")
    refuse(amp, jobs["qwen3"], "`ROPE_TYPE` is \"llama3\", there \"default\"", "-D", "ROPE_TYPE=llama3", "-D", "ROPE_FACTOR=2.0")
    refuse(amp, llama, "`MLP_BIAS` is true, there false$", "-D", "MLP_BIAS=true")
    refuse(amp, jobs["bert"], "no architecture of GGUF has the parameter .*; jobs of `amp import FOLDER` can be written", "--block", "hidden")
    job = changed(llama, "silu(gate_proj(x))", "gelu(gate_proj(x))")
    line = job.read_text().splitlines().index("  def forward(x) { return down_proj(gelu(gate_proj(x)) * up_proj(x)) }") + 1
    refuse(amp, job, f"llama.cpp's llama computes something else: line {line}$")
    refuse(amp, changed(llama, "x + mlp(", "x + 2 * mlp("), "computes something else: line [0-9]+$")
    job = changed(llama, "const HEADS = 2\n", "").rename(llama.parent / "h.amp")
    job.write_text(job.read_text().replace("HEADS", "2"))
    refuse(amp, job, "the job has no `const HEADS`, from which llama.attention.head_count comes")
    job = changed(llama, "  load(WEIGHTS, rename=RENAME, unused=UNUSED)",
                  '  load(WEIGHTS, rename=RENAME, unused=UNUSED)\n  adapt(LoRA, "**.q_proj", rank=2)')
    refuse(amp, job, "it has adapters: write their sum with the weights by `amp weights --merge JOB IN OUT`")
    (llama.parent / "tokenizer.json").write_text((FIXTURES / "unigram_map.json").read_text())
    refuse(amp, llama, "tokenizer.json: GGUF cannot express its `model`; `-D TOKENIZER=` writes the GGUF file without", status=3)
    (llama.parent / "tokenizer.json").write_text((FIXTURES / "gpt2.json").read_text())
    refuse(amp, llama, "tokenizer.json: it has [0-9]+ tokens, but the net has 29", status=3)
    assert "the job names none" in export(amp, llama, work / "none.gguf", "-D", "TOKENIZER=")
    (work / "text.gguf").write_text("not GGUF")
    done = subprocess.run([amp, "export", "--gguf", work / "text.gguf", "-D", "TOKENIZER=", llama], capture_output=True, text=True, check=False)
    assert done.returncode and (work / "text.gguf").read_text() == "not GGUF", done.stderr
    for words in (("-o", "a.onnx", "--gguf", "a.gguf"), ("--type", "f16", "-o", "a.onnx"), ("--gguf", "a.gguf", "--type", "q4_0")):
        assert subprocess.run([amp, "export", *words, llama], capture_output=True, check=False).returncode == 2, words
    print("refused jobs: one error each")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_folder:
        name_of = Path(sys.argv[2]).name
        if name_of != "files":
            check_net(sys.argv[1], name_of, Path(made_folder))
        else:
            for check in (check_refused, check_q8_0, check_tokenizers):
                (Path(made_folder) / check.__name__).mkdir()
                check(sys.argv[1], Path(made_folder) / check.__name__)
