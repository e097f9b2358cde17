"""Answers of the `tokenizers` library and of sentencepiece, and texts that are hard for a tokenizer."""
import random

# What the library cannot be compared on: see docs/tokenizers.md. Unicode 8 is the oldest version that it uses.
SCRIPTS = [(0x20, 0x7e), (0xa0, 0x17f), (0x391, 0x3c9), (0x400, 0x45f), (0x5d0, 0x5ea), (0x621, 0x64a), (0x905, 0x939),
           (0xe01, 0xe3a), (0x1100, 0x1112), (0x3041, 0x3096), (0x30a1, 0x30fa), (0x4e00, 0x9fa5), (0xac00, 0xd7a3),
           (0x1f600, 0x1f642), (0xfb00, 0xfb06), (0xff21, 0xff5a), (0x20000, 0x2a6d6), (0x1d400, 0x1d454)]
ODD = ["\u0301", "\u0300", "\u0308", "\u0327", "\u0323", "\u200d", "\ufe0f", "\u200b", "\u00ad", "\u2028", "\u2029", "\u0085",
       "\u00a0", "\u3000", "\u2581", "\ufeff", "\ufffd", "\u0130", "\u017f", "\u212a", "\u1e9e", "\u00df", "\ufb01", "\u0000",
       "\u0001", "\u001f", "\u007f", "\r\n", "\n", "\r", "\t", "\v", "\f", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
       "\U0001f1e9\U0001f1ea", "\U0001f44b\U0001f3fd", "\u0915\u094d\u0937", "\u202e", "\u2067", "\u0664", "\u00bd", "\u2167",
       "\u1100\u1161\u11a8", "\U0010ffff", "\ue000", "\u180e"]
WORDS = ["the", "The", "THE", "of", "hello", "world", "don't", "I'll", "we've", "they're", "she's", "I'm", "he'd", "CAN'T",
         "training", "tokenizer", "int", "return", "x", "0", "12", "1234567", "3.14", "1e-5", "#include", "->", "==", "...", "!!",
         "caf\u00e9", "na\u00efve", "\u00fcber", "\u043f\u0440\u0438\u0432\u0435\u0442", "\u4f60\u597d", "\u3053\u3093\u306b\u3061\u306f",
         "\uc548\ub155", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "<0x0A>", "##ing", "<s>", "</s>", "<unk>",
         "<|end|>", "<|END|>", "[CLS]", "[MASK]", "word", "Word", "<pad>", "<mask>", "<x>"]


def random_text(r, kind):
    """A text of a kind: words, unicode, odd, digits, blanks, bytes."""
    def one():
        c = r.random()
        if kind == "words" or c < 0.3:
            return r.choice(WORDS)
        if kind == "digits":
            return "".join(r.choice("0123456789") for _ in range(r.randint(1, 30)))
        if kind == "blanks":
            return r.choice(" \t\n\r\u00a0\u3000") * r.randint(1, 9)
        if kind == "odd" and c < 0.7:
            return r.choice(ODD)
        low, high = r.choice(SCRIPTS)
        return "".join(chr(r.randint(low, high)) for _ in range(r.randint(1, 6)))
    out = []
    for _ in range(r.randint(0, 14)):
        out.append(one())
        if r.random() < 0.5:
            out.append(r.choice([" ", " ", " ", "  ", "\n", "\t", "   \n "]))
    return "".join(out)


KINDS = ["words", "unicode", "odd", "digits", "blanks"]


class Library:
    """A tokenizer.json in the library. `plain` is the same one with special tokens as text."""

    def __init__(self, path):
        from tokenizers import Tokenizer
        self.one, self.other = Tokenizer.from_file(path), Tokenizer.from_file(path)
        for t in self.one, self.other:
            t.no_padding()
            t.no_truncation()
        self.other.encode_special_tokens = True

    def answer(self, text):
        ids = self.one.encode(text).ids
        return {"ids": ids, "bare": self.one.encode(text, add_special_tokens=False).ids,
                "plain": self.other.encode(text, add_special_tokens=False).ids,
                "text": self.one.decode(ids, skip_special_tokens=False), "skip": self.one.decode(ids)}


class Pieces:
    """A .model in sentencepiece. Control tokens are never part of a text."""

    def __init__(self, path):
        import sentencepiece
        self.one = sentencepiece.SentencePieceProcessor(model_file=path)

    def answer(self, text):
        ids = self.one.encode(text)
        back = self.one.decode(ids)
        return {"ids": ids, "bare": ids, "plain": ids, "text": back, "skip": back}


def oracle(path):
    return Pieces(path) if path.endswith(".model") else Library(path)


def texts(seed, n, kind):
    r = random.Random(f"{seed}/{kind}")
    return [random_text(r, kind) for _ in range(n)]
