#!/usr/bin/env python3
"""Is a precision worth it? For each model and each way to choose types: bytes of casts, memory, bytes of all kernels, predicted
times of a training step on two GPUs, and the measured time on this CPU.

    bench/precision.py BUILD [--out FILE.md] [--measure] [JOB ...]

BUILD: a Release build; JOBs: default all models that train. --measure also times steps on this CPU with BUILD/bench_steps, of
jobs whose data exist and whose step takes less than 5 s; the table names the load of the machine. A cell `E401` is the
code of the error with which the job refuses this precision.

To compare another way to choose types, add a row to VARIANTS."""
import argparse
import datetime
import glob
import json
import os
import re
import subprocess
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# name: settings, and replacements in the text of the job: (pattern, text)
VARIANTS = {
    "f32": (["precision=f32"], []),
    "f16": (["precision=f16"], []),
    "bf16": (["precision=bf16"], []),
    "O2": (["precision=O2"], []),
    "f16, fewest casts": (["precision=f16", "fewest_casts=true"], []),
    "bf16, fewest casts": (["precision=bf16", "fewest_casts=true"], []),
}
GPUS = "h200", "l4"
SLOWEST, TIMED = 5000, 5  # ms of a step, number of steps

HEAD = """# What a precision saves

{date}. `bench/precision.py` explains what is counted; ampc {ampc}. MB of 10^6 bytes and ms, for one training step.
{measured}

| Job | Precision | casts | memory | all kernels | H200, predicted | L4, predicted | CPU, measured |
|---|---|---|---|---|---|---|---|
"""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def options_of(settings):
    return [word for s in settings for word in ("--set", s)]


def predicted(build, job, settings):
    """The cells of --explain; the code of the first error if the job refuses the precision."""
    cells = []
    for gpu in GPUS:
        done = run(f"{build}/ampc", "--explain=json", "--gpu", gpu, *options_of(settings), job)
        if done.returncode:
            code = re.search(r"error\[(E\d+)\]", done.stderr)
            return [code[1] if code else f"status {done.returncode}"] + ["-"] * 4
        found = json.loads(done.stdout)
        if not cells:
            cells = [f"{found['cast_bytes'] / 1e6:.2f}", f"{found['memory_bytes'] / 1e6:.0f}",
                     f"{(found['read'] + found['written']) / 1e6:.0f}"]
        cells.append(f"{found['predicted']['us'] / 1e3:.2f}")
    return cells


def measured(build, job, settings):
    with tempfile.TemporaryDirectory() as folder:
        for steps in ("1", str(TIMED)):  # one step tells whether more would take too long
            done = run("nice", f"{build}/bench_steps", "--json", folder, "1", steps, job, *settings)
            if done.returncode:
                return "-"
            ms = json.loads(done.stdout)["step_ms"]
            if ms > SLOWEST:
                break
    return f"{ms:.1f}"


def changed(job, replacements, folder):
    """The job, or a copy of it in the same folder with other text."""
    if not replacements:
        return job
    text = open(job, encoding="utf-8").read()
    for pattern, new in replacements:
        text = re.sub(pattern, new, text, flags=re.M)
    path = os.path.join(folder, os.path.basename(job))
    with open(path, "w", encoding="utf-8") as f:
        f.write(re.sub(r'^import "', f'import "{os.path.dirname(os.path.abspath(job))}/', text, flags=re.M))
    return path


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("build")
    reader.add_argument("jobs", nargs="*", metavar="JOB")
    reader.add_argument("--measure", action="store_true")
    reader.add_argument("--out", help="write the table there")
    options = reader.parse_intermixed_args()
    version = run(f"{options.build}/ampc", "--version").stdout.split("\n")[0].removeprefix("ampc ")
    times = "The CPU's times are medians of %d steps; the load was %.1f on %d cores." % (TIMED, os.getloadavg()[0], os.cpu_count())
    text = HEAD.format(date=datetime.date.today(), ampc=version, measured=times if options.measure else "No step was timed.")
    for job in options.jobs or sorted(glob.glob(os.path.join(ROOT, "models", "*", "*.amp"))):
        if not re.search(r"^train ", open(job, encoding="utf-8").read(), re.M):
            continue
        for name, (settings, replacements) in VARIANTS.items():
            with tempfile.TemporaryDirectory() as folder:
                path = changed(job, replacements, folder)
                cells = predicted(options.build, path, settings)
                cells.append(measured(options.build, path, settings) if options.measure and cells[-1] != "-" else "-")
            text += f"| {os.path.basename(job).removesuffix('.amp')} | {name} | " + " | ".join(cells) + " |\n"
    print(text)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
