#!/usr/bin/env python3
"""What a tokenizer or a text may not be: each case changes a good tokenizer.json, and `amp tokens` must refuse it with one
line that has the given text. Cut files are refused, too.
usage: refused.py AMP"""
import json
import os
import subprocess
import sys
import tempfile

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
AMP = sys.argv[1]
failed = 0


def load(name):
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as f:
        return json.load(f)


def put(value, *path):
    """A change: the value at a path of keys. `...` removes the key."""
    def change(t):
        for key in path[:-1]:
            t = t[key]
        if isinstance(t, list) and path[-1] == len(t):
            t.append(None)
        if value is ...:
            del t[path[-1]]
        else:
            t[path[-1]] = value
    return change


def nested(n):
    part = {"type": "NFC"}
    for _ in range(n):
        part = {"type": "Sequence", "normalizers": [part]}
    return part


def split(pattern):
    return put({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}, "pre_tokenizer")


CASES = [  # fixture, change, part of the message
    ("gpt2", put("2.0", "version"), 'version is not "1.0"'),
    ("gpt2", put(1, "nmt"), "the file.nmt is not known"),
    ("gpt2", put(..., "model"), "model is missing"),
    ("gpt2", put("Foo", "model", "type"), 'model.type: "Foo" is not known'),
    ("gpt2", put(..., "model", "type"), "model.type is not a text"),
    ("gpt2", put(1, "model", "foo"), "model.foo is not known"),
    ("gpt2", put(0.1, "model", "dropout"), "model.dropout is not 0"),
    ("gpt2", put([], "model", "vocab"), "model.vocab is not an object"),
    ("gpt2", put("a", "model", "vocab", "zz"), "model.vocab has an id that is not a whole number"),
    ("gpt2", put(-1, "model", "vocab", "zz"), 'the id -1 of "zz" is not in 0..4194303'),
    ("gpt2", put(2**31, "model", "vocab", "zz"), 'the id 2147483648 of "zz" is not in 0..4194303'),
    ("gpt2", put(5, "model", "vocab", "zz"), 'have the same id 5'),
    ("gpt2", put([["a", "zzz"]], "model", "merges"), "model.merges[0] names a token that model.vocab lacks: zzz"),
    ("gpt2", put([["a", "\u0120"]], "model", "merges"), "model.merges[0] makes a token that model.vocab lacks: a\u0120"),
    ("gpt2", put(["a b c"], "model", "merges"), "model.merges[0] is not two texts"),
    ("gpt2", put([["a", 1]], "model", "merges"), "model.merges[0] is not two texts"),
    ("gpt2", put({}, "model", "merges"), "model.merges is not a list"),
    ("gpt2", put(..., "model", "merges"), "model.merges is missing"),
    ("gpt2", put("yes", "model", "fuse_unk"), "model.fuse_unk is neither true nor false"),
    ("gpt2", put({"type": "Foo"}, "normalizer"), 'normalizer.type: "Foo" is not known'),
    ("gpt2", put("NFC", "normalizer"), "normalizer is not a text"),
    ("gpt2", put({"type": "NFC", "x": 1}, "normalizer"), "normalizer.x is not known"),
    ("gpt2", put({"type": "Strip", "strip_left": True}, "normalizer"), "normalizer.strip_right is missing"),
    ("gpt2", put(nested(40), "normalizer"), "is nested too deep"),
    ("gpt2", put({"type": "Precompiled", "precompiled_charsmap": "AA=!"}, "normalizer"), "precompiled_charsmap is damaged"),
    ("gpt2", put({"type": "Precompiled", "precompiled_charsmap": "/////w=="}, "normalizer"), "precompiled_charsmap is damaged"),
    ("llama3", put("Foo", "pre_tokenizer", "pretokenizers", 1, "type"), 'pre_tokenizer.pretokenizers[1].type: "Foo" is not known'),
    ("llama3", put("Sometimes", "pre_tokenizer", "pretokenizers", 0, "behavior"),
     'pre_tokenizer.pretokenizers[0].behavior: "Sometimes" is not known'),
    ("llama3", put("x", "pre_tokenizer", "pretokenizers", 0, "pattern"), "pattern is neither"),
    ("gpt2", put({"type": "UnicodeScripts"}, "pre_tokenizer"), 'pre_tokenizer.type: "UnicodeScripts" is not known'),
    ("gpt2", put({"type": "CharDelimiterSplit", "delimiter": "ab"}, "pre_tokenizer"), "delimiter is not one character"),
    ("gpt2", put({"type": "FixedLength", "length": 0}, "pre_tokenizer"), "length is 0"),
    ("gpt2", put({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "add_prefix_space": False}, "pre_tokenizer"),
     "add_prefix_space is false"),
    ("gpt2", split(r"\h+"), "only \\p \\P \\s"),
    ("gpt2", split(r"\b"), "only \\p \\P \\s"),
    ("gpt2", split(r"(a)\1"), "only \\p \\P \\s"),
    ("gpt2", split(r"[^\W]"), "only outside []"),
    ("gpt2", split(r"\p{^L}"), "\\p needs a name of letters"),
    ("gpt2", split(r"\pL"), "\\p needs a name of letters"),
    ("gpt2", split(r"[a[b]]"), "[] and && within []"),
    ("gpt2", split(r"[a&&b]"), "[] and && within []"),
    ("gpt2", split(r"[]a]"), "write ] in [] as"),
    ("gpt2", split(r"a{2}+"), "{} needs {n}"),
    ("gpt2", split(r"a{,2}"), "{} needs {n}"),
    ("gpt2", split(r"(?m:.)"), "of groups only"),
    ("gpt2", split(r"(?<n>a)"), "of groups only"),
    ("gpt2", split(r"(?i:ss)"), "also match one character"),
    ("gpt2", split("(?i:\u00df)"), "(?i:) may only contain"),
    ("gpt2", split(r"a("), "missing closing parenthesis"),
    ("gpt2", split(r"\p{Foo}"), "unknown property"),
    ("llama3", put({"type": "Foo"}, "post_processor", "processors", 0), 'post_processor.processors[0].type: "Foo" is not known'),
    ("llama3", put({"type": "BertProcessing", "sep": ["a", 1], "cls": ["b", 2]}, "post_processor", "processors", 2),
     "post_processor.processors[2] follows a TemplateProcessing"),
    ("llama3", put([], "post_processor", "processors", 1, "single"), "single has not the sequence A once"),
    ("llama3", put({}, "post_processor", "processors", 1, "special_tokens"), "names a token that special_tokens lacks"),
    ("gpt2", put({"type": "Sequence", "normalizers": [{"type": "NFC"}] * 65}, "normalizer"), "has over 64 parts"),
    ("gpt2", put({"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "l"}, "content": "l" * 1000}] * 9}, "normalizer"), "over 64 times the text"),
    ("bert", put(["[SEP]", 700], "post_processor", "sep"), "has an id that is no token"),
    ("bert", put(["[SEP]", -3], "post_processor", "sep"), "has an id that is no token"),
    ("gpt2", put({"type": "CTC"}, "decoder"), 'decoder.type: "CTC" is not known'),
    ("gpt2", put({"type": "BPEDecoder", "suffix": ""}, "decoder"), "decoder.suffix is empty"),
    ("gpt2", put(7, "added_tokens", 1, "id"), "added_tokens[1] has the id 7"),
    ("gpt2", put("", "added_tokens", 1, "content"), "added_tokens[1] is empty"),
    ("gpt2", put(1, "added_tokens", 1, "special"), "added_tokens[1] needs true or false"),
    ("gpt2", put(1, "added_tokens", 1, "foo"), "added_tokens[1] has a field that is not known"),
    ("gpt2", put({}, "added_tokens"), "added_tokens is not a list"),
    ("unigram_map", put(["a"], "model", "vocab", 3), "model.vocab[3] is not [text, score]"),
    ("unigram_map", put(["a", "b"], "model", "vocab", 3), "model.vocab[3] is not [text, score]"),
    ("unigram_map", put(10**6, "model", "unk_id"), "model.unk_id is not an id of model.vocab"),
    ("bert", put(..., "model", "max_input_chars_per_word"), "model.max_input_chars_per_word is missing"),
    ("bert", put("[NO]", "model", "unk_token"), "has no token in"),
]


def run(tokenizer, text="hello \u4e8d\u0e5b".encode()):
    return subprocess.run([AMP, "tokens", "--tokenizer", tokenizer, "--show", "-"], input=text, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)


def expect(what, tokenizer, message, text=None):
    global failed
    got = run(tokenizer, text) if text is not None else run(tokenizer)
    error = got.stderr.decode()
    if got.returncode != 3 or message not in error or error.count("\n") != 1:
        print(f"FAILED: {what}: status {got.returncode}, expected {message!r}\n  {error}")
        failed += 1


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "t.json")

    def write(data):
        with open(path, "wb") as f:
            f.write(data)
    for number, (name, change, message) in enumerate(CASES):
        tokenizer = load(name + ".json")
        change(tokenizer)
        write(json.dumps(tokenizer).encode())
        expect(f"case {number} of {name}", path, message)
    good = json.dumps(load("bert.json")).encode()
    for cut in 0, 1, 100, len(good) // 2, len(good) - 1:
        write(good[:cut])
        expect(f"cut at {cut}", path, "t.json" if cut else "neither a tokenizer.json")
    for data, message in [(b'{"version":NaN}', "invalid token"), (b"{" * 3000, "t.json"), (b'{"a":{"a":' * 1500, "t.json"),
                          (good.replace(b'"[UNK]": 1,', b'"[UNK]": 1, "[UNK]": 1,'), "duplicate object key"),
                          (good.replace(b"[MASK]", b"[M\xff]"), "unable to decode byte 0xff"), (good + b"x", "end of file expected")]:
        write(data)
        expect(repr(data[:40]), path, message)
    with open(os.path.join(FIXTURES, "spm_bpe.model"), "rb") as f:
        model = f.read()
    for cut in range(1, len(model), 97):
        write(model[:cut])
        expect(f".model cut at {cut}", path, "t.json")
    first = model.index(b"\x15")  # the score of the first piece
    write(model[:first + 1] + b"\x00\x00\xc0\x7f" + model[first + 5:])
    expect("NaN", path, "the score of a piece is not finite")
    gpt2 = os.path.join(FIXTURES, "gpt2.json")
    for text, byte in [(b"ab\xff", 2), (b"a\xed\xa0\x80", 1), (b"\xc0\x80", 0), (b"ok\xe4\xbd", 2), (b"\xf4\x90\x80\x80", 0)]:
        expect(repr(text), gpt2, f"byte {byte} of the text", text)
print(f"{len(CASES)} changes, {failed} failed")
sys.exit(failed > 0)
