#!/usr/bin/env python3
"""Compares ids and decoded texts with those of the `tokenizers` library and of sentencepiece, on random and hostile texts.
usage: compare.py CHECK TOKENIZER... [--texts N] [--short]   TOKENIZER: a file or a folder; N of each kind and tokenizer (default 2000); CHECK: tokenizers_check
--short: without the texts of a megabyte.
Exit status 77 if the libraries are not installed."""
import glob
import os
import struct
import subprocess
import sys

try:
    import sentencepiece  # noqa: F401
    import tokenizers  # noqa: F401
except ImportError:
    print("tokenizers and sentencepiece are not installed")
    sys.exit(77)
from tokenizers_lib import KINDS, oracle, texts

LONG = [("long a", "a" * 1000000), ("long digits", "1234567890" * 100000), ("long marks", "e" + "\u0323\u0301" * 200000),
        ("long cjk", "\u4f60\u597d" * 150000), ("long blanks", "x" + " " * 300000 + "y"), ("long newlines", "\r\n" * 200000),
        ("long words", "hello world " * 40000), ("long unknown", "\ue000\U0010ffff" * 20000)]


def ask(check, path, asked):
    data = b"".join(struct.pack("<I", len(s)) + s for s in (t.encode() for t in asked))
    out = subprocess.run([check, "--run", path], input=data, stdout=subprocess.PIPE, check=True).stdout
    at = 0

    def word():
        nonlocal at
        at += 4
        return struct.unpack_from("<I", out, at - 4)[0]
    for _ in asked:
        n = word()
        if n == 0xffffffff:
            yield None
            continue
        a = {}
        for key in "ids", "bare", "plain":
            a[key] = list(struct.unpack_from(f"<{n}I", out, at))
            at += 4 * n
            n = word()
        a["text"] = out[at:at + n].decode()
        at += n
        n = word()
        a["skip"] = out[at:at + n].decode()
        at += n
        yield a


def compare(check, path, name, asked, limit=3):
    one = oracle(path)
    bad = 0
    for text, got in zip(asked, ask(check, path, asked)):
        want = one.answer(text)
        if got == want:
            continue
        bad += 1
        if bad <= limit:
            keys = [k for k in want if got is None or got[k] != want[k]]
            print(f"  {keys} of {text[:200]!r}\n    got  {str(got and got[keys[0]])[:300]}\n    want {str(want[keys[0]])[:300]}")
    print(f"{os.path.basename(path)}: {name}: {len(asked)} texts, {bad} differ", flush=True)
    return bad


def main():
    args = sys.argv[1:]
    count = int(args[args.index("--texts") + 1]) if "--texts" in args else 2000
    paths = [f for a in args[1:] for f in (sorted(glob.glob(a + "/*")) if os.path.isdir(a) else [a])]
    paths = [a for a in paths if a.endswith((".json", ".model")) and not a.endswith((".ids.json", "texts.json"))]
    bad = 0
    for path in paths:
        for kind in KINDS:
            bad += compare(args[0], path, kind, texts("compare", count, kind))
        for name, text in [] if "--short" in args else LONG:
            bad += compare(args[0], path, name, [text])
    sys.exit(bad > 0)


main()
