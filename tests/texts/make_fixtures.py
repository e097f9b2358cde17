#!/usr/bin/env python3
"""Writes fixtures/chats.json, ids and masks of apply_chat_template, and fixtures/loss.json, the loss of the answers of the
job in texts.py. Needs pip's transformers, jinja2 and torch.
usage: tests/texts/make_fixtures.py"""
import json
import os
import tempfile

import torch
from transformers import PreTrainedTokenizerFast

from chats_lib import CASES, RECORDS, records_of, tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
# The templates of Qwen's and OpenHermes' models (chatml), Meta-Llama-3-8B-Instruct, gemma-1.1-7b-it and
# Mistral-7B-Instruct-v0.3, with {% generation %} around answers. The last one puts the system message into the last
# message if that is the user's, so it leaves it out of a whole chat; here it is in the first message of the user.
CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}{% if message['role'] == 'assistant' %}"
          "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{% else %}"
          "{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}")
LLAMA3 = ("{{ '<|begin_of_text|>' }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + "
          "'<|end_header_id|>\n\n' }}{% if message['role'] == 'assistant' %}{% generation %}"
          "{{ message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}{% else %}"
          "{{ message['content'] | trim + '<|eot_id|>' }}{% endif %}{% endfor %}")
GEMMA = ("{{ '<bos>' }}{% for message in messages %}{% if message['role'] == 'assistant' %}{{ '<start_of_turn>model\n' }}"
         "{% generation %}{{ message['content'] | trim + '<end_of_turn>' }}{% endgeneration %}{{ '\n' }}{% else %}"
         "{{ '<start_of_turn>' + message['role'] + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endif %}"
         "{% endfor %}")
MISTRAL = ("{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] + '\n\n' %}"
           "{% set rest = messages[1:] %}{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}{{ '<s>' }}"
           "{% for message in rest %}{% if message['role'] == 'user' %}"
           "{{ '[INST] ' + (system if loop.first else '') + message['content'] + '[/INST]' }}{% else %}{{ ' ' }}"
           "{% generation %}{{ message['content'] | trim + '</s>' }}{% endgeneration %}{% endif %}{% endfor %}")
TEMPLATES = {"chatml": CHATML, "llama3": LLAMA3, "gemma": GEMMA, "mistral": MISTRAL, "mistral_v3": MISTRAL}


def of_case(case):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        f.write(tokenizer(case))
        f.flush()
        t = PreTrainedTokenizerFast(tokenizer_file=f.name)
    out = []
    for record in records_of(case):
        if case == "plain":  # as TRL: prompt + completion + eos, and what the tokenizer adds before
            text = "".join(m["content"] + ("</s>" if m["role"] == "assistant" else "") for m in record)
            out.append({"ids": t(text)["input_ids"]})
            continue
        r = t.apply_chat_template(record, chat_template=TEMPLATES[case], tokenize=True, return_dict=True,
                                  return_assistant_tokens_mask=True)
        out.append({"ids": r["input_ids"], "mask": r["assistant_masks"]})
    return out


def loss_of(records, length=33):
    """The loss that texts.py computes. Only tokens of answers count: each is predicted from the tokens before it."""
    ids = torch.full((len(records), length), 0)
    mask = torch.zeros((len(records), length), dtype=torch.bool)
    for i, r in enumerate(records):
        n = min(length, len(r["ids"]))
        ids[i, :n] = torch.tensor(r["ids"][:n])
        mask[i, :n] = torch.tensor(r["mask"][:n], dtype=torch.bool)
    logits = torch.sin((ids[:, :-1] + 1).double().unsqueeze(-1) * torch.arange(620).double() * 0.01)
    target = torch.where(mask[:, 1:], ids[:, 1:], -100)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100).item()


if __name__ == "__main__":
    with open(os.path.join(HERE, "fixtures", "chats.json"), "w", encoding="utf-8") as f:
        cases = {case: of_case(case) for case in CASES}
        json.dump(cases, f, separators=(",", ":"))
        f.write("\n")
    with open(os.path.join(HERE, "fixtures", "loss.json"), "w", encoding="utf-8") as f:
        f.write(f"{loss_of(cases['chatml'][:len(RECORDS)])}\n")
