#!/usr/bin/env python3
"""Tokenizers of GGUF files: `amp import` writes a tokenizer.json with the ids of the tokenizer that the file was made of,
one of tests/tokenizers/fixtures. usage: gguf_tokenizers.py AMP
"""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from gguf_file import BOOL, F32, LIST, LLAMA, TEXT, U32, gguf, pair

FIXTURES = Path(__file__).resolve().parent.parent / "tokenizers/fixtures"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def from_json(name, pre, work):
    """The metadata of a tokenizer.json, and that file without flags that GGUF does not have."""
    root = json.loads((FIXTURES / f"{name}.json").read_text())
    lost = ("single_word", "lstrip", "rstrip", "normalized")
    root["added_tokens"] = [t for t in root["added_tokens"] if not any(t[flag] for flag in lost)]
    (work / "own.json").write_text(json.dumps(root))
    vocab = {**root["model"]["vocab"], **{t["content"]: t["id"] for t in root["added_tokens"]}}
    types = {t["content"]: 3 if t["special"] else 4 for t in root["added_tokens"]}
    tokens = [None] * (max(vocab.values()) + 1)
    for word, i in vocab.items():
        tokens[i] = word
    names = [word or f"[PAD{i}]" for i, word in enumerate(tokens)]
    merges = [" ".join(m) if isinstance(m, list) else m for m in root["model"]["merges"]]
    return work / "own.json", [
        pair("tokenizer.ggml.model", TEXT, "gpt2"), pair("tokenizer.ggml.pre", TEXT, pre),
        pair("tokenizer.ggml.tokens", LIST, (TEXT, names)),
        pair("tokenizer.ggml.token_type", LIST, (U32, [types.get(word, 1) if word else 5 for word in tokens])),
        pair("tokenizer.ggml.merges", LIST, (TEXT, merges)), pair("tokenizer.ggml.bos_token_id", U32, 0)]


def fields(data):
    """The fields of a message of protobuf: numbers, and bytes."""
    at = 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            n |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return n
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            n = 4 if tag & 7 == 5 else varint()
            yield tag >> 3, data[at:at + n]
            at += n


def from_model(name, prefix):
    """The metadata of a .model of sentencepiece."""
    tokens, scores, types = [], [], []
    for tag, value in fields((FIXTURES / f"{name}.model").read_bytes()):
        if tag == 1:
            piece = dict(fields(value))
            tokens.append(piece[1])
            scores.append(struct.unpack("<f", piece.get(2, bytes(4)))[0])
            types.append(piece.get(3, 1))
    return FIXTURES / f"{name}.model", [
        pair("tokenizer.ggml.model", TEXT, "llama"), pair("tokenizer.ggml.tokens", LIST, (TEXT, tokens)),
        pair("tokenizer.ggml.scores", LIST, (F32, scores)), pair("tokenizer.ggml.token_type", LIST, (U32, types)),
        pair("tokenizer.ggml.unknown_token_id", U32, types.index(2)), pair("tokenizer.ggml.bos_token_id", U32, 1),
        pair("tokenizer.ggml.add_space_prefix", BOOL, prefix)]


def check(amp, name, own, metadata, work, texts, *options):
    (work / "net.gguf").write_bytes(gguf(LLAMA + metadata))
    run(amp, "import", work / "net.gguf", "-o", work / "net.amp", "--force")
    ids = []
    for i, tokenizer in enumerate([own, work / "tokenizer.json"]):
        run(amp, "tokens", "--tokenizer", tokenizer, "--force", *options, texts, "-o", work / f"{i}.bin")
        ids.append((work / f"{i}.bin").read_bytes())
    assert ids[0] and ids[0] == ids[1], f"{name}: the ids differ"
    print(f"{name}: {len(ids[0]) // 2} ids")


def main(amp):
    words = [t for t in json.loads((FIXTURES / "texts.json").read_text()) if len(t) < 3000]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "texts").write_text("\n".join(words))
        # As in llama.cpp, a blank is put before each part between added tokens; sentencepiece puts it before the first one.
        added = ("<x>", "the", "<s>", "</s>", "<unk>")
        (work / "plain").write_text("\n".join(t for t in words if not any(word in t for word in added)))
        for name, pre in (("gpt2", "gpt-2"), ("qwen", "qwen2"), ("llama3", "llama-bpe")):
            check(amp, name, *from_json(name, pre, work), work, work / "texts")
        check(amp, "spm_bpe", *from_model("spm_bpe", True), work, work / "plain", "--no-special")


if __name__ == "__main__":
    main(sys.argv[1])
