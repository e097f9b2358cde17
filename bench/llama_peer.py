#!/usr/bin/env python3
"""Times steps of a small Llama on the CPU in f32: models/llama/llama.amp, and LlamaForCausalLM of transformers in PyTorch.

    llama_peer.py AMP [ROUNDS]     with transformers and tokenizers; one line a round, each side by turns

Both have 4 layers of 256 features, 4 heads, 4,096 tokens, AdamW and batches of 8 texts of 256 tokens. Their weights and
texts are random, so losses are not compared; tests/folder compares results and gradients.
"""
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "2"))

import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

WIDTH, INNER, LAYERS, HEADS, TOKENS, LENGTH, BATCH, STEPS, WARM = 256, 688, 4, 4, 4096, 256, 8, 40, 10
SIZES = {"WIDTH": WIDTH, "INNER": INNER, "DEPTH": LAYERS, "HEADS": HEADS, "KV_HEADS": HEADS, "HEAD_DIM": WIDTH // HEADS,
         "VOCAB": TOKENS, "CONTEXT": LENGTH, "BATCH": BATCH, "STEPS": STEPS, "RECOMPUTE": "false", "TIED": "false"}


def write_job(folder):
    """The job without its file of weights, a text, and a tokenizer."""
    random.seed(1)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 9))) for _ in range(6000)]
    text = " ".join(random.choices(words, k=400000))
    (folder / "texts").mkdir()
    (folder / "texts/a.txt").write_text(text)
    level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = level(add_prefix_space=False), tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator([text], tokenizers.trainers.BpeTrainer(
        vocab_size=TOKENS, initial_alphabet=level.alphabet(), show_progress=False))
    tokenizer.save(str(folder / "tokenizer.json"))
    job = (pathlib.Path(__file__).resolve().parents[1] / "models/llama/llama.amp").read_text()
    (folder / "llama.amp").write_text(job.replace("  load(WEIGHTS", "  #load(WEIGHTS"))


def ours(amp, folder):
    """Milliseconds of a step, by the samples per second of the last steps."""
    settings = sum((["-D", f"{name}={value}"] for name, value in SIZES.items()), [])
    done = subprocess.run([amp, "train", "--log", str(WARM), "--set", "precision=f32", *settings, "llama.amp"], cwd=folder,
                          capture_output=True, text=True, check=True)
    return BATCH / float(re.findall(r"([\d.]+) samples/s", done.stdout + done.stderr)[-1]) * 1e3


def theirs():
    net = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=TOKENS, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS, max_position_embeddings=LENGTH, tie_word_embeddings=False, attn_implementation="sdpa"))
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-5, fused=True)
    times = []
    for _ in range(STEPS):
        ids = torch.randint(TOKENS, (BATCH, LENGTH + 1))
        begin = time.perf_counter()
        out = net(ids[:, :-1], use_cache=False).logits
        torch.nn.functional.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[WARM:]) * 1e3


def main():
    amp, rounds = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    torch.set_num_threads(THREADS)
    with tempfile.TemporaryDirectory() as folder:
        write_job(pathlib.Path(folder))
        for _ in range(rounds):
            a, b = ours(amp, folder), theirs()
            print(f"ampc {a:.0f} ms, PyTorch {b:.0f} ms: {a / b:.2f}", flush=True)


main()
