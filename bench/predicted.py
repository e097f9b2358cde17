#!/usr/bin/env python3
"""Compares the step times that `ampc --explain --target=cpu` predicts with measured ones.

    predicted.py [BUILD] [NET]...     BUILD: a Release build, default build; NETs: some of the table's

Prints a table and, if no NET is named, also writes it to bench/results/predicted-<date>.md. Each step is predicted and
measured ROUNDS times (3) in turn, and each time the processor's rates are measured again. The minimum of the predictions
and the minimum of the medians count, because other work on the machine lengthens both, but rarely at the same time.
"""
import datetime
import json
import os
import subprocess
import sys
import tempfile

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
PICTURES = ["SIZE=64", "CLASSES=10"]
# For each net: the job, its consts, its settings, the number of timed steps, and whether the constants in
# compiler/cost/predict_cpu.c were fitted to it.
NETS = {
    "mlp": ("models/fashion_mnist/mlp.amp", [], [], 400, True),
    "fashion_mnist": ("models/fashion_mnist/fashion_mnist.amp", [], [], 10, True),
    "autoencoder": ("models/autoencoder/autoencoder.amp", [], [], 200, True),
    "vae": ("models/vae/vae.amp", [], [], 300, True),
    "dcgan": ("models/dcgan/dcgan.amp", [], ["train.batch=32"], 10, True),
    "resnet18": ("models/resnet18/resnet18.amp", PICTURES, ["train.batch=8"], 8, True),
    "efficientnet_b0": ("models/efficientnet_b0/efficientnet_b0.amp", PICTURES, ["train.batch=8"], 8, True),
    "unet": ("models/unet/unet.amp", ["SIZE=64", "WIDTH=16"], ["train.batch=8"], 8, True),
    "kjv": ("models/gpt2/kjv.amp", [], [], 5, True),
    "mnist_cnn": ("models/mnist_cnn/mnist_cnn.amp", [], ["train.batch=32"], 4, False),
    "resnet50": ("models/resnet50/resnet50.amp", PICTURES, ["train.batch=4"], 5, False),
    "mlp, batch 16": ("models/fashion_mnist/mlp.amp", [], ["train.batch=16"], 500, False),
    "kjv, wider": ("models/gpt2/kjv.amp", ["WIDTH=256", "SPAN=64"], [], 5, False),
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"predicted.py: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def data_for(net, folder):
    """The consts that name the data. Makes the data if they are missing."""
    if net.startswith("kjv"):
        if not os.path.exists(folder + "/kjv"):
            run("models/gpt2/kjv.sh", folder + "/kjv")
        return [f"DIR={folder}/kjv/"]
    if "SIZE=64" not in NETS[net][1]:
        return []
    if not os.path.exists(folder + "/pictures"):
        run("tests/models/pictures.py", folder + "/pictures", "20", "64")
    return [f"DIR={folder}/pictures/"]


def look(build, net, precision, folder):
    """Milliseconds of a step, predicted and measured."""
    job, consts, settings, steps, _ = NETS[net]
    consts = [word for const in consts + data_for(net, folder) for word in ("-D", const)]
    settings = settings + ["precision=" + precision]
    told = run(build + "/ampc", "--explain=json", "--target=cpu", *consts,
               *(word for setting in settings for word in ("--set", setting)), job)
    timed = run(build + "/bench_steps", *consts, folder, "5", str(steps), job, *settings)
    return json.loads(told)["predicted"]["us"] / 1e3, float(timed.split()[0])


def rows_of(build, nets, folder):
    looks = {(net, precision): [] for net in nets for precision in ("f32", "f16", "bf16")}
    for i in range(ROUNDS):  # over all nets, since a disturbance lasts for seconds
        for (net, precision), found in looks.items():
            found.append(look(build, net, precision, folder))
            print(f"  round {i + 1}: {net} {precision}, %.3g predicted, %.3g measured" % found[-1], file=sys.stderr)
    return [(*key, min(p for p, _ in found), min(m for _, m in found), NETS[key[0]][4])
            for key, found in looks.items()]


def rates(build):
    told = run(build + "/ampc", "--explain", "--target=cpu", NETS["mlp"][0])
    return next(line for line in told.splitlines() if line.startswith("measured: "))


def table(rows):
    yield "| net | precision | predicted | measured | ratio | fitted |\n|---|---|---|---|---|---|\n"
    for net, precision, p, m, fitted in rows:
        yield f"| {net} | {precision} | {p:.3g} | {m:.3g} | {p / m:.2f} | {'yes' if fitted else 'no'} |\n"


def write(path, build, rows):
    model = next(line for line in open("/proc/cpuinfo") if line.startswith("model name")).split(":")[1].strip()
    version = run("git", "rev-parse", "--short", "HEAD").strip()
    near = sum(0.7 <= p / m <= 1.3 for _, _, p, m, _ in rows)
    with open(path, "w") as f:
        f.write(f"# Predicted steps on the CPU, {os.path.basename(path)[len('predicted-'):-len('.md')]}\n\n"
                f"Milliseconds of a training step, predicted by `ampc --explain --target=cpu` and measured (`bench/predicted.py`:\n"
                f"{ROUNDS} rounds; the minimum of the predictions, and the minimum of the medians of the steps).\n"
                f"{near} of {len(rows)} are within 30 %. \"Fitted\": the constants of the prediction were fitted to commands of\n"
                f"this net, among others.\n\n"
                f"Machine: {model}, {os.cpu_count()} cores; {rates(build)}. ampc {version}.\n\n")
        f.writelines(table(rows))
    print("kept in", path, file=sys.stderr)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    nets = sys.argv[2:] or list(NETS)
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(build, nets, folder)
    sys.stdout.writelines(table(rows))
    if not sys.argv[2:]:
        write(f"bench/results/predicted-{datetime.date.today()}.md", build, rows)


main()
