#!/usr/bin/env python3
"""Trains small tokenizers and writes them with texts, ids and decoded texts to fixtures/. Needs `tokenizers` 0.23 and
`sentencepiece` 0.2.
usage: make_fixtures.py [CORPUS...]   text files to train on; by default the documents of this project"""
import glob
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tokenizers_lib import KINDS, oracle, texts

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "fixtures")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]
FLAGS = [AddedToken("<|end|>", special=True), AddedToken("<mask>", lstrip=True, special=True),
         AddedToken("<x>", rstrip=True, normalized=False), AddedToken("word", single_word=True, normalized=False),
         AddedToken("Hello World", normalized=True)]
NEW = "abc \u00e9\u4f60\U0001f600"


def corpus(paths):
    lines = [NEW, "caf\u00e9 na\u00efve \u00fcber \u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 \u4f60\u597d \u4e16\u754c "
             "\u3053\u3093\u306b\u3061\u306f \uc548\ub155"] * 20
    for path in paths:
        with open(path, encoding="utf-8") as f:
            lines += f.read().splitlines()
    return lines


def train(model, trainer, lines, **parts):
    t = Tokenizer(model)
    for name, part in parts.items():
        if part is not None:
            setattr(t, name, part)
    t.train_from_iterator(lines, trainer)
    return t


def byte_bpe(lines, pre, size=700, normalizer=None, post=None, ignore_merges=False, added=FLAGS, special=("<|endoftext|>",)):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t = train(models.BPE(ignore_merges=ignore_merges), trainer, lines, pre_tokenizer=pre, normalizer=normalizer,
              decoder=decoders.ByteLevel(), post_processor=post)
    t.add_tokens(added)
    return t


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([split(pattern), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def fallback_bpe(lines, legacy):
    """Llama 2: bytes as tokens. `legacy`: by normalizers, otherwise by Metaspace."""
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    pre = None if legacy else pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    norm = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]) if legacy else None
    trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=SPECIAL[:3] + bytes_, show_progress=False, limit_alphabet=80)
    t = train(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainer, lines,
              normalizer=normalizers.Replace(" ", "\u2581") if not legacy else norm,
              pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="always"))
    t.normalizer = norm
    t.pre_tokenizer = pre
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    t.add_special_tokens([AddedToken(s, normalized=not legacy, special=True) for s in SPECIAL[:3]])
    t.add_tokens(FLAGS[:1] + FLAGS[2:4])
    without = json.loads(t.to_str())  # the bytes are tokens of the model only
    without["added_tokens"] = [a for a in without["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(without))


def unigram(lines, normalizer, pre, post=None):
    trainer = trainers.UnigramTrainer(vocab_size=600, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    t = train(models.Unigram(), trainer, lines, normalizer=normalizer, pre_tokenizer=pre, post_processor=post,
              decoder=decoders.Metaspace(prepend_scheme="always"))
    t.add_tokens(FLAGS)
    return t


def wordpiece(lines, normalizer, pre, prefix="##", cleanup=True):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=special, continuing_subword_prefix=prefix,
                                        show_progress=False, limit_alphabet=120)
    t = train(models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=prefix, max_input_chars_per_word=20), trainer, lines,
              normalizer=normalizer, pre_tokenizer=pre, decoder=decoders.WordPiece(prefix=prefix, cleanup=cleanup))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def charsmap(path):
    """The table of replacements of a .model, in base64."""
    import base64
    import sentencepiece.sentencepiece_model_pb2 as messages
    m = messages.ModelProto()
    with open(path, "rb") as f:
        m.ParseFromString(f.read())
    return base64.b64encode(m.normalizer_spec.precompiled_charsmap).decode()


def pieces(lines, name, **options):
    import sentencepiece
    path = os.path.join(OUT, name + ".model")
    with open(path, "wb") as f:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=f, minloglevel=2,
                                                 num_threads=1, **options)
    return path


def edit_pieces(path, edit):
    """Changes the message of a .model."""
    import sentencepiece.sentencepiece_model_pb2 as messages
    m = messages.ModelProto()
    with open(path, "rb") as f:
        m.ParseFromString(f.read())
    edit(m)
    with open(path, "wb") as f:
        f.write(m.SerializeToString())


def add_then(m):
    """A token with a user-defined one in it: these are never merged."""
    m.pieces.add(piece="then", score=-0.5)


def make_ties(m):
    for p in m.pieces:
        if p.type == 1:
            p.score = p.score // 16


def without_merges(t, n):
    """Takes the last n merges away, so that only `ignore_merges` gives their tokens."""
    spec = json.loads(t.to_str())
    del spec["model"]["merges"][-n:]
    return Tokenizer.from_str(json.dumps(spec))


def with_inner_blank(t):
    """Adds a token with a blank after another character, so that a text cannot be cut at blanks."""
    spec = json.loads(t.to_str())
    first = max(spec["model"]["vocab"].values()) + 1
    for a in spec["added_tokens"]:  # those after the vocabulary move
        a["id"] += 2 * (a["id"] >= first)
    for i, (a, b) in enumerate([("e", "\u2581t"), ("s", "\u2581")]):
        spec["model"]["vocab"][a + b] = first + i
        spec["model"]["merges"].insert(200 + i, [a, b])
    return Tokenizer.from_str(json.dumps(spec))


def small_map(t, path):
    """Gives an Unigram tokenizer the table of a .model, as XLM-R has it."""
    spec = json.loads(t.to_str())
    spec["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": charsmap(path)},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
    return Tokenizer.from_str(json.dumps(spec))


def make(lines):
    N, P = normalizers, pre_tokenizers
    rules = os.path.join(OUT, "rules.tsv")  # a small table: what to replace, by what, in hexadecimal
    with open(rules, "w", encoding="ascii") as f:
        for a, b in [("\u00c9", "\u00e9"), ("e\u0301", "\u00e9"), ("\ufb01", "fi"), ("\u3000", " "), ("\t", " "), ("\n", " "),
                     ("\uff21", "A"), ("\u00a0", " "), ("\u0001", ""), ("\uff21\u0301", "\u00c1"), ("o\u0308", "\u00f6")]:
            f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    mapped = pieces(lines, "spm_unigram", vocab_size=500, model_type="unigram", normalization_rule_tsv=rules,
                    user_defined_symbols=["<x>", "ing"], character_coverage=0.995)
    os.remove(rules)
    edit_pieces(pieces(lines, "spm_bpe", vocab_size=800, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
           user_defined_symbols=["<x>", "the"], remove_extra_whitespaces=False, character_coverage=0.99), add_then)
    edit_pieces(pieces(lines, "spm_plain", vocab_size=400, model_type="bpe", normalization_rule_name="identity", add_dummy_prefix=False,
           character_coverage=0.99), make_ties)
    llama3 = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A $B", special_tokens=[("<|endoftext|>", 0)])])
    many = processors.TemplateProcessing(single="<pad> <unk> $A <s> <pad>", pair="$A $B",
                                         special_tokens=[("<pad>", 3), ("<unk>", 0), ("<s>", 1)])
    yield "gpt2", byte_bpe(lines, P.ByteLevel(add_prefix_space=False), post=processors.ByteLevel())
    yield "roberta", byte_bpe(lines, P.ByteLevel(add_prefix_space=True), 400, special=SPECIAL,
                              post=processors.Sequence([processors.RobertaProcessing(("</s>", 2), ("<s>", 1)), many]))
    yield "llama3", without_merges(byte_bpe(lines, split_then_bytes(LLAMA3), post=llama3, ignore_merges=True), 60)
    yield "qwen", byte_bpe(lines, split_then_bytes(QWEN), 600, normalizer=N.NFC())
    yield "tekken", byte_bpe(lines, split_then_bytes(TEKKEN), 500)
    yield "deepseek", byte_bpe(lines, P.Sequence([split("[\r\n]"), split("\\s?[A-Za-z\u00b5\u00c0-\u00f6]+"), split(r"\s?[!-/:-~]+"),
                                                  split(r"\s+$"), split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
                                                  P.Digits(True), P.ByteLevel(False, use_regex=False)]), 400)
    yield "patterns", byte_bpe(lines, P.Sequence([
        split(r"\s*", "merged_with_next"), split("(?i:the)|x*", "merged_with_previous"), split(r"(?<=a)|^\s|.$"),
        split(r"[\w.]+|\w+", "removed", True), split(r"\p{Han}+|\p{Greek}|\W?\d{2,}"), P.ByteLevel(False, use_regex=False)]), 400)
    yield "behaviors", byte_bpe(lines, P.Sequence([
        P.CharDelimiterSplit("~"), P.Split(".", "merged_with_previous"), P.Split("#", "merged_with_next"), split("[0-9]+", "removed"),
        split(r"[a-z]+|\s", "contiguous", True), P.Punctuation("contiguous"), P.FixedLength(7), P.Digits(False),
        P.ByteLevel(True, use_regex=True)]), 400)
    yield "byte_normalizer", byte_bpe([s for s in lines if s], P.Sequence([split(r"\w+|[\w.]", "merged_with_previous")]), 400,
                                      N.Sequence([N.Nmt(), N.Strip(True, False), N.ByteLevel()]), added=FLAGS[:4])
    yield "llama2", fallback_bpe(lines, True)
    yield "metaspace_first", with_inner_blank(fallback_bpe(lines, False))
    prefixed = train(models.BPE(unk_token="<unk>", continuing_subword_prefix="@@", end_of_word_suffix="</w>", fuse_unk=False),
                     trainers.BpeTrainer(vocab_size=500, special_tokens=SPECIAL, continuing_subword_prefix="@@",
                                         end_of_word_suffix="</w>", show_progress=False, limit_alphabet=70), lines,
                     normalizer=N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase(), N.Strip()]),
                     pre_tokenizer=P.WhitespaceSplit(), decoder=decoders.BPEDecoder("</w>"))
    prefixed.add_tokens(FLAGS)
    yield "prefixed", prefixed
    yield "unigram_nfkc", unigram(lines, N.Sequence([N.NFKC(), N.Lowercase(), N.Replace(Regex(" {2,}"), " ")]),
                                  P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="always")]))
    template = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    yield "unigram_map", small_map(unigram(lines, None, P.Metaspace(prepend_scheme="first"), template), mapped)
    yield "bert", wordpiece(lines, N.BertNormalizer(), P.BertPreTokenizer())
    yield "bert_cased", wordpiece(lines, N.Sequence([N.NFKD(), N.BertNormalizer(True, True, False, False)]),
                                  P.Sequence([P.Whitespace(), P.Punctuation()]), "--", False)
    level = train(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=300, special_tokens=SPECIAL,
                                                                               show_progress=False), lines,
                  pre_tokenizer=P.Whitespace())
    yield "wordlevel", level


def write(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, separators=(",", ":"))


def short(answer):
    """Without what equals the entry before it."""
    pairs = {"bare": "ids", "plain": "bare", "skip": "text"}
    return {k: v for k, v in answer.items() if k not in pairs or v != answer[pairs[k]]}


def main():
    os.makedirs(OUT, exist_ok=True)
    for path in glob.glob(os.path.join(OUT, "*.json")) + glob.glob(os.path.join(OUT, "*.model")):
        os.remove(path)
    lines = corpus(sys.argv[1:] or sorted(glob.glob(os.path.join(HERE, "..", "..", "docs", "*.md"))))
    all_texts = ["", " ", "Hello World", "hello  word\r\n\r\n  <|end|> <mask> <x>  passwords word's Hello World!", "a" * 300,
                 "1234567890" * 5, "\u2581\u2581x \u2581", "<s>x</s><unk><|endoftext|>[MASK]", "hello\u0000there", "e\u0301" * 5,
                 "\u0323\u0301" * 20, "a.b~c#d 12 ~~ ## .. 3.14x", "x" + " " * 40 + "y", "\uff21\u0301 o\u0308 e\u0301 \uff21\u0323\u0301", "then the other then", "\n\n\n", "x\u00b2\u00bc. \u00b9\u00aa", "It's 'LL (i'M) WE'VE"]
    all_texts += texts("compare", 126, "digits")[125:]  # sums of floats round
    for kind in KINDS:
        all_texts += texts("fixtures", 25, kind)
    write(os.path.join(OUT, "texts.json"), all_texts)
    for name, t in make(lines):
        with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(json.loads(t.to_str()), f, ensure_ascii=False, separators=(",", ":"))
    for path in sorted(glob.glob(os.path.join(OUT, "*.json")) + glob.glob(os.path.join(OUT, "*.model"))):
        if path.endswith("texts.json"):
            continue
        one = oracle(path)
        write(os.path.splitext(path)[0] + ".ids.json", [short(one.answer(text)) for text in all_texts])


main()
