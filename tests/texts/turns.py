#!/usr/bin/env python3
"""The ids of conversations, turn by turn, beside those of whole records.
usage: tests/texts/turns.py TURNS_CHECK"""
import json
import os
import subprocess
import sys
import tempfile

from chats_lib import CASES, chat, records_of, tokenizer

CHECK = os.path.abspath(sys.argv[1])
OWN = "<|im_start|>user\r{prompt}<|im_end|>\r<|im_start|>assistant\r{answer}<|im_end|>\r"
LONG = [chat("Hello", "Hello there", "Bye", "Bye bye", "What is 2 + 2?", "4", " blanks  around ", "two  words"),
        chat("tab\tand\nlines\r\n", "\u00fcber \u4f60\u597d", "\U0001f600 e\u0301", "'quoted'", "", "x")]


def check(case, template):
    with open("tokenizer.json", "w", encoding="utf-8") as f:
        f.write(tokenizer(case))
    long = LONG[1:] if case == "plain" else LONG  # without a template a blank at the end of a question joins the answer's word
    records = [r for r in records_of(case) + long if template != OWN or r[0]["role"] == "user"]
    lines = "".join(json.dumps({"messages": r}) + "\n" for r in records)
    run = subprocess.run([CHECK, "tokenizer.json", template], input=lines, capture_output=True, text=True, check=False)
    print(case, run.stdout, run.stderr)
    return run.returncode == 0 and f"{2 * len(records)} conversations" in run.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        good = [check(case, case.split("_")[0]) for case in CASES] + [check("chatml", OWN)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
