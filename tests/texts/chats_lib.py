"""Tokenizers and records of the tests of chats. A tokenizer is one of tests/tokenizers/fixtures with the tokens of a
template."""
import json
import os

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tokenizers", "fixtures")
# Cases: template, tokenizer, its new tokens.
CASES = {
    "chatml": ("qwen", ["<|im_start|>", "<|im_end|>"]),
    "llama3": ("llama3", ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]),
    "gemma": ("metaspace_first", ["<bos>", "<start_of_turn>", "<end_of_turn>"]),
    "mistral": ("llama2", []),  # [INST] is text, as in the first version
    "mistral_v3": ("metaspace_first", ["[INST]", "[/INST]"]),
    "plain": ("llama2", []),
}


def tokenizer(case):
    """The text of a tokenizer.json."""
    name, tokens = CASES[case]
    with open(os.path.join(FIXTURES, name + ".json"), encoding="utf-8") as f:
        t = json.load(f)
    n = max(max(t["model"]["vocab"].values()), max(a["id"] for a in t["added_tokens"])) + 1
    for i, token in enumerate(tokens):
        t["added_tokens"].append({"id": n + i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                                  "normalized": False, "special": True})
    return json.dumps(t, ensure_ascii=False)


def chat(*turns):
    roles = ["user", "assistant"] * len(turns)
    return [{"role": r, "content": c} for r, c in zip(roles, turns)]


RECORDS = [
    chat("How are you?", "Fine, thanks."),
    chat("Hello", "\n\nHello there", "Bye", " Bye bye \n", "What is 2 + 2?", "4"),
    chat(" blanks  around ", "  two  words  "),
    chat("tab\tand\nlines\r\n", "\u00fcber \u4f60\u597d \U0001f600 e\u0301"),
    chat("word Hello World", "a word"),
    chat("1234567890", "'quoted' \"text\" \u00a0"),
    chat("x", "[/INST] and [INST]", "y", "..."),
]
WITH_SYSTEM = [
    [{"role": "system", "content": " Be kind. "}] + chat("Hi", "Hello"),
    [{"role": "system", "content": "Short\n"}] + chat("a", "b", "c", "d"),
]


def records_of(case):
    """transformers makes tokens of [INST] in a content; ampc does not."""
    return RECORDS[:-1 if case == "mistral_v3" else None] + ([] if case in ("gemma", "plain") else WITH_SYSTEM)
