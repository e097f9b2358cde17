#!/usr/bin/env python3
"""stop.py MPIRUN AMP PART: ranks that end, stop or get signals in the middle of a training.
  killed    kill -9 of a rank: all end, no half checkpoint; resumed with another number of ranks, the same bytes
  stopped   a rank that is stopped is named, and the job ends with status 5
  signals   a signal to mpirun or to one rank acts on all
No test depends on a time: a rank is killed or stopped after a step was printed."""
import os
import queue
import random
import re
import signal
import subprocess
import threading
import time
from lib import PATIENCE, WORK, check, command, content, finish, left, run, sys, tensors, work

RANDOM = random.Random(int(os.environ.get("SEED", "1")))
JOB = work("job.amp")
with open(JOB, "w", encoding="utf-8") as out:
    out.write("""data points(n: int) { return synthetic(n, [16], seed=1), synthetic(n, [], dtype=i64, low=0, high=3, seed=2) }
module Net { fc1 = Linear(16, 64); fc2 = Linear(64, 3); def forward(x) { return fc2(dropout(relu(fc1(x)), 0.1)) } }
model net = Net()
optimizer opt = Adam(net, lr=1e-3)
train x, y in points(640) with batch=16, steps=400, log=1 { minimize cross_entropy(net(x), y) with opt }
""")
SHARDS = ("--set", "train.shards=4")


class Run:
    """A running job. Its lines are read as they come."""

    def __init__(self, ranks, *args):
        self.child = subprocess.Popen(command(ranks, *args, JOB), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
        self.lines, self.all = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def wait_for(self, pattern):
        while True:
            line = self.lines.get(timeout=PATIENCE)
            if line is None:
                return None
            self.all.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def end(self):
        self.wait_for("(?!)")
        return self.child.wait(PATIENCE)

    def text(self):
        return "".join(self.all)

    def rank(self, number):
        """The process of a rank: its environment has its number."""
        names = {f"{v}={number}".encode() for v in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")}
        return next(p for p in left() if names & set((content(f"/proc/{p}/environ") or b"").split(b"\0")))


def nobody(name):
    """All ranks must end, before they would have noticed it by their patience."""
    begin = time.monotonic()
    while left() and time.monotonic() - begin < 10:
        time.sleep(0.02)
    check(f"{name}: no process is left", not left(), left())


def names():
    return sorted(f for f in os.listdir(WORK) if f.startswith("save"))


def killed(_):
    run(1, "-q", *SHARDS, "--save", work("whole"), JOB)
    for ranks, again in (2, 4), (4, 1), (4, 2), (2, 1):
        for name in names():
            os.remove(work(name))
        save, victim, step = work("save"), RANDOM.randrange(ranks), RANDOM.randrange(1, 380)
        what = f"rank {victim} of {ranks} killed after step {step}"
        job = Run(ranks, *SHARDS, "--save", save, "--save-every", "10")
        check(f"{what}: it runs", job.wait_for(f"step {step}/"), job.text())
        os.kill(job.rank(victim), signal.SIGKILL)
        check(f"{what}: status", job.end() != 0, job.text())
        nobody(what)
        check(f"{what}: only whole checkpoints", set(names()) <= {"save"}, names())
        given = ["--resume", save] if os.path.exists(save) else []
        run(again, "-q", *SHARDS, *given, "--save", save, JOB)
        check(f"{what}, resumed on {again}: the same bytes", content(save) == content(work("whole")))


def stopped(_):
    for victim in 0, 1:
        job = Run(3, "--rank-timeout", "2", "--save", work(f"save{victim}"))
        check("it runs", job.wait_for("step 5/"), job.text())
        pid = job.rank(victim)
        os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        status = job.end()
        took = time.monotonic() - begin
        errors = re.findall(r"^.*error: .*", job.text(), re.M)
        check(f"rank {victim} stopped: status 5 after {took:.1f} s", status == 5, f"{status} {job.text()}")
        check(f"one message: {errors}", len(errors) == 1 and re.search(f"rank {victim} on \\S+ has not answered", errors[0]), job.text())
        nobody(f"rank {victim} stopped")


def signals(_):
    for target in "mpirun", 0, 1:
        hang_up = () if target == "mpirun" else (signal.SIGHUP,)  # that of MPICH kills all
        for number in (signal.SIGTERM, signal.SIGINT, *hang_up):
            what, save = f"{number.name} to {target}", work(f"save.{target}.{number}")
            job = Run(2, "--save", save, "--set", "train.steps=100000")  # it must not end before the signal
            check(f"{what}: it runs", job.wait_for("step 5/"), job.text())
            os.kill(job.child.pid if target == "mpirun" else job.rank(target), number)
            status = job.end()
            known = {130, 128 + number} | ({0} if target == "mpirun" else set())  # MPICH's mpirun: 0 after SIGTERM
            check(f"{what}: status {status}", status in known, job.text()[-800:])
            note = re.findall(r"interrupted after step (\d+)", job.text())
            check(f"{what}: saved once, after step {note}", len(note) == 1 and os.path.exists(save), job.text()[-800:])
            nobody(what)
            after = str(int(note[0]) + 5) if note else "400"
            run(1, "-q", "--resume", save, "--save", save, "--set", f"train.steps={after}", JOB)
    for target in 0, 1:
        save = work(f"save{target}")
        job = Run(2, "--save", save)
        check("it runs", job.wait_for("step 5/"), job.text())
        os.kill(job.rank(target), signal.SIGUSR1)
        check(f"SIGUSR1 to rank {target}: saves", job.wait_for("saved .* at step") and tensors(save), job.text()[-800:])
        check("and the training goes on to its end", job.end() == 0, job.text()[-800:])


PARTS = {"killed": killed, "stopped": stopped, "signals": signals}
PARTS[sys.argv[3]](sys.argv[4:])
finish()
