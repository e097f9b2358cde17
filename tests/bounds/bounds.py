#!/usr/bin/env python3
"""Compares what `amp probe --json` measures with the bounds that the compiler has proved (compiler/rules/bounds.c).

bounds.py AMP MODEL..: runs two steps of each model in three precisions. tests/simt/reduced.txt makes them small.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

REDUCED = pathlib.Path(__file__).resolve().parents[1] / "simt" / "reduced.txt"


def outside(values):
    """What is wrong with these values, the `values` of the JSON after one step; None if nothing is.

    Values are in the order of the step. From the first one on that is not finite, bounds claim nothing, and that value itself must
    not have been called safe.
    """
    for v in values:
        if v["bound"] is None or not v["elements"]:
            continue
        name, (low, high) = f"{v['name']}, {v['type']}, line {v['line']}", v["bound"]
        if v["nan"] or v["infinite"]:
            lost = f"{v['nan']} elements are NaN and {v['infinite']} infinite, but the compiler calls it safe"
            return f"{name}: {lost}" if v["overflow"] == "no" else None
        most = max(abs(low), abs(high))
        least = max(low, -high, 0)  # of the magnitudes, if the bound excludes 0
        if v["greatest"] > most:
            return f"{name}: a magnitude of {v['greatest']:.9g} is beyond the bound [{low:.9g}, {high:.9g}]"
        if least > 0 and (v["zeros"] or v["least"] < least):
            return f"{name}: a magnitude of {0 if v['zeros'] else v['least']:.9g} is below the bound [{low:.9g}, {high:.9g}]"
    return None


def useful(values):
    """The number of values whose bound is far from the range of f16, so that the comparison says something."""
    return sum(v["bound"] is not None and max(map(abs, v["bound"])) < 60000 for v in values)


def values_of(path):
    return json.loads(path.read_text())["values"]


def main():
    options = dict(line.split("@") for line in REDUCED.read_text().splitlines() if "@" in line and line[0] != "#")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "probe.json"
        for model in sys.argv[2:]:
            for precision in ("f16", "f32", "bf16"):
                reduced = options.get("/".join(pathlib.Path(model).parts[-3:]), "").split()
                subprocess.run([sys.argv[1], "probe", "--device", "cpu", "--steps", "2", "--set", f"precision={precision}", "--json",
                                "--force", "--output", out, *reduced, model], check=True)
                values = values_of(out)
                wrong = outside(values)
                print(f"{model}, {precision}: {len(values)} values, {useful(values)} with a bound below 60000")
                bad += wrong is not None
                if wrong:
                    print(f"FAILED: {model}, {precision}: {wrong}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
