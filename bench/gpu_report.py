#!/usr/bin/env python3
"""gpu_report.py FOLDER: prints the results of bench/gpu.sh as tables in Markdown.
gpu_report.py --predicted FOLDER GPU...: prints those of bench/gpu.sh predict."""
import glob
import json
import os
import re
import sys

WAYS = ["ampc", "eager", "compile", "graphs"]
TITLES = {"ampc": "ampc", "eager": "eager", "compile": "torch.compile", "graphs": "with graphs"}
NEAR = 0.4  # a prediction is near when it is within 40 %
# The permitted difference of the first losses, relative to ampc's: the rounding of the types and, with
# dropout, the effect of other random numbers (30 draws of each lie within 2 %).
ROUNDED = {"f32": 1e-4, "tf32": 2e-3, "f16": 2e-3, "bf16": 2e-2}
# Milliseconds of a step on an H200: bench/results/gpu-2026-11-27.md, of ampc 0bd9b788; mlp and mnist_cnn are older.
MEASURED = {"gpt2-bf16": 35.4, "resnet50-f16": 18.7, "vit_b_16-f16": 37.9, "unet-f16": 13.3, "mlp-f16": 0.0515,
            "mnist_cnn-f16": 1.63}
DROPOUT, WITH_DROPOUT = 0.03, {"mlp", "fashion_mnist", "gpt2_dropout", "bert_large", "efficientnet_b7"}


def read(path):
    """The object in a file; {"failed": why} if there is none. A loss that is not finite is None."""
    try:
        with open(path, encoding="utf-8") as f:
            found = json.load(f, parse_constant=lambda name: None)
    except FileNotFoundError:
        return {"failed": "not run yet"}
    except (OSError, ValueError) as e:
        return {"failed": f"{os.path.basename(path)} cannot be read: {e}"}
    return found if isinstance(found, dict) else {"failed": f"{os.path.basename(path)} has no object"}


def number(value, form):
    return form.format(value) if value is not None else "-"


def loss(one, key):
    return "not finite" if key in one and one[key] is None else number(one.get(key), "{:.4f}")


def times(a, b):
    return f"{a / b:.2f}" if a and b else "-"


def pair_of(folder, pair):
    """{way: its object}, and "cost": that of the prediction."""
    return {part: read(os.path.join(folder, f"{pair}.{part}.json")) for part in WAYS + ["cost"]}


def blocks_of(one):
    return one["cost"].get("blocks") or [{"commands": []}]


def step_row(pair, one):
    ms = {way: one[way].get("step_ms") for way in WAYS}
    net, precision = pair.rsplit("-", 1)
    cells = [net, precision] + [number(ms[way], "{:.3f}") for way in WAYS]
    cells += [times(ms[way], ms["ampc"]) for way in WAYS[1:]]
    cells += [number(one["ampc"].get("samples_per_second"), "{:.0f}"), number(blocks_of(one)[0].get("predicted_us"), "{:.0f}"),
              " / ".join(number(one[way].get("memory_bytes") and one[way]["memory_bytes"] / 1e6, "{:.0f}") for way in WAYS),
              " / ".join(number(one[way].get("ready_seconds"), "{:.1f}") for way in WAYS),
              " / ".join(loss(one[way], "first_loss") for way in WAYS),
              " / ".join(loss(one[way], "last_loss") for way in WAYS)]
    return "| " + " | ".join(cells) + " |"


def strange_losses(pair, one):
    """Lists losses that differ too much, although both sides start from the same weights and batch."""
    net, precision = pair.rsplit("-", 1)
    ours = one["ampc"].get("first_loss")
    far = max(ROUNDED.get(precision, 0), DROPOUT if net in WITH_DROPOUT else 0)
    out = []
    for way in WAYS:
        out += [f"- {pair}, {TITLES[way]}: its {key.replace('_', ' ')} is not finite"
                for key in ("first_loss", "last_loss") if key in one[way] and one[way][key] is None]
        theirs = one[way].get("first_loss")
        if ours is not None and theirs is not None and abs(theirs - ours) > far * abs(ours):
            out.append(f"- {pair}, {TITLES[way]}: its first loss is {theirs:.4f}, that of ampc {ours:.4f}: the trainings differ")
    return out


def command_rows(pair, one):
    """The ten commands that take longest: predicted and measured times."""
    known = [c for c in blocks_of(one)[0]["commands"] if c.get("measured_us")]
    known.sort(key=lambda c: -c["measured_us"])
    rows, near = [], 0
    for c in known[:10]:
        us, measured = c["predicted_us"], c["measured_us"]
        near += abs(us - measured) <= NEAR * measured
        rows.append(f"| {pair} | {c['name']} | {measured:.1f} | {us:.1f} | {us / measured:.2f} | {c['bound']} |")
    return rows, near, len(known[:10])


def put_list(title, lines):
    if lines:
        print(f"\n{title}:\n\n" + "\n".join(lines))


def put_commands(all_of):
    rows, near, known = [], 0, 0
    for pair, one in all_of.items():
        more, good, n = command_rows(pair, one)
        rows, near, known = rows + more, near + good, known + n
    if not rows:
        return
    print(f"\nThe ten longest commands of each pair. Each was repeated in a row, so data that fit into L2 are read from there;"
          f"\nthe prediction assumes that they are not. {near} of {known} are predicted within {NEAR:.0%}.\n")
    print("| pair | command | measured us | predicted us | ratio | bound by |")
    print("|" + "---|" * 6)
    print("\n".join(rows))


def put_predictions(folder, *gpus):
    print("# Predicted steps on a GPU\n")
    print("Milliseconds of a training step, predicted by `amp inspect --gpu` with cuDNN, for the nets, batches and precisions that")
    print("`bench/gpu.sh` measures; gpt2_dropout is gpt2 with dropout 0.1. `bench/gpu.sh predict` writes this page.")
    print("If a measured step differs much, `amp profile job.amp` on that GPU shows the commands that differ. Measured: on an H200,")
    print("with ampc 0bd9b788 ([how](results/gpu-2026-11-27.md)); mlp and mnist_cnn with 872dfc33.\n")
    print(f"| net | precision | batch | {' | '.join(gpus)} | measured, h200 | h200 / measured |\n" + "|---" * (5 + len(gpus)) + "|")
    for pair in sorted({os.path.basename(path).split(".")[0] for path in glob.glob(os.path.join(folder, "*.json"))}):
        block = {gpu: read(os.path.join(folder, f"{pair}.{gpu}.json"))["blocks"][0] for gpu in gpus}
        ms = {gpu: block[gpu]["predicted_us"] / 1e3 for gpu in gpus}
        cells = [*pair.rsplit("-", 1), str(block[gpus[0]]["batch"]), *(f"{ms[gpu]:.3g}" for gpu in gpus)]
        cells += [number(MEASURED.get(pair), "{:.3g}"), times(ms.get("h200"), MEASURED.get(pair))]
        print("| " + " | ".join(cells) + " |")


def main():
    if sys.argv[1] == "--predicted":
        return put_predictions(*sys.argv[2:])
    folder = sys.argv[1]
    pairs = sorted({found[1] for found in (re.match(rf"(\w+-\w+)\.({'|'.join(WAYS)})\.json$", os.path.basename(p))
                                           for p in glob.glob(os.path.join(glob.escape(folder), "*.json"))) if found})
    if not pairs:
        sys.exit(f"gpu_report.py: {folder} has no results")
    all_of = {pair: pair_of(folder, pair) for pair in pairs}
    devices = {one[way]["device"] for one in all_of.values() for way in WAYS if "device" in one[way]}
    models = {one["cost"]["gpu"]["model"] for one in all_of.values() if "gpu" in one["cost"]}
    print("# Training steps on a GPU, compared with PyTorch\n")
    print("Milliseconds of a step: the median over groups of steps, in which the host does not wait. Both sides start with the")
    print("same weights and use the same batches of 128 (gpt2: 16) in the same order; their dropout masks differ. PyTorch uses")
    print("autocast, fused optimizers, channels_last and cudnn.benchmark; `with graphs` is mode reduce-overhead. Predicted: by")
    print("`amp inspect --gpu`. Memory: the bytes of ampc's spaces, and of PyTorch's allocator. Ready: the seconds from the start")
    print("of ampc's compiler to the end of its first step, and from the end of PyTorch's import to the end of its third step.\n")
    print("Devices: " + (", ".join(sorted(devices)) or "none") + ". Predicted for: " + (", ".join(sorted(models)) or "none") + "\n")
    print("| net | precision | ampc ms | eager | torch.compile | with graphs | eager / ampc | compile / ampc | graphs / ampc |"
          " samples/s | predicted us | memory MB | ready s | first loss | last loss |")
    print("|" + "---|" * 15)
    for pair, one in all_of.items():
        print(step_row(pair, one))
    put_list("Not measured", [f"- {pair}, {TITLES[way]}: {one[way]['failed']}"
                              for pair, one in all_of.items() for way in WAYS if "failed" in one[way]])
    put_list("Not predicted", [f"- {pair}: {one['cost']['failed']}" for pair, one in all_of.items() if "failed" in one["cost"]])
    put_list("Losses", [line for pair, one in all_of.items() for line in strange_losses(pair, one)])
    put_commands(all_of)


if __name__ == "__main__":
    main()
