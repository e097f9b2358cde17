#!/usr/bin/env python3
"""Writes types.tsv: the types that PyTorch returns for the cells of programs.py under torch.autocast("cuda").

    python3 tests/parity/make_table.py            adds missing rows, drops rows of removed cases
    python3 tests/parity/make_table.py --all      makes all rows again

Needs the version of PyTorch below and torchvision, but no GPU. Tensors are fake ones "on cuda": they have a type and a shape,
but no numbers. one_gpu.c and pretend_cuda make PyTorch see a GPU. Fake tensors run PyTorch's dispatcher, so the casts are
those of autocast itself. They run no kernels, so `Kernels` refuses what only a kernel refuses. If an input is not a float,
the script also runs the case on the CPU to find out whether a kernel exists.
"""
import argparse
import logging
import os
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn as nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

from programs import CHAINS, FEW, GRAPHS, HERE, INTEGERS, LETTERS, LOST, REFUSED, SOME, TABLE, Case, Graph, all_cases, chains_for, read_listed, read_table, regions, types_of
import nets
from make_fixtures import Names  # tests/torch, which programs.py puts on the path

VERSION = "2.15"
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i64": torch.int64, "i32": torch.int32,
          "u8": torch.uint8, "bool": torch.bool}
LETTER = {dtype: LETTERS[name] for name, dtype in DTYPES.items()}
FLOAT_TYPES = {torch.float16, torch.bfloat16, torch.float32}
REFUSALS = RuntimeError, TypeError, ValueError, IndexError, AssertionError, OverflowError
WORDS = {**DTYPES, "inf": float("inf")}


def constant(data, dtype=None, device=None):
    """Replaces torch.tensor, which would copy its numbers to the GPU."""
    shape, item = [], data
    while isinstance(item, (list, tuple)):
        shape.append(len(item))
        item = item[0]
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float32}
    return torch.empty(shape, dtype=dtype or kinds[type(item)])


def pretend_cuda():
    """Replaces functions that prevent autocast("cuda") without a GPU."""
    torch.cuda.is_available = lambda: True
    torch.cuda.is_bf16_supported = lambda *a, **k: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *a: (9, 0)
    torch.backends.cudnn.enabled = False  # for cuDNN, PyTorch would call the driver
    for name in dir(nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(nn.init, name, lambda tensor, *a, **k: tensor)  # fake tensors have no numbers
    torch.tensor = constant
    torch.backends.mha.set_fastpath_enabled(False)
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False


PRODUCTS = ("mm", "bmm", "mv", "dot", "addmm", "addmv", "baddbmm", "convolution", "linear", "_scaled_dot_product")


class Kernels(TorchDispatchMode):
    """Refuses what the kernels of products refuse but fake tensors accept: operands of several types, and integers."""
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name.startswith(PRODUCTS) and "backward" not in name:
            given = {a.dtype for a in args if isinstance(a, torch.Tensor)}
            if len(given) > 1 or not given <= FLOAT_TYPES:
                raise RuntimeError(f"{name} of {given}")
        return function(*args, **(kwargs or {}))


def region(kind):
    if kind in ("off", "f32"):
        return torch.autocast("cuda", enabled=False)
    return torch.autocast("cuda", dtype=DTYPES[kind])


def pinned(names):
    """Casts floats to f32, as a pin does."""
    return Names({k: v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in names.items()})


def letter(value):
    return LETTER[value.dtype]


def evaluate(text, names, kind):
    return eval(text, {}, pinned(names) if kind == "f32" else names)


# ---- one expression in one chain ------------------------------------------------------------------------

def in_chain(kinds, behind, text, names):
    with region(kinds[0]):
        if len(kinds) > 1:
            inner = in_chain(kinds[1:], False, text, names)
            return evaluate(text, names, kinds[0]) if behind else inner
        return evaluate(text, names, kinds[0])


def module_of(text):
    return eval(text, {}, Names(WORDS)).eval()


def function_of(names, arguments, result):
    return lambda *given: eval(result, {}, Names(names, **dict(zip(arguments.split(", "), given))))


def chains_of(case, modules, types):
    """The letters of a case on inputs of these types, one for each chain."""
    letters = ""
    for chain in chains_for(case, types):
        names = Names(WORDS, **modules)
        for (key, sizes), t in zip(case.tensors.items(), types):
            names[key] = torch.empty(sizes, dtype=DTYPES[t])
        if case.targets:
            names["t"] = torch.empty(case.targets, dtype=torch.int64)
        for key, arguments, result in case.functions:
            names[key] = function_of(names, arguments, result)
        try:
            letters += letter(in_chain(*regions(chain), case.output, names))
        except REFUSALS as error:
            if "CUDA" in str(error) and "driver" in str(error):
                raise  # an error of the setup, not of the expression
            letters += REFUSED
            if os.environ.get("SAY"):
                print(case.name, types, chain, type(error).__name__, str(error)[:300].replace("\n", " "))
    return letters


def lacks_kernel(case, types):
    """Fake integer tensors pass even if no kernel accepts integers, so this runs the case on the CPU, outside of all regions."""
    with unset_fake_temporarily(), torch.device("cpu"):
        try:
            names = Names(WORDS, **{key: module_of(text) for key, text in case.modules.items()})
            names.update({key: torch.ones(sizes, dtype=DTYPES[t])
                          for (key, sizes), t in zip(case.tensors.items(), types)})
            names["t"] = torch.zeros(case.targets or 1, dtype=torch.int64)
            eval(case.output, {}, names)
        except NotImplementedError:
            return True
        except REFUSALS as error:
            return "not implemented for" in str(error)
    return False


def row_of(case, modules, types):
    refused = any(t in INTEGERS for t in types) and lacks_kernel(case, types)
    letters = REFUSED * len(chains_for(case, types)) if refused else chains_of(case, modules, types)
    return case.name, " ".join(types), letters


def case_rows(case):
    modules = {key: module_of(text) for key, text in case.modules.items()}
    return [row_of(case, modules, types) for types in types_of(case)]


# ---- graphs -----------------------------------------------------------------------------------------

def run_items(kind, items, names, found):
    with region(kind):
        for head, rest in items:
            if isinstance(rest, list):
                run_items(head, rest, names, found)
                continue
            try:
                names[head] = evaluate(rest, names, kind)
                found.append(letter(names[head]))
            except NameError:
                found.append(LOST)
            except REFUSALS:
                found.append(REFUSED)


def graph_row(number):
    graph = Graph(number)
    names = Names(WORDS, **{name: torch.empty(8, 8, dtype=DTYPES[t]) for name, t in graph.inputs.items()})
    names.update({name: torch.empty(sizes) for name, sizes in graph.weights.items()})
    found = []
    for kind, items in graph.body:
        run_items(kind, items, names, found)
    return f"graph{number}", " ".join(graph.inputs.values()), "".join(found)


# ---- models ---------------------------------------------------------------------------------------------

def net_row(job, precision):
    found = nets.layer_types(job, DTYPES[precision])
    return f"net {job}", precision, " ".join(f"{name}:{''.join(LETTER[t] for t in types)}" for name, types in found.items())


# ---- the command ----------------------------------------------------------------------------------------

HEAD = """# tests/parity/make_table.py made this table with PyTorch {torch}: types under torch.autocast("cuda"), of fake tensors.
# A row: a case of tests/torch/cases.def or of cases.def here, the types of its inputs, and a letter for each chain of regions:
# {chains}
# (the first {few} if an input is not a float; {some} for the cases of tests/torch). A row of graph* has a letter for each value. A row of a net has, after the
# precision, the letters of the results of the layers with a parameter, of the loss, and of the gradients of all weights. {letters}
"""


def head():
    letters = ", ".join(f"{letter} {name}" for name, letter in LETTERS.items())
    return HEAD.format(torch=torch.__version__, chains=" ".join(CHAINS), few=len(FEW), some=" ".join(SOME),
                       letters=f"{letters}, {REFUSED} refused, {LOST} computed from a refused value.")


def wanted():
    """{name in a row's first column: function that makes its rows}."""
    cases = {name: Case(name, row) for name, row in all_cases().items()}
    made = {name: lambda case=case: case_rows(case) for name, case in cases.items()}
    made.update({f"graph{n}": lambda n=n: [graph_row(n)] for n in GRAPHS})
    made.update({f"net {job}": lambda job=job: [net_row(job, p) for p in nets.PRECISIONS] for job in nets.NETS})
    return made


def check_listed():
    """listed.tsv must have the ops for which this PyTorch's dispatcher has casts."""
    kernels = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    here = {name.split("::")[1].split(".")[0] for name in kernels if name.startswith("aten::")}
    if here != set(read_listed()):
        sys.exit("listed.tsv and PyTorch differ: " + " ".join(sorted(here ^ set(read_listed()))))


def with_one_gpu():
    """Restarts the script with one_gpu.c preloaded before the CUDA runtime, and as the driver's library."""
    if os.environ.get("ONE_GPU"):
        return
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libcuda.so.1")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "one_gpu.c")], check=True)
        environment = dict(os.environ, ONE_GPU="1", LD_PRELOAD=library, LD_LIBRARY_PATH=folder)
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true", help="make all rows again")
    parser.add_argument("names", nargs="*", help="make the rows of these cases again")
    arguments = parser.parse_args()
    if not torch.__version__.startswith(VERSION):
        sys.exit(f"PyTorch is {torch.__version__}, the table needs {VERSION}")
    with_one_gpu()
    warnings.simplefilter("ignore")
    logging.disable()  # a refusal is a result
    check_listed()
    pretend_cuda()
    old = {} if arguments.all else read_table()
    rows = []
    try:
        with FakeTensorMode(allow_fallback_kernels=False), torch.device("cuda"), Kernels(), torch.no_grad():
            for name, make in wanted().items():
                rows += old[name] if name in old and name not in arguments.names else make()
    finally:  # keep the finished rows; the next run continues
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write(head())
            f.writelines("\t".join(row) + "\n" for row in rows)
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    main()
