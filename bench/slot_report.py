#!/usr/bin/env python3
"""slot_report.py FOLDER...: prints the results of bench/slot.sh as a table in Markdown. A FOLDER has the results, or the
archives slot-1.tar.gz and slot-2.tar.gz of them."""
import glob
import os
import re
import sys
import tarfile
import tempfile
from gpu_report import loss, number, read

TITLES = {1: "attention, selftest", 2: "mnist_cnn, selftest", 3: "steps", 4: "torch.compile", 5: "types and memory",
          6: "memcheck", 7: "resnet50 by command"}


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def put(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def put_text(part, path):
    """A selftest, or a run of compute-sanitizer: what it says at its end, and the largest error of a whole job."""
    name, text = os.path.basename(path)[2:-4], text_of(path)
    said = re.findall(r"^\d+ passed, \d+ failed$|ERROR SUMMARY: .*|^skipped: .*", text, re.M) or ["no result"]
    errors = [float(e) for e in re.findall(r"minimize: .*\(error (\S+) of the bound\)", text)]
    worst = f"; jobs: at most {max(errors):.2f} of the bound" if errors else ""
    put(part, TITLES[part] + (", " + name if name else ""), "", "", "", "", said[-1] + worst)


def put_steps(part, path):
    net, precision, way = re.fullmatch(r"(\w+)-(\w+)\.(\w+)\.json", os.path.basename(path)).groups()
    how = os.path.basename(os.path.dirname(path)).partition(".")[2]
    one = read(path)
    put(part, f"{net} {precision}, {how or way}", number(one.get("step_ms"), "{:.3f}"),
        number(one.get("memory_bytes") and one["memory_bytes"] / 1e6, "{:.0f}"), loss(one, "first_loss"),
        loss(one, "last_loss"), one.get("failed", ""))


def put_part(folder, part):
    for path in sorted(glob.glob(os.path.join(folder, f"{part}.*txt"))):
        put_text(part, path)
    for way in ("compile",) if part == 4 else ("ampc",):
        for path in sorted(glob.glob(os.path.join(folder, f"{part}*", f"*.{way}.json"))):
            put_steps(part, path)
    if not os.path.exists(os.path.join(folder, f"{part}.done")):
        why = os.path.join(folder, f"{part}.why")
        put(part, TITLES[part], "", "", "", "", "**missing**: " + (text_of(why).strip() if os.path.exists(why) else "not run yet"))


def gather(folders, into):
    """Links or unpacks all results into one folder. Those of later archives replace those of earlier ones."""
    for folder in folders:
        for archive in sorted(glob.glob(os.path.join(folder, "slot-*.tar.gz"))):
            with tarfile.open(archive) as tar:
                tar.extractall(into, filter="data")
        if not glob.glob(os.path.join(folder, "slot-*.tar.gz")):
            for path in os.listdir(folder):
                os.symlink(os.path.abspath(os.path.join(folder, path)), os.path.join(into, path))


def main():
    with tempfile.TemporaryDirectory() as into:
        gather(sys.argv[1:], into)
        devices = {read(path).get("device") for path in glob.glob(os.path.join(into, "*", "*.json"))} - {None}
        print("Devices: " + (", ".join(sorted(devices)) or "none") + "\n")
        put("part", "what", "ms of a step", "memory MB", "first loss", "last loss", "result")
        print("|" + "---|" * 7)
        for part in TITLES:
            put_part(into, part)


main()
