#!/usr/bin/env python3
"""gpu_report.py FOLDER: the table of what bench/gpu.sh has measured, in Markdown."""
import glob
import json
import os
import sys

WAYS = ["ampc", "eager", "compile", "graphs"]
TITLES = {"ampc": "ampc", "eager": "eager", "compile": "torch.compile", "graphs": "with graphs"}
NEAR = 0.4  # a prediction is near when it is within 40 %


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def number(value, form):
    return form.format(value) if value is not None else "-"


def times(a, b):
    return f"{a / b:.2f}" if a and b else "-"


def step_row(folder, pair):
    one = {way: read(os.path.join(folder, f"{pair}.{way}.json")) for way in WAYS}
    ms = {way: one[way].get("step_ms") for way in WAYS}
    blocks = read(os.path.join(folder, f"{pair}.cost.json")).get("blocks") or [{}]
    net, precision = pair.rsplit("-", 1)
    cells = [net, precision] + [number(ms[way], "{:.3f}") for way in WAYS]
    cells += [times(ms[way], ms["ampc"]) for way in WAYS[1:]]
    cells += [number(one["ampc"].get("samples_per_second"), "{:.0f}"), number(blocks[0].get("us"), "{:.0f}"),
              " / ".join(number(one[way].get("memory_bytes") and one[way]["memory_bytes"] / 1e6, "{:.0f}") for way in WAYS),
              " / ".join(number(one[way].get("ready_seconds"), "{:.1f}") for way in WAYS),
              " / ".join(number(one[way].get("last_loss"), "{:.4f}") for way in WAYS)]
    failed = [f"- {pair}, {TITLES[way]}: {one[way]['failed']}" for way in WAYS if "failed" in one[way]]
    return "| " + " | ".join(cells) + " |", failed


def command_rows(folder, pair):
    """The ten commands that take longest: predicted beside measured."""
    blocks = read(os.path.join(folder, f"{pair}.cost.json")).get("blocks") or [{"commands": []}]
    known = [c for c in blocks[0]["commands"] if c["cost"].get("measured_us")]
    known.sort(key=lambda c: -c["cost"]["measured_us"])
    rows, near = [], 0
    for c in known[:10]:
        us, measured = c["cost"]["us"], c["cost"]["measured_us"]
        near += abs(us - measured) <= NEAR * measured
        rows.append(f"| {pair} | {c['name']} | {measured:.1f} | {us:.1f} | {us / measured:.2f} | {c['cost']['bound']} |")
    return rows, near, len(known[:10])


def main():
    folder = sys.argv[1]
    pairs = sorted({os.path.basename(p)[:-len(".ampc.json")] for p in glob.glob(os.path.join(folder, "*.ampc.json"))})
    if not pairs:
        sys.exit(f"gpu_report.py: {folder} has no results")
    devices = {read(p).get("device") for p in glob.glob(os.path.join(folder, "*.json"))} - {None}
    print("# Training steps on a GPU beside PyTorch\n")
    print("Milliseconds of a step: the median of groups of steps, in which the host does not wait. Both sides start from")
    print("the same weights and take the same batches of 128 in the same order; dropout draws other numbers. PyTorch: autocast,")
    print("fused optimizers, channels_last; `with graphs` is mode reduce-overhead. Predicted: `amp inspect --gpu`. Memory: what")
    print("the spaces of ampc and PyTorch's allocator hold. Seconds: until the first step of ampc and the third of PyTorch are done.\n")
    print("Devices: " + ", ".join(sorted(devices)) + "\n")
    print("| net | precision | ampc ms | eager | torch.compile | with graphs | eager / ampc | compile / ampc | graphs / ampc |"
          " samples/s | predicted us | memory MB | ready s | last loss |")
    print("|" + "---|" * 14)
    failures, rows, near, known = [], [], 0, 0
    for pair in pairs:
        row, failed = step_row(folder, pair)
        print(row)
        failures += failed
        more, good, n = command_rows(folder, pair)
        rows, near, known = rows + more, near + good, known + n
    if failures:
        print("\nNot measured:\n\n" + "\n".join(failures))
    if rows:
        print(f"\nThe ten longest commands of each, repeated in a row; {near} of {known} predicted within {NEAR:.0%}.\n")
        print("| pair | command | measured us | predicted us | ratio | bound by |")
        print("|" + "---|" * 6)
        print("\n".join(rows))


main()
