"""What the tests of this folder share: runs of `amp train` on several ranks, and checks of what they print and write."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
MODELS = os.path.join(HERE, "..", "..", "models")
MPIRUN, AMP = sys.argv[1], os.path.realpath(sys.argv[2])
PATIENCE = 600  # seconds; long enough for slow programs, to detect a hang
WORK = tempfile.mkdtemp()
# Open MPI: tests run as root in containers, and more ranks than cores
os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
DEVICE = "cpu"
failures = 0


def check(name, good, text=""):
    global failures
    print("ok:" if good else "FAILED:", name, "" if good else text, flush=True)
    failures += not good
    return good


def finish():
    shutil.rmtree(WORK)
    sys.exit(failures != 0)


def job(name):
    return os.path.join(HERE, "jobs", name + ".amp")


def work(name):
    return os.path.join(WORK, name)


def command(ranks, *args, verb="train", launch=()):
    return [MPIRUN, *launch, "-n", str(ranks), AMP, verb, "--device", DEVICE, *args]


def run(ranks, *args, status=0, **how):
    """Runs a job to its end; returns its standard output and its error messages."""
    call = command(ranks, *args, **how)
    done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != status:
        check(" ".join(call), False, f"exit status {done.returncode} instead of {status}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.stdout, done.stderr


def events(ranks, *args, **how):
    """The JSON lines of a run, without times, places and ranks."""
    rows = [json.loads(line) for line in run(ranks, "--json", "-q", *args, **how)[0].splitlines()]
    for row in rows:
        for key in "seconds", "samples_per_second", "data_wait", "saved", "rank", "ranks":
            row.pop(key, None)
    return rows


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def tensors(path):
    """The tensors of a checkpoint: name -> type, shape, bytes."""
    data = content(path)
    size, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + size])
    head.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in head.items()}


def left(program=None):
    """The processes of amp that were started by this test and still run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        line = content(f"/proc/{pid}/cmdline")
        if line and line.startswith(os.fsencode(program or AMP) + b"\0") and os.fsencode(WORK) in line:
            found.append(int(pid))
    return found
