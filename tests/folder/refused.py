#!/usr/bin/env python3
"""Folders and GGUF files that `amp import` refuses: one clear error, exit status 3, and no job. usage: refused.py AMP
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from gguf_file import F32, LIST, LLAMA, TEXT, U32, VOCAB, gguf, info, pair, text

HERE = Path(__file__).resolve().parent
TOKENS = [pair("tokenizer.ggml.model", TEXT, "gpt2"), pair("tokenizer.ggml.tokens", LIST, (TEXT, ["a", "b"])),
          pair("tokenizer.ggml.merges", LIST, (TEXT, []))]
POOLING = '[{"type": "sentence_transformers.models.Pooling"}]'
ROPE = {"rope_theta": 500.0, "rope_type": "default"}

CONFIGS = [  # net, changed fields (DELETE: without it), what the message says
    ("llama3", {"foo": 1}, r"config.json:36: `foo` is not known for llama; if it changes no result of the net, remove it"),
    ("llama3", {"rope_parameters": {**ROPE, "mscale": 0.7}}, "`rope_parameters.mscale` is not known for llama"),
    ("llama3", {"model_type": "falcon"}, '`model_type` is "falcon"; expected one of: llama mistral qwen2 qwen3 gemma2'),
    ("llama3", {"model_type": None}, "`model_type` is null; expected one of: llama"),
    ("llama3", {"architectures": ["LlamaForSequenceClassification"]}, 'is "LlamaForSequenceClassification"; expected one of'),
    ("llama3", {"hidden_size": 0}, "`hidden_size` is 0; expected a whole number up to 1048576"),
    ("llama3", {"hidden_size": -12}, "`hidden_size` is -12; expected"),
    ("llama3", {"hidden_size": 1 << 40}, "`hidden_size` is 1099511627776; expected"),
    ("llama3", {"hidden_size": "12"}, '`hidden_size` is "12"; expected'),
    ("llama3", {"hidden_size": [12] * 9999}, "`hidden_size` is [12,12"),
    ("llama3", {"hidden_size": None}, "`hidden_size` is missing"),
    ("llama3", {"num_hidden_layers": 100000}, "`num_hidden_layers` is 100000; expected a whole number up to 1024"),
    ("llama3", {"rms_norm_eps": -1}, "`rms_norm_eps` is -1; expected a number from 0 to 1"),
    ("llama3", {"hidden_act": "relu"}, '`hidden_act` is "relu"; expected one of: silu'),
    ("llama3", {"mlp_bias": "yes"}, '`mlp_bias` is "yes"; expected true or false'),
    ("llama3", {"rope_parameters": {**ROPE, "rope_type": "dynamic"}}, 'is "dynamic"; expected one of: default linear llama3 yarn'),
    ("llama3", {"rope_theta": 10.0}, "`rope_theta` is 10.0, but `rope_parameters.rope_theta` is 500.0"),
    ("llama3", {"is_encoder_decoder": True}, "`is_encoder_decoder` is true; expected false"),
    ("qwen2_window", {"layer_types": ["full_attention"]}, "`layer_types` needs 2 words, one a layer"),
    ("qwen2_window", {"layer_types": ["full_attention", "other"]}, 'is "other"; expected full_attention sliding_attention'),
    ("bert", {"position_embedding_type": "relative_key"}, 'is "relative_key"; expected one of: absolute'),
]

FILES = [  # net, {name: contents; None: removed}, what the message says
    ("llama3", {"config.json": None}, "has no config.json, so it is no model of Hugging Face"),
    ("llama3", {"config.json": "{"}, "config.json:1: no JSON"),
    ("llama3", {"config.json": "[]"}, "config.json is no JSON object"),
    ("llama3", {"config.json": "[" * 100000}, "config.json:1: no JSON: maximum parsing depth reached"),
    ("llama3", {"model.safetensors": "x"}, "model.safetensors is not a safetensors file"),
    ("bert", {"tokenizer.json": '{"added_tokens": []}'}, "tokenizer.json has no token [MASK] or <mask>"),
    ("bert", {"modules.json": '[{"type": "sentence_transformers.models.Dense"}]'}, "modules.json has a sentence_transformers.models.Dense"),
    ("bert", {"modules.json": POOLING, "1_Pooling/config.json": '{"pooling_mode_max_tokens": true}'},
     'the pooling "max_tokens" of 1_Pooling/config.json is not known; cls and mean are'),
    ("bert", {"modules.json": POOLING, "1_Pooling/config.json": '{"pooling_mode": "max"}'}, 'the pooling "max" of'),
    ("bert", {"modules.json": POOLING}, 'the pooling "" of 1_Pooling/config.json is not known'),
] + [("llama3", {"model.safetensors": None, "model.safetensors.index.json": json.dumps({"weight_map": {"a": name}})},
      "a shard must be a file name without a folder; see a") for name in ("../x.safetensors", "/etc/passwd", "a/b", "..", "")]


def arch(*pairs):
    return gguf(LLAMA + VOCAB + list(pairs))


def tensor(*infos, data=bytes(64)):
    return gguf(LLAMA + VOCAB, list(infos), data)


GGUFS = [
    (b"GGUF", "is damaged or truncated: its header ends too soon"),
    (gguf([], version=1), "has version 1 of GGUF, or big-endian numbers; versions 2 and 3"),
    (gguf([]), "lacks the metadata `general.architecture`"),
    (gguf([pair("general.architecture", TEXT, "falcon")]), '`model_type` is "falcon"; expected one of'),
    (gguf(LLAMA, n_pairs=1 << 63), "is damaged or truncated"),
    (gguf(LLAMA, n_infos=1 << 60), "it has too many tensors"),
    (gguf([struct.pack("<Q", 1 << 63)]), "a text is too long"),
    (gguf([struct.pack("<Q", 200)]), "a text is longer than the file"),
    (arch(text("x") + struct.pack("<IIQ", LIST, U32, 1 << 62)), "a list is longer than the file"),
    (arch(text("x") + struct.pack("<IIQ", LIST, LIST, 1)), "a list of an unknown type"),
    (arch(text("x") + struct.pack("<II", 99, 0)), "a value of an unknown type"),
    (arch(pair("x", U32, 1), pair("x", U32, 2)), "a key is there twice"),
    (arch(pair("general.alignment", U32, 3)), "its alignment is no power of two"),
    (arch(pair("llama.expert_count", U32, 8)), "the metadata `llama.expert_count` is not known for llama"),
    (arch(pair("llama.rope.dimension_count", U32, 2)), "the metadata `llama.rope.dimension_count` is 2; only 4 is known, as head_dim"),
    (arch(pair("llama.rope.scaling.type", TEXT, "longrope")), 'is "longrope"; expected one of'),
    (arch(pair("split.count", U32, 2)), "is one of several files of a net; join them"),
    (arch(*TOKENS), "the metadata `tokenizer.ggml.pre` is missing; known are gpt-2 smollm llama-bpe qwen2"),
    (arch(*TOKENS, pair("tokenizer.ggml.pre", TEXT, "dbrx")), "the metadata `tokenizer.ggml.pre` is dbrx; known are"),
    (arch(pair("tokenizer.ggml.model", TEXT, "t5")), "the metadata `tokenizer.ggml.model` is t5; known are gpt2 llama"),
    (arch(TOKENS[0], pair("tokenizer.ggml.tokens", LIST, (TEXT, ["a", "a"]))), "has `a` twice"),
    (arch(TOKENS[0], pair("tokenizer.ggml.tokens", LIST, (TEXT, [b"\xff"]))), "has a token that is not UTF-8"),
    (tensor(info("a", [1 << 40, 1 << 40], 0, 0)), "a tensor is larger than any file"),
    (tensor(info("a", [1] * 9, 0, 0)), "a tensor has over 8 axes"),
    (tensor(info("a", [17], 0, 0)), "tensor a ends behind the end of the file"),
    (tensor(info("a", [4], 0, 1 << 63)), "tensor a ends behind the end of the file"),
    (tensor(info("a", [33], 2, 0)), "tensor a has rows that are no whole blocks"),
    (tensor(info("a", [4], 0, 0), info("a", [4], 0, 0)), "tensor a is there twice"),
    (tensor(info("__metadata__", [4], 0, 0)), "has a name that no tensor can have"),
    (tensor(info("rope_freqs.weight", [2], 0, 0), data=struct.pack("<2f", 3, 5)), "the divisors in rope_freqs.weight are not those of Llama 3"),
]


def refused(amp, what, model, job, wanted):
    done = subprocess.run([amp, "import", model, "-o", job], capture_output=True, text=True, check=False, timeout=60)
    lines = done.stderr.splitlines()
    if done.returncode != 3 or len(lines) != 1 or not lines[0].startswith("amp import: error: ") or wanted not in lines[0]:
        sys.exit(f"{what}: exit status {done.returncode}, expected a message with: {wanted}\n{done.stdout}{done.stderr[:2000]}")
    assert not os.path.exists(job), f"{what}: a job was written"


def check_folders(amp, work):
    for net, changes, wanted in CONFIGS:
        config = {**json.loads((HERE / "nets" / net / "config.json").read_text()), **changes}
        FILES.append((net, {"config.json": json.dumps(config, indent=1)}, wanted))
    for i, (net, changes, wanted) in enumerate(FILES):
        folder = work / str(i)
        shutil.copytree(HERE / "nets" / net, folder)
        for name, contents in changes.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            if contents is not None:
                path.write_text(contents)
        refused(amp, f"{net} with {str(changes)[:200]}", folder, work / "net.amp", wanted)


def check_ggufs(amp, work):
    path = work / "net.gguf"
    for data, wanted in GGUFS:
        path.write_bytes(data)
        refused(amp, wanted, path, work / "net.amp", wanted)
    whole = (HERE / "nets/llama3/model.gguf").read_bytes()
    for n in list(range(4, 2400, 37)) + [len(whole) - 40]:
        path.write_bytes(whole[:n])
        refused(amp, f"the first {n} bytes", path, work / "net.amp", str(path))


def check_loads(amp, work):
    """What only a run finds: shapes that differ from the config, and blocks that are not read."""
    folder, job = work / "other", work / "net.amp"
    shutil.copytree(HERE / "nets/llama3", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 24}))
    (folder / "ids.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + str({"descr": "<i8", "fortran_order": False, "shape": (1, 2)})
                                     .encode().ljust(117) + b"\n" + bytes(16))
    subprocess.run([amp, "import", "-q", folder, "-o", job], check=True)
    run = [amp, "infer", "-q", "--device", "cpu", "--block", "next", "--input", folder / "ids.npy", job]
    for wanted in ["model.layers.0.mlp.gate_proj.weight is [20, 12] in the file, [24, 12] in the model", "GGUF.q2_K"]:
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 3 and wanted in done.stderr, f"expected {wanted}:\n{done.stderr}"
        job.unlink()
        (work / "q2.gguf").write_bytes(tensor(info("token_embd.weight", [256, 20], 10, 0), data=bytes(84 * 20)))
        subprocess.run([amp, "import", "-q", work / "q2.gguf", "-o", job], check=True)


def main(amp):
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        check_folders(amp, work)
        check_ggufs(amp, work)
        check_loads(amp, work)
    print(f"{len(FILES)} folders and {len(GGUFS)} GGUF files are refused")


if __name__ == "__main__":
    main(sys.argv[1])
