#!/usr/bin/env python3
"""ops.py AMPC AMP ops.txt [--rewrite]

Compares the bound of each expression in ops.txt with the numbers next to it (under precision f16), and with measured values, in
three precisions. The positive and the negative part of each expression are measured separately, since probes measure magnitudes.
Also compares the values of backward. --rewrite writes the numbers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import bounds

HEAD = """data d() { return synthetic(8, [6, 8, 8], low=-2.0, high=3.0), synthetic(8, [6, 8, 8], low=0.1, high=0.9),
  synthetic(8, [6, 8, 8], dtype=i64, low=0, high=7), synthetic(8, [99]) }
module Net() {
  w = Parameter([], init=ones_())
  def forward(x0, p0, n, z) {
    x = clamp(x0 * w, -2.0, 3.0)  # the same numbers, with a gradient
    p = clamp(p0 * w, 0.1, 0.9)
    total = w * 0.0
"""
TAIL = """    return total
  }
}
model net = Net()
optimizer opt = SGD(net, lr=0.0)
precision PRECISION
train x, p, n, z in d() with batch=8, steps=1 { minimize net(x, p, n, z) with opt }
"""
PRECISIONS = "f16 { scaler(off) }", "f32", "bf16"  # without a scaler, backward has bounds, too
COLUMN = 64


def read(path):
    """(lines, expressions): what is copied, and [(expression, expected text)]."""
    lines = path.read_text().splitlines()
    found = [line.partition(" | ") for line in lines if line and not line.startswith(("#", "let "))]
    return [line[4:] for line in lines if line.startswith("let ")], [(text.strip(), want.strip()) for text, _, want in found]


def write_job(path, copied, found, precision, measured):
    body = list(copied)
    for i, (text, _) in enumerate(found):
        if measured and text[0] == "!":
            continue
        body += [f"v{i} = {text.lstrip('! ')}", f"up{i} = relu(v{i}.to(f32))", f"down{i} = relu(-v{i}.to(f32))",
                 f"total = total + 3.0 * v{i}.to(f32).mean() + up{i}.mean() - 0.1 * down{i}.mean()"]
    path.write_text(HEAD + "".join(f"    {line}\n" for line in body) + TAIL.replace("PRECISION", precision))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"FAILED: {' '.join(map(str, command))}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def proved(ampc, path):
    """{name: text of the bound} of the named values."""
    nodes = json.loads(run(ampc, "--explain=json", "--target=cpu", path))["nodes"]
    show = lambda n: ("-inf inf" if n["bound"] is None else "{:.5g} {:.5g}".format(*n["bound"])) + " " + n["overflow"]
    return {n["name"]: show(n) for n in nodes if n["name"] and not n["backward"] and n["overflow"]}


def signed(values):
    """Joins up7 and down7 to the signed range of v7, and compares it with the bound of v7."""
    named = {v["name"].split("`")[1]: v for v in values if "`" in v["name"] and not v["backward"]}
    for name, v in named.items():
        up, down = named.get("up" + name[1:]), named.get("down" + name[1:])
        if name[0] != "v" or not up or not down or v["bound"] is None or up["infinite"] or down["infinite"]:
            continue
        if up["greatest"] > max(v["bound"][1], 0) or -down["greatest"] < min(v["bound"][0], 0):
            return f"{name}: from {-down['greatest']} to {up['greatest']}, beyond {v['bound']}"
    return None


def main():
    ampc, amp, table = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
    copied, found = read(table)
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        job, out = pathlib.Path(folder) / "ops.amp", pathlib.Path(folder) / "probe.json"
        write_job(job, copied, found, PRECISIONS[0], False)
        got = proved(ampc, job)
        for i, (text, want) in enumerate(found):
            found[i] = (text, got.get(f"v{i}", "none"))
            if found[i][1] != want and sys.argv[-1] != "--rewrite":
                bad.append(f"{text}: the bound is {found[i][1]}, expected {want}")
        for precision in PRECISIONS:
            write_job(job, copied, found, precision, True)
            run(amp, "probe", "--device", "cpu", "--steps", "1", "--json", "--output", out, job)
            values = bounds.values_of(out)
            wrong = bounds.outside(values) or signed(values)
            print(f"{precision[:4]}: {len(values)} values, {bounds.useful(values)} with a bound below 60000")
            if wrong:
                number = int("".join(c for c in wrong.split(":")[0].split("v")[-1] if c.isdigit()) or -1)
                bad.append(f"{precision[:4]}: {wrong} {found[number][0] if 0 <= number < len(found) else ''}")
    if sys.argv[-1] == "--rewrite":
        kept = [line for line in table.read_text().splitlines() if line.startswith(("#", "let "))]
        table.write_text("\n".join(kept + [f"{text:<{COLUMN}} | {want}" for text, want in found]) + "\n")
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
