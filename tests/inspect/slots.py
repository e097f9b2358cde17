#!/usr/bin/env python3
"""slots.py [--print]: compares the `slots` of each row of runner/cost/ptx.def with the number of machine
instructions that ptxas emits for it, counted in the code of sm_80 and sm_90.

For each row, one kernel executes the instruction 8 times between volatile loads and stores, and another has only
the loads and stores. The difference is the cost of the instruction. Code that is usually skipped (a call for
numbers near the limits of the range) is not counted.

Needs ptxas and nvdisasm, on PATH or in the folder of CUDA; exits with status 77 without them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "runner/cost/ptx.def")
ARCHITECTURES = ["sm_80", "sm_90"]
TIMES = 8
# The count may differ from the table by LESS below and MORE_MOVES above, or by the fraction
# SLACK_PART. MORE_MOVES is larger, because ptxas adds a move if it puts a 16-bit result or a
# predicate into a register; it never leaves out an instruction.
LESS, MORE_MOVES, SLACK_PART = 0.5, 1.0, 0.2

TYPES = {"i16": "u16", "i32": "s32", "i64": "s64", "f16": "f16", "f32": "f32", "f64": "f64", "any": "s32"}
BITS = {"u16": 16, "s16": 16, "f16": 16, "s32": 32, "u32": 32, "b32": 32, "f32": 32, "b16": 16, "s64": 64,
        "b64": 64, "f64": 64}
ROUNDED = {"add", "sub", "mul", "fma", "div", "rcp", "sqrt"}  # .rn of floats
BITWISE = {"and", "or", "xor", "not", "shl", "popc", "clz", "brev", "lop3", "prmt", "shf", "bfi"}
ONE, THREE = {"rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "neg", "abs", "not", "popc", "clz", "brev",
              "cvt"}, {"fma", "mad", "mad_wide", "mad_hi", "prmt", "lop3", "shf", "bfe"}
# Rows whose text cannot be derived from their name: `op`, result, operands, suffix.
TEXT = {
    ("shf", "i32"): ("shf.l.wrap.b32", "b32", ["b32", "b32", "u32"], ""),
    ("prmt", "i32"): ("prmt.b32", "b32", ["b32", "b32", "b32"], ""),
    ("lop3", "i32"): ("lop3.b32", "b32", ["b32", "b32", "b32"], ", 0x1b"),
    ("dp2a", "i32"): ("dp2a.lo.u32.u32", "u32", ["u32", "u32", "u32"], ""),
    ("bfe", "i32"): ("bfe.u32", "u32", ["u32"], ", 3, 7"),
    ("bfi", "i32"): ("bfi.b32", "b32", ["b32", "b32"], ", 3, 7"),
    ("bfi", "i64"): ("bfi.b64", "b64", ["b64", "b64"], ", 3, 7"),
    ("popc", "i32"): ("popc.b32", "u32", ["b32"], ""),
    ("clz", "i32"): ("clz.b32", "u32", ["b32"], ""),
    ("brev", "i32"): ("brev.b32", "b32", ["b32"], ""),
    ("shl", "i16"): ("shl.b16", "b16", ["b16", "u32"], ""),
    ("shl", "i32"): ("shl.b32", "b32", ["b32", "u32"], ""),
    ("shl", "i64"): ("shl.b64", "b64", ["b64", "u32"], ""),
    ("shr", "i16"): ("shr.u16", "u16", ["u16", "u32"], ""),
    ("shr", "i32"): ("shr.s32", "s32", ["s32", "u32"], ""),
    ("shr", "i64"): ("shr.s64", "s64", ["s64", "u32"], ""),
    ("mul_wide", "i16"): ("mul.wide.u16", "u32", ["u16", "u16"], ""),
    ("mul_wide", "i32"): ("mul.wide.s32", "s64", ["s32", "s32"], ""),
    ("mad_wide", "i16"): ("mad.wide.u16", "u32", ["u16", "u16", "u32"], ""),
    ("mad_wide", "i32"): ("mad.wide.s32", "s64", ["s32", "s32", "s64"], ""),
    ("ex2", "f32"): ("ex2.approx.f32", "f32", ["f32"], ""),
    ("ex2", "f16"): ("ex2.approx.f16", "f16", ["f16"], ""),
    ("tanh", "f16"): ("tanh.approx.f16", "f16", ["f16"], ""),
    ("rsqrt", "f64"): ("rsqrt.approx.f64", "f64", ["f64"], ""),
    ("cvt", "i32"): ("cvt.s32.s16", "s32", ["u16"], ""),
    ("cvt", "i64"): ("cvt.s64.s32", "s64", ["s32"], ""),
    ("cvt", "f16"): ("cvt.rn.f16.f32", "f16", ["f32"], ""),
    ("cvt", "f32"): ("cvt.rn.f32.s32", "f32", ["s32"], ""),
    ("cvt", "f64"): ("cvt.f64.f32", "f64", ["f32"], ""),
    ("shfl", "any"): ("shfl.sync.bfly.b32", "b32", ["b32", "b32"], ", 31, -1"),
}
MORE = [  # more instructions of a row, which has one number for all
    ("cvt", "f16", ("cvt.f32.f16", "f32", ["f16"], "")),
    ("cvt", "f32", ("cvt.rzi.s32.f32", "s32", ["f32"], "")),
    ("cvt", "f32", ("cvt.rni.f32.f32", "f32", ["f32"], "")),
    ("cvt", "f64", ("cvt.rn.f32.f64", "f32", ["f64"], "")),
    ("cvt", "f64", ("cvt.rn.f32.s64", "f32", ["s64"], "")),
    ("mul_wide", "i32", ("mul.wide.u32", "b64", ["u32", "u32"], "")),
    ("div", "i32", ("div.u32", "u32", ["u32", "u32"], "")),
    ("rem", "i32", ("rem.u32", "u32", ["u32", "u32"], "")),
    ("add", "f16", ("add.rn.f16x2", "b32", ["b32", "b32"], "")),
    ("fma", "f16", ("fma.rn.f16x2", "b32", ["b32", "b32", "b32"], "")),
]
# .approx has its own numbers: ptx_cost in runner/cost/ptx_op.c
APPROXIMATE = [("div", 8, ("div.full.f32", "f32", ["f32", "f32"], "")), ("rcp", 1, ("rcp.approx.ftz.f32", "f32", ["f32"], "")),
               ("sqrt", 4, ("sqrt.approx.f32", "f32", ["f32"], ""))]
# Not counted: moves, memory, barriers and branches are one instruction or none; a select needs a
# comparison.
LEFT_OUT = {"mov", "cvta", "ld", "st", "atom", "red", "ldmatrix", "mma", "vote", "activemask", "bar", "barrier", "membar", "fence", "bra",
            "ret", "exit", "selp", "copysign"}


def rows():
    with open(TABLE, encoding="utf-8") as f:
        found = re.findall(r"^PTX_OP\((\w+), (\w+), (\w+), (\d+), (\d+)\)", f.read(), re.M)
    return [(op, family, int(slots)) for op, family, _, slots, _ in found]


def text_of(op, family):
    """Instruction, result, operands, suffix."""
    if (op, family) in TEXT:
        return TEXT[op, family]
    t = TYPES[family]
    if op in BITWISE:
        t = "b" + t[1:]
    if op in ("neg", "abs") and family == "i16":
        t = "s16"
    floating = family[0] == "f"
    parts = op.split("_")
    if floating and op in ROUNDED:
        parts.append("rn")
    if floating and op in ("rsqrt", "ex2", "lg2", "sin", "cos", "tanh"):
        parts.append("approx")
    if op in ("mul", "mad") and not floating:
        parts.append("lo")
    if op == "setp":
        parts.append("lt")
    n = 1 if op in ONE else 3 if op in THREE else 2
    return ".".join(parts + [t]), t, [t] * n, ""


def store_type(t):
    return f"b{BITS[t]}"


def kernel(kernel_name, spec, does, compare):
    name, result, operands, tail = spec
    lines = []
    for k in range(TIMES):
        names = [f"%x{k}_{i}" for i in range(len(operands))]
        for x, t in zip(names, operands):
            lines += [f".reg .b{BITS[t]} {x};", f"ld.volatile.global.{store_type(t)} {x}, [%from];"]
        if compare:
            lines.append(f".reg .pred %p{k};")
            if does:
                lines.append(f"{name} %p{k}, {', '.join(names)};")
            lines.append((f"@%p{k} " if does else "") + f"st.volatile.global.b32 [%to], {k};")
            continue
        lines.append(f".reg .b{BITS[result]} %y{k};")
        if does:
            lines.append(f"{name} %y{k}, {', '.join(names)}{tail};")
        else:
            lines.append(f"ld.volatile.global.{store_type(result)} %y{k}, [%from];")
        lines.append(f"st.volatile.global.{store_type(result)} [%to], %y{k};")
    return "\n".join([f".visible .entry {kernel_name}(.param .u64 a, .param .u64 b) {{",
                      ".reg .b64 %from, %to, %at;", ".reg .b32 %me;", "ld.param.u64 %from, [a];", "ld.param.u64 %to, [b];",
                      "mov.u32 %me, %tid.x;", "mul.wide.u32 %at, %me, 8;",
                      "add.s64 %from, %from, %at;"] + lines + ["ret;", "}\n"])


def read_listing(listing):
    """The instructions, and the positions of labels and functions."""
    code, labels = [], {}
    for line in listing.splitlines():
        if (label := re.match(r"\s*([.$]\S+):$", line)):
            labels[label[1]] = len(code)
        elif (found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", line)):
            code.append(found[1])
    return code, labels


def steps(code, labels, at):
    """Counts instructions from a position to the exit or return, on the usual path: it skips calls for numbers at
    the limits of the range, and follows unconditional calls."""
    n = 0
    while at < len(code):
        n, text = n + 1, code[at]
        target = re.search(r"`\((\S+)\)", text)
        to = labels[target[1]] if target and re.search(r"\b(BRA|CALL)", text) else None
        if re.match(r"(EXIT|RET)\b", text):
            return n
        if re.match(r"CALL\b", text):
            n += steps(code, labels, to)
        elif re.match(r"BRA\b", text) or to is not None and any("CALL" in code[k] for k in range(at + 1, to)):
            at = to
            continue
        at += 1
    sys.exit("FAILED: no end in the code")


def tools():
    folders = os.environ.get("PATH", "").split(":") + [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")]
    found = [shutil.which(name, path=":".join(folders)) for name in ("ptxas", "nvdisasm")]
    return found if all(found) else None


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAILED: {command[0]}: {done.stderr}")
    return done.stdout


def count(programs, folder, architecture):
    """{kernel: number of instructions} of the text in the folder."""
    ptx, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
    run(programs[0], "-arch=" + architecture, ptx, "-o", cubin)
    sections = re.split(r"^//-+ \.text\.(\w+) .*$", run(programs[1], "-c", cubin), flags=re.M)
    return {name: steps(*read_listing(text), 0) for name, text in zip(sections[1::2], sections[2::2])}


def slots_of(counts, k, compare):
    """The kernel without the instruction loads the value that the other one computes, unless it is a predicate."""
    return (counts[f"with{k}"] - counts[f"without{k}"]) / TIMES + (0 if compare else 1)


def cases():
    """(op, family, slots of the table, text)"""
    table = rows()
    out = [(op, family, slots, text_of(op, family)) for op, family, slots in table
           if op not in LEFT_OUT and family != "pred"]
    known = {(op, family): slots for op, family, slots in table}
    out += [(op, family, known[op, family], spec) for op, family, spec in MORE]
    return out + [(op, "f32", slots, spec) for op, slots, spec in APPROXIMATE]


def main():
    programs = tools()
    if not programs:
        print("skipped: ptxas and nvdisasm are not on this machine")
        return 77
    bad, todo = 0, cases()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "k.ptx"), "w", encoding="utf-8") as f:
            f.write(".version 8.0\n.target sm_80\n.address_size 64\n")
            for k, (op, _, _, spec) in enumerate(todo):
                f.write(kernel(f"with{k}", spec, True, op == "setp") + kernel(f"without{k}", spec, False, op == "setp"))
        counts = [count(programs, folder, a) for a in ARCHITECTURES]
    for k, (op, family, slots, spec) in enumerate(todo):
        found = [slots_of(c, k, op == "setp") for c in counts]
        far = [x for x in found if not slots - max(LESS, SLACK_PART * slots) <= x <= slots + max(MORE_MOVES, SLACK_PART * slots)]
        if "--print" in sys.argv:
            print(f"{op}\t{family}\t{spec[0]}\t{slots}\t" + "\t".join(f"{x:.1f}" for x in found) + ("\t<--" if far else ""))
        elif far:
            print(f"FAILED: {spec[0]}: {slots} slots in ptx.def, " +
                  ", ".join(f"{x:.1f} in the code of {a}" for x, a in zip(found, ARCHITECTURES)))
        bad += len(far) > 0
    print(f"{len(todo)} instructions counted, {bad} unlike ptx.def")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
