#!/usr/bin/env python3
"""Writes sampled.def, the probabilities of the next token by the LogitsProcessors of transformers in f64, in the order of
its generate(). Needs pip's transformers and torch.
usage: tests/unit/make_sampled.py"""
import os

import torch
from transformers.generation import logits_process as lp

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sampled.def")
TEXT = [3, 17, 3, 0, 8, 17, 21, 5]
# temperature, top_k, top_p, min_p, repetition_penalty
CASES = [
    (1.0, 0, 1.0, 0.0, 1.0),
    (1.0, 0, 0.9, 0.0, 1.0),
    (1.0, 0, 0.3, 0.0, 1.0),
    (1.0, 0, 0.0, 0.0, 1.0),
    (1.0, 0, 0.999999, 0.0, 1.0),
    (1.0, 0, 1.0, 0.05, 1.0),
    (1.0, 0, 1.0, 1.0, 1.0),
    (1.0, 0, 1.0, 0.0, 1.3),
    (1.0, 0, 1.0, 0.0, 0.7),
    (0.7, 0, 0.8, 0.0, 1.0),  # temperature before top-p
    (2.5, 0, 1.0, 0.2, 1.0),  # temperature before min-p
    (1.0, 6, 0.8, 0.0, 1.0),  # top-p of the sum that top-k leaves
    (1.0, 0, 0.85, 0.1, 1.0),  # top-p before min-p
    (0.6, 10, 0.95, 0.1, 1.2),
    (1.4, 12, 0.9, 0.02, 3.0),
]


def probabilities(logits, temperature, top_k, top_p, min_p, penalty):
    steps = lp.LogitsProcessorList()
    if penalty != 1:
        steps.append(lp.RepetitionPenaltyLogitsProcessor(penalty))
    if temperature != 1:
        steps.append(lp.TemperatureLogitsWarper(temperature))
    if top_k:
        steps.append(lp.TopKLogitsWarper(top_k))
    if top_p < 1:
        steps.append(lp.TopPLogitsWarper(top_p))
    if min_p > 0:
        steps.append(lp.MinPLogitsWarper(min_p))
    return torch.softmax(steps(torch.tensor([TEXT]), logits.clone()[None]), -1)[0].tolist()


def row(name, *values):
    line, lines = f"{name}(", []
    for i, v in enumerate(values):
        word = f"{v!r}" + (")" if i + 1 == len(values) else ",")
        if len(line) + 1 + len(word) > 99:
            lines.append(line)
            line = "    "
        line += word if line.endswith(("(", "    ")) else " " + word
    return "\n".join(lines + [line]) + "\n"


def main():
    torch.manual_seed(5)
    logits = (torch.randn(24, dtype=torch.float64) * 2).mul(1000).round().div(1000)
    assert len(set(logits.tolist())) == len(logits), "equal logits: transformers keeps any of them"
    with open(OUT, "w", encoding="utf-8") as f:
        f.write("// Written by make_sampled.py. LOGITS, the tokens of TEXT, and for each CASE: temperature, top_k,\n"
                "// top_p, min_p, repetition_penalty and the probabilities of all tokens.\n")
        f.write(row("LOGITS", *logits.tolist()) + row("TEXT", *TEXT))
        for case in CASES:
            f.write(row("CASE", *case, *probabilities(logits, *case)))


if __name__ == "__main__":
    main()
