#!/usr/bin/env python3
"""check_json.py JSON [CUBIN ARCH]: compares the output of `amp inspect --json` for small.amp with counts made here
from the sizes in the job. Compares registers and shared memory with the sections of the cubin, which this script
parses itself."""

import json
import struct
import sys


def fail(text):
    print("FAILED:", text)
    sys.exit(1)


def check(what, got, want):
    if got != want:
        fail(f"{what}: {got}, expected {want}")


def find(commands, op, nth=0):
    found = [c for c in commands if any(n["op"] == op for n in c["nodes"])]
    if len(found) <= nth:
        fail(f"no command has {op}")
    return found[nth]


def check_counts(job):
    train, evaluation, last = job["blocks"]
    check("blocks", [(b["name"], b["batch"], b["remainder"]) for b in job["blocks"]],
          [("train", 32, False), ("eval", 32, False), ("eval", 8, True)])
    for block, n in ((train, 32), (evaluation, 32), (last, 8)):
        conv = find(block["commands"], "conv2d")
        check("conv FLOPs", conv["flops"], 2 * n * 8 * 8 * 4 * 9 * 8)  # 4 channels from 1, padded to 8; a window of 9
        check("conv read", conv["read"], 2 * (n * 64 + 4 * 9) * 8)  # f16 images and weights
        check("conv written", conv["written"], 2 * n * 64 * 4)
        fc1 = find(block["commands"], "linear", 0)
        check("fc1 FLOPs", fc1["flops"], 2 * n * 64 * 16)
        check("fc1 read", fc1["read"], 2 * (n * 64 + 64 * 16 + 16))
        check("fc1 written", fc1["written"], 2 * n * 16)
        check("fc1 line", fc1["line"], 12)
    drop = find(train["commands"], "drop")
    check("dropout read", drop["read"], 2 * 32 * 16)
    check("dropout written", drop["written"], 2 * 32 * 16 + 4)  # + 4: the gradient of the mean of the losses
    bias = find(train["commands"], "relu_backward", 0)  # backward through dropout and relu, in place, and the sum into the slot of fc1.bias
    check("backward of relu", [n["op"] for n in bias["nodes"]], ["drop", "relu_backward", "sum", "grad_accumulate"])
    check("backward of relu read", bias["read"], 2 * 2 * 32 * 16 + 4 * 16)
    check("backward of relu written", bias["written"], 2 * 32 * 16 + 4 * 16)
    loss = find(train["commands"], "cross_entropy_rows")  # its last block adds to the slot of fc2.bias
    check("loss and its gradient", [n["op"] for n in loss["nodes"]],
          ["cross_entropy_rows", "cross_entropy_backward", "cast", "sum", "grad_accumulate"])
    adam = find(train["commands"], "adam_update")
    # parameters: 4*9 + 4 + 4 + 64*16 + 16 + 16*3 + 3, each padded to 64 elements
    elements = 64 + 64 + 64 + 1024 + 64 + 64 + 64
    running = 4 * 4 + 4 * 4 + 8  # mean and variance of 4 channels, a counter: updated in the same kernel
    check("Adam read", adam["read"], 4 * 4 * elements + running + 2 * 4 * 4)  # gradient, weight, two moments
    check("Adam written", adam["written"], (4 * 4 + 2) * elements + running)  # and the f16 copy
    check("Adam FLOPs", adam["flops"], None)
    norm = find(train["commands"], "batch_norm")
    check("batch norm types", norm["types"], "f16,f32>f16,u8")  # with relu and pool: pixels, and their index in the window
    check("batch norm read", norm["read"], 2 * 32 * 64 * 4 + 4 * 4 * 4)
    check("batch norm written", norm["written"], (2 + 1) * 32 * 16 * 4)
    check("cast FLOPs", find(train["commands"], "cast")["flops"], 0)


def sections(elf):
    (offset,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    rows = [struct.unpack_from("<IIQQQQII", elf, offset + i * size) for i in range(count)]
    text = rows[names]
    for row in rows:
        start = text[4] + row[0]
        yield elf[start : elf.index(b"\0", start)].decode(), row[4], row[5], row[1]


def kernels_of(path):
    """Registers and static shared memory of each kernel of a cubin."""
    elf = open(path, "rb").read()
    table = {name: (at, size) for name, at, size, kind in sections(elf)}
    names_at = table[".strtab"][0]
    symbols_at, symbols_size = table[".symtab"]
    names = []
    for at in range(symbols_at, symbols_at + symbols_size, 24):
        start = names_at + struct.unpack_from("<I", elf, at)[0]
        names.append(elf[start : elf.index(b"\0", start)].decode())
    registers, shared = {}, {}
    at, size = table[".nv.info"]
    end = at + size
    while at < end:
        form, attribute, length = struct.unpack_from("<BBH", elf, at)
        if attribute == 0x2F:  # registers: index of the symbol, number
            symbol, count = struct.unpack_from("<II", elf, at + 4)
            registers[names[symbol]] = count
        at += 4 + (length if form == 4 else 0)
    for name, _, size, kind in sections(elf):
        if name.startswith(".nv.shared.") and kind == 8:
            shared[name[len(".nv.shared.") :]] = size
    return registers, shared


def check_usage(job, cubin, arch):
    registers, shared = kernels_of(cubin)
    checked = 0
    for block in job["blocks"]:
        for command in block["commands"]:
            if "kernel" not in command:
                continue
            usage = command["usage"][arch]
            check(f"{command['name']} registers", usage["registers"], registers[command["kernel"]])
            size = shared.get(command["kernel"], 0)
            if size and int(arch[3:]) >= 90:
                size -= 1024  # from sm_90 on, the section starts with 1 KB for the system
            check(f"{command['name']} shared", usage["shared"], size)
            check(f"{command['name']} spilled", usage["spilled"], 0)
            checked += 1
    if not checked:
        fail("no kernel was checked")
    print(f"ok: registers and shared memory of {checked} kernels on {arch} are those of the cubin")


job = json.load(open(sys.argv[1]))
check_counts(job)
print("ok: counts")
if len(sys.argv) > 2:
    check_usage(job, sys.argv[2], sys.argv[3])
