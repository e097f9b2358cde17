#!/usr/bin/env python3
"""The structure of what `amp profile` measures. No time is compared with a number, because machines and loads differ.
Every command of the job is present, in the order of `amp inspect`. Sums by kind, layer and line equal the total. Spans
of the trace nest. Measuring does not change a training.
usage: tests/profile/profile.py AMP [MOCK]   MOCK: the folder of the mock libraries; then on a GPU that is a mock
"""
import json
import os
import subprocess
import sys
import tempfile

JOB = """const N = 160
data d() { return synthetic(N, [3, 128]), synthetic(N, [], dtype=i64, low=0, high=4) }
module Block() {
  fc = Linear(128, 128)
  def forward(x) { return dropout(relu(fc(x)), 0.1) }
}
module Net() {
  blocks = [Block() for _ in range(2)]
  rnn = GRU(128, 8)
  head = Linear(8, 4)
  def forward(x) {
    for b in blocks { x = b(x) }
    y = rnn(x)
    return head(y[0][:, -1])
  }
}
model net = Net()
optimizer opt = AdamW(net, lr=1e-3)
train x, y in d() with batch=64, epochs=100, save="never.safetensors" {
  minimize cross_entropy(net(x), y) with opt
  every 2 { metric acc = accuracy(net(x), y) }
}
eval x, y in d() with batch=80 { metric acc = accuracy(net(x), y) }
"""
NO_TRAIN = JOB[:JOB.index("train x")].replace("optimizer opt = AdamW(net, lr=1e-3)\n", "")
STEPS = 6

failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def run(*command, status=0):
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == status, f"{' '.join(command)}: status {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done


def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-3)


def check_block(b, inspected, threads, predicts):
    where = f"block {b['name']}, batch {b['batch']}, every {b['every']}"
    names = [c["name"] for c in b["commands"]]
    check(names == [c["name"] for c in inspected["commands"]], f"{where}: commands {names}")
    check(near(sum(c["measured_us"] for c in b["commands"]), b["measured_us"]), f"{where}: commands do not add up to the step")
    check(b["step_us"] >= b["measured_us"] > 0 and b["loader_us"] > 0 and b["upload_us"] > 0, f"{where}: {b['step_us']}, {b['measured_us']}")
    for by in ("work", "layer", "line"):
        rows = b["by_" + by]
        check(near(sum(r["measured_us"] for r in rows), b["measured_us"]), f"{where}: sums by {by}")
        check(sum(r["commands"] for r in rows) == len(names), f"{where}: commands by {by}")
        check([r["measured_us"] for r in rows] == sorted((r["measured_us"] for r in rows), reverse=True), f"{where}: the order by {by}")
    for c in b["commands"]:
        name = f"{where}: {c['name']}"
        check(c["runs"] == c.get("times", 1), f"{name}: {c['runs']} runs")
        check(0 <= c["least_us"] * c["runs"] <= c["measured_us"] * 1.000001, f"{name}: least {c['least_us']}, mean {c['measured_us']}")
        check(len(c["busy_us"]) == threads, f"{name}: {len(c['busy_us'])} threads")
        check(all(-1e-3 <= us <= c["measured_us"] * 1.000001 for us in c["busy_us"]), f"{name}: busy {c['busy_us']} of {c['measured_us']}")
        if threads:
            check(near(c["idle_us"], c["measured_us"] - sum(c["busy_us"]) / threads), f"{name}: idle")
        check((c["predicted_us"] is not None) == predicts, f"{name}: predicted {c['predicted_us']}")
        if threads: # rates that a command beats are measured again
            limit = max(c["memory_us"], c["arithmetic_us"])
            check(limit <= c["least_us"] * c["runs"] * 1.000001, f"{name}: the limit is {limit}, the fastest run {c['least_us']}")
        if predicts:
            check(c["predicted_us"] > 0 and c["memory_us"] > 0 and c["arithmetic_us"] >= 0, f"{name}: predictions")


def check_trace(path, profile):
    events = json.load(open(path))["traceEvents"]
    tracks, tracks_named = {}, {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for e in events:
        if e["ph"] == "X":
            check(e["dur"] >= 0 and e["ts"] >= 0, f"trace: {e}")
            tracks.setdefault(e["tid"], []).append(e)
    check(set(tracks) == tracks_named, f"trace: tracks {set(tracks)}, names {tracks_named}")
    check(len(tracks) == max(2, min(profile["threads"], 64)) or profile["threads"] == 1, f"{len(tracks)} tracks")
    for track, all_of in tracks.items(): # as Perfetto nests them: by begin, the longer one first
        open_ends = []
        for e in sorted(all_of, key=lambda e: (e["ts"], -e["dur"])):
            begin, end = round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            check(not open_ends or end <= open_ends[-1], f"trace: {e['name']} ends after what contains it, track {track}")
            open_ends.append(end)
    commands = [e for e in events if e["ph"] == "X" and "shape" in e.get("args", {})]
    for b in profile["blocks"]:
        for c in b["commands"]:
            found = [e for e in commands if e["name"] == c["name"]]
            check(len(found) == c["runs"] * b["runs"], f"trace: {c['name']} {len(found)} times")
            check(all(e["args"]["layer"] == c["layer"] for e in found), f"trace: the layer of {c['name']}")
            if c["line"]:
                check(found[0]["args"]["line"] == f"{c['file']}:{c['line']}", f"trace: the line of {c['name']}")
    loop = [e["name"] for e in tracks[1]]
    trained = sum(b["runs"] for b in profile["blocks"] if b["train"])
    evaluated = sum(b["runs"] for b in profile["blocks"] if not b["train"])
    for name, n in (("step", trained), ("evaluate a batch", evaluated), ("a step that is not timed", STEPS)):
        check(loop.count(name) == n, f"trace: {name}: {loop.count(name)} of {n}")
    check(("wait for the device" in loop) == (profile["threads"] == 0), "trace: waits for the device")
    check({"blocks.0.fc", "rnn", "head", "opt"} <= {e["name"] for e in events if e.get("cat") == "layer"}, "trace: layers")


def check_runs(amp, device):
    done = run(amp, "profile", *device, "--steps", str(STEPS), "--json", "--output", "p.json", "--trace", "t.json", "job.amp")
    check(not done.stdout, f"--output: {done.stdout}")
    profile = json.load(open("p.json"))
    arch = "none" if "cuda" in device else "cpu" # none: for a GPU, without registers
    inspected = json.loads(run(amp, "inspect", "--json", "--arch", arch, "job.amp").stdout)["blocks"]
    key = lambda b: (b["name"], b["batch"], b["remainder"], tuple(b["every"]))
    by_key = {key(b): b for b in inspected}
    for b in profile["blocks"]:
        check_block(b, by_key[key(b)], profile["threads"], profile["predicted_for"] is not None)
    train = [b for b in profile["blocks"] if b["train"]]
    check(sum(b["runs"] for b in train) == profile["steps"] == STEPS, "the steps")
    check({True, False} == {bool(b["every"]) for b in train}, "steps with and without `every` are measured")
    check([b["runs"] for b in profile["blocks"] if not b["train"]] == [2], "the batches of the evaluation")
    check(profile["plain_us"] > 0 and profile["timed_us"] > 0, "steps with and without times")
    check(all((b["wait_us"] > 0) == (profile["threads"] == 0) for b in profile["blocks"]), "waits for the device")
    kinds = {c["work"] for b in train for c in b["commands"]}
    check({"product", "random", "row", "optimizer"} <= kinds, f"kinds: {kinds}")
    check_trace("t.json", profile)
    check(not os.path.exists("never.safetensors"), "a checkpoint was written")


TOOL = """#include <stdio.h>
#include <stdlib.h>
typedef void F(void);
static int depth;
static int push(const char *name)
{
  FILE *f = fopen(getenv("RANGES"), "a");
  fprintf(f, "%d %s\\n", depth, name);
  fclose(f);
  return depth++;
}
static int pop(void) { return depth > 0 ? --depth : (abort(), 0); }
int InitializeInjectionNvtx2(const void *(*table)(unsigned))
{
  struct { size_t size; int (*get)(int, F ****, unsigned *); } const *callbacks = table(1);
  F ***places;
  unsigned n;
  if (callbacks->size < sizeof *callbacks || !callbacks->get(1, &places, &n) || n < 12) return 0;
  *places[9] = (F *)push;
  *places[11] = (F *)pop;
  return 1;
}
"""


def check_ranges(amp, device):
    """A tool that speaks NVTX gets a range for each layer, and in it a range for each command with its line."""
    with open("tool.c", "w") as f:
        f.write(TOOL)
    run("cc", "-shared", "-fPIC", "-o", "tool.so", "tool.c")
    os.environ |= {"NVTX_INJECTION64_PATH": "./tool.so", "RANGES": "ranges"}
    run(amp, "profile", *device, "--steps", "1", "--json", "--output", "p.json", "job.amp")
    del os.environ["NVTX_INJECTION64_PATH"]
    ranges = [line.rstrip("\n").split(" ", 1) for line in open("ranges")]
    block = json.load(open("p.json"))["blocks"][0]
    said = [name for depth, name in ranges if depth == "1"]
    wanted = [f"{c['name']}, line {c['line'] or '-'}" for c in block["commands"] if c["runs"] == 1]
    check(len(wanted) > 20 and set(wanted) <= set(said), f"ranges of commands: {set(wanted) - set(said)}")
    check({"rnn", "opt", "blocks.0.fc"} <= {name for depth, name in ranges if depth == "0"}, "ranges of layers")


def check_table(amp):
    text = run(amp, "profile", "--device", "cpu", "--steps", "2", "job.amp").stdout
    check(all(len(line) <= 80 for line in text.splitlines()), "a line is wider than 80 columns")
    for words in ("blocks_*_fc_linear", "\nwork ", "\nlayer ", "\nline ", "\nproduct ", "\nrnn ", "\n20: minimize cross_entropy", "eval, batch 80: ",
                  "a step takes "):
        check(words in text, f"the table has no {words!r}")
    with open("members.amp", "w") as job:
        job.write(JOB.replace("rnn(x)", "x").replace("y[0][:, -1]", "y[:, -1, :8]").replace("  rnn = GRU(128, 8)\n", ""))
    shared = run(amp, "profile", "--device", "cpu", "--steps", "2", "--set", "train.shards=2", "members.amp").stdout
    check("\nproduct " in shared, "the table of a job with two members")
    wide = run(amp, "profile", "--device", "cpu", "--steps", "2", "--wide", "job.amp").stdout
    check("blocks_1_fc_linear" in wide and " limited by " in wide, "--wide: all rows and columns")


def check_refusals(amp):
    with open("none.amp", "w") as f:
        f.write(NO_TRAIN)
    with open("infer.amp", "w") as f:
        f.write(NO_TRAIN + "infer f(x: f32[2, 3, 128]) -> float[2, 4] { return net(x) }\n")
    for job in ("none.amp", "infer.amp"):
        done = run(amp, "profile", "--device", "cpu", job, status=2)
        check("has no train block" in done.stderr and not done.stdout, f"{job}: {done.stderr}")
    for option, status, said in ((("--steps", "0"), 2, "--steps 0"), (("--output", "x.json"), 2, "--json"),
                                 (("--trace", "job.amp"), 2, "job.amp"), (("--trace", "p.json"), 3, "no trace of amp profile"),
                                 (("--json", "--output", "t.json"), 3, "no JSON of amp profile"),
                                 (("--resume", "none.safetensors"), 3, "none.safetensors")):
        done = run(amp, "profile", "--device", "cpu", *option, "job.amp", status=status)
        check(said in done.stderr and not done.stdout, f"{option}: {done.stderr}")
    run(amp, "profile", "--device", "cpu", "--steps", "1", "--json", "--output", "p.json", "--trace", "t.json", "job.amp")


def check_session(amp):
    """:profile does not change a session."""
    saved = []
    for inputs in (":train 3\n:train 4\n", ":train 3\n:profile 2\n:train 4\n"):
        path = f"s{len(saved)}"
        done = subprocess.run([amp, "repl", "--device", "cpu", "job.amp"], input=f"{inputs}:save {path}\n", capture_output=True, text=True)
        check(done.returncode == 0 and ("measured: the mean" in done.stdout) == ("profile" in inputs), f":profile: {done}")
        saved.append(open(path, "rb").read())
    check(saved[0] == saved[1], ":profile changes the session")


def main():
    amp = os.path.abspath(sys.argv[1])
    if len(sys.argv) > 2:
        os.environ["LD_LIBRARY_PATH"] = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.environ |= {"COLUMNS": "80", "XDG_STATE_HOME": work}
        with open("job.amp", "w") as f:
            f.write(JOB)
        device = ("--device", "cuda" if len(sys.argv) > 2 else "cpu")
        check_runs(amp, device)
        check_ranges(amp, device)
        if len(sys.argv) == 2:
            check_table(amp)
            check_refusals(amp)
            check_session(amp)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
