#!/usr/bin/env python3
"""Time of a token of a language model by the length of the text before it: `amp infer --generate` beside transformers with
its cache, which reads the same weights:
MODEL is a folder of Hugging Face or a GGUF file. Needs torch, transformers and gguf.
  text.py AMP JOB.amp MODEL [--types float32,bfloat16] [--lengths 10,1000] [--block] [--batches 1,8]
--block also measures `--no-cache`, where each token is computed from all tokens before it. --batches measures tokens a
second of so many short prompts at once, prompts included; the job needs a tokenizer."""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

TOKENS = 24
TEXT_TOKENS = 128 # of each text of a batch


def amp_time(arguments, length, more=()):
    """Returns the seconds of a token after a prompt of that many tokens."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as f:
        f.write(struct.pack(f"<{length}H", *[(i * 37 + 11) % 1000 + 100 for i in range(length)]))
        f.flush()
        run = subprocess.run(
            [arguments.amp, "infer", "--device", "cpu", "--temperature", "0", "--generate", str(TOKENS), "--prompt-file", f.name,
             *more, arguments.job], capture_output=True, text=True, check=False)
    found = re.search(r"prompt: .* in ([0-9.]+) s; (\d+) tokens in ([0-9.]+) s", run.stderr)
    if not found:
        sys.exit(run.stderr)
    return float(found[1]), float(found[3]) / (int(found[2]) - 1) # the first token is drawn after the prompt


def peer_time(model, torch, length):
    ids = torch.tensor([[(i * 37 + 11) % 1000 + 100 for i in range(length)]])
    with torch.inference_mode():
        begun = time.perf_counter()
        out = model(ids, use_cache=True)
        prompt = time.perf_counter() - begun
        times = []
        for _ in range(TOKENS):
            begun = time.perf_counter()
            out = model(out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values, use_cache=True)
            times.append(time.perf_counter() - begun)
    return prompt, sum(times[1:]) / (TOKENS - 1)


def amp_batch(arguments, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.writelines(f"{i}. On the other side of the river\n" for i in range(texts))
        f.flush()
        run = subprocess.run(
            [arguments.amp, "infer", "--device", "cpu", "--temperature", "0", "--generate", str(TEXT_TOKENS), "--prompts", f.name,
             "--batch", str(texts), arguments.job], capture_output=True, text=True, check=False)
    found = re.search(r"prompts: .* \(([0-9.]+) a second\)", run.stderr)
    if not found:
        sys.exit(run.stderr)
    return float(found[1])


def peer_batch(model, torch, texts):
    ids = torch.tensor([[(i * 37 + k * 11) % 1000 + 100 for i in range(10)] for k in range(texts)])
    with torch.inference_mode():
        begun = time.perf_counter()
        out = model(ids, use_cache=True)
        for _ in range(TEXT_TOKENS - 1):
            out = model(out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values, use_cache=True)
        return texts * TEXT_TOKENS / (time.perf_counter() - begun)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("amp")
    p.add_argument("job")
    p.add_argument("model")
    p.add_argument("--types", default="float32,bfloat16")
    p.add_argument("--lengths", default="10,1000")
    p.add_argument("--block", action="store_true")
    p.add_argument("--batches", default="")
    arguments = p.parse_args()
    lengths = [int(n) for n in arguments.lengths.split(",") if n]
    batches = [int(n) for n in arguments.batches.split(",") if n]
    print(f"{'':<28}" + "".join(f"{f'prompt {n}':>14}{'a token':>12}" for n in lengths))

    def row(name, measure):
        cells = [measure(n) for n in lengths]
        print(f"{name:<28}" + "".join(f"{prompt * 1e3:>11.0f} ms{token * 1e3:>9.1f} ms" for prompt, token in cells), flush=True)

    def batch_row(name, measure):
        if batches:
            print(f"{name + ', tokens a second':<48}" + "".join(f"{n:>4} texts{measure(n):>8.1f}" for n in batches), flush=True)

    batch_row("amp infer", lambda n: amp_batch(arguments, n))
    row("amp infer", lambda n: amp_time(arguments, n))
    if arguments.block:
        row("amp infer --no-cache", lambda n: amp_time(arguments, n, ["--no-cache"]))
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    folder, name = os.path.split(os.path.abspath(arguments.model))
    where = (arguments.model, {}) if os.path.isdir(arguments.model) else (folder, {"gguf_file": name})
    for dtype in arguments.types.split(","):
        model = AutoModelForCausalLM.from_pretrained(where[0], dtype=getattr(torch, dtype), **where[1]).eval()
        peer_time(model, torch, 10) # warm-up
        batch_row(f"transformers, {dtype}", lambda n: peer_batch(model, torch, n))
        row(f"transformers, {dtype}", lambda n: peer_time(model, torch, n))


main()
