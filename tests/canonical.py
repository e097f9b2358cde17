#!/usr/bin/env python3
"""Makes golden text independent of numbering.

ampc numbers values (%12) and temporaries (t14) over the whole job, so one more node at the start renumbers all later
ones. Before two texts are compared, this script replaces each number by a name. Then only lines with another content
differ:

  %12, in a dump      %relu@8           the relu of line 8 of the job; the second one of that line: %relu@8.2
                      %fc1.weight       parameters, sources and settings have names of their own
  group=17            in=%relu@8        the group whose first node is that one
  t14                 t_add             inside a kernel; its second add is t_add.2
  at_relu26           at_relu           a place in a step; a second one is at_relu.2
  work+6144           work              --places keeps byte offsets
  xxh64 0123abcd..    xxh64 HASH        the seal of an emitted text

Emitted text begins with the helpers of templates/ that its kernels call. Only their names stay. With --shows, only the
list of kernels at the start of the text stays, and the parts that are named: kernels, `tables`, `steps`, or `for`, which
has the functions for other programs.

usage: canonical.py [--places] [--shows PART...] < TEXT
"""
import re
import sys

SPACES = "state|master|residue|copy16|copybf|grad|moment1|moment2|buffer|input|work"
NODE = re.compile(r"%(\d+) = (\w+) (.*?) +# (\d+):(\d+)(.*)$")
SEAL = re.compile(r"(\n// As ampc wrote it: xxh64 )[0-9a-f]{16};")
COMMENT_COLUMN = 64


class Names:
    """Gives each key a name. If the name is taken, it gets .2, .3 and so on."""

    def __init__(self):
        self.of, self.taken = {}, {}

    def give(self, key, name):
        if key not in self.of:
            self.taken[name] = self.taken.get(name, 0) + 1
            self.of[key] = name if self.taken[name] == 1 else f"{name}.{self.taken[name]}"
        return self.of[key]


def keep_columns(line, change):
    """Applies change() to each cell of a row. A cell keeps its start column if it can."""
    out = ""
    for cell in re.finditer(r"\S+(?: \S+)*", line):
        room = cell.start() - len(out)
        out += " " * (max(room, 1) if out else room) + change(cell.group())
    return out


# ---- dumps of the graph ----------------------------------------------------------------------------
def dump_names(lines):
    """Names of the nodes and of the groups, block by block."""
    values, groups, block = {}, {}, Names()
    for line in lines:
        if line.startswith("# "):
            block = Names()
        node = NODE.match(line)
        if not node:
            continue
        number, op, rest, row = node.group(1), node.group(2), node.group(3), node.group(4)
        own = re.match(r"\S+(?:\[[^\]]*\])?(?: nhwc| channels last)? ([\w.]*[A-Za-z_][\w.]*)", rest)
        leaf = op in ("param", "source", "setting") and own
        values[number] = block.give(number, own.group(1) if leaf else f"{op}@{row}")
        group = re.search(r" group=(\d+)", rest)
        if group:
            groups.setdefault(group.group(1), values[number])
    return values, groups


def dump(lines):
    values, groups = dump_names(lines)

    def value(match):
        return "%" + values.get(match.group(1), match.group(1))

    out = []
    for line in lines:
        node = NODE.match(line)
        line = re.sub(r"%(\d+)", value, line)
        line = re.sub(r" group=(\d+)", lambda m: f" in=%{groups[m.group(1)]}", line)
        if node:
            text, _, comment = re.split(r"( +# )(?=\d+:\d+)", line, maxsplit=1)
            line = f"{text:<{COMMENT_COLUMN - 1}} # {comment}"
        out.append(line)
    return out


# ---- plans and emitted text ------------------------------------------------------------------------
def kernel_namer(kernel, ops):
    """Names of the values of one kernel. ops maps a number to its op if a text gives it."""
    names = Names()
    for number, array in re.findall(r"\bt(\d+) = [^;]*?\b([A-Za-z_]\w*)\[", kernel):
        ops.setdefault(number, re.sub(r"_?\d+$", "", array))

    def base(number, default):
        return names.give(number, ops.get(number, default))

    def change(line):
        line = re.sub(r"%(\d+) (\w+)", lambda m: "%" + base(m.group(1), m.group(2)), line)
        return re.sub(r"\bt(\d+)(?=(?:_\w+)?\b)", lambda m: "t_" + base(m.group(1), "value"), line)

    return change


def fold_helpers(lines):
    """Replaces the helpers of templates/ by their names."""
    if not any(line.startswith('#include "ampc_rt.h"') for line in lines):
        return lines
    start = next(i for i, line in enumerate(lines) if line.startswith('#include "ampc_rt.h"')) + 1
    if lines[start + 1 : start + 2] == ["/* ---- primitives for kernels ---- */"]:
        start += 2
    end = next(
        i
        for i in range(start, len(lines))
        if re.match(r"// \w+: |/\* ----", lines[i]) or lines[i : i + 2] == ["#ifdef __cplusplus", 'extern "C" {']
    )
    found = re.findall(
        r"^(?:DEVICE .*?|#define )(\w+)\(|^ROW_TREE\([^,]*, (\w+)", "\n".join(lines[start:end]), re.M
    )
    names = [f" *   {name or tree}" for name, tree in found]
    folded = ["", "/* of templates/:", *names, " */", ""]
    return lines[:start] + folded + lines[end:]


def drop_offsets(line):
    line = re.sub(rf"\b({SPACES})\+\d+", r"\1", line)
    if re.match(r" *(AMPC_LAUNCH|AMPC_GEMM|AMPC_CONV|ampc_do_)", line):
        line = re.sub(rf"\b({SPACES}) \+ \d+\b(?! \*)", r"\1", line)
    return line


def place_namer():
    """Places of a step: at_relu26 is at_relu, a second one is at_relu.2. Each step starts again."""
    names = Names()

    def change(line):
        if line.startswith("static void step_"):
            names.of.clear(), names.taken.clear()
        line = re.sub(r"^(  const long long \w+) = \d+; *(// .*?)?(?:, |// )commands? \d+(?: to \d+)?$", lambda m: f"{m[1]}; {m[2] or ''}".rstrip(), line)
        line = re.sub(r"^(  const long long \w+) = \d+;$", r"\1;", line)
        return re.sub(r"\bat_(\w*?)\d*\b", lambda m: "at_" + names.give(m[0], m[1]), line)

    return change


def kernel_data(lines):
    """The text of --emit=commands: "%14 add f16 = %12 + x[i]" becomes "%add f16 = %mul + x[i]"."""
    out, names = [], Names()
    for line in lines:
        if re.match(r"  \w+: ", line):
            names = Names()
        line = re.sub(r"^    %(\d+) (\w+)", lambda m: f"    %{names.give(m[1], m[2])}", line)
        out.append(re.sub(r"%(\d+)\b", lambda m: "%" + names.of.get(m[1], m[1]), line))
    return out


def shown(lines, parts):
    """Keeps the list of kernels and the named parts of an emitted text."""
    out, part, missing = [], None, set(parts)
    for i, line in enumerate(lines):
        head = re.match(r"// (\w+): .|/\* ---- (\w+)", line) if i else None
        if head:
            part = head[1] or head[2]
            missing.discard(part)
        elif re.match(r"#include|#ifdef __cplusplus", line):
            part = ""
        if part is None or part in parts:
            out.append(line)
    if missing:
        sys.exit(f"canonical.py: the text has no part {', '.join(sorted(missing))}")
    return out


def commands(lines, places):
    if any(re.match(r"    (loop|rows|template) ", line) for line in lines):
        return kernel_data([drop_offsets(line) for line in lines])
    lines = fold_helpers(lines)
    if not places:
        lines = [drop_offsets(line) for line in lines]
    place = place_namer()
    step = next((i for i, line in enumerate(lines) if line.startswith("/* ---- steps")), len(lines))
    lines = lines[:step] + [place(line) for line in lines[step:]]
    for i, line in enumerate(lines[:-1]):  # after the text of an op: the line of its end
        if lines[i + 1].strip() == "}":
            lines[i] = re.sub(r"^#line \d+ ", "#line N ", line)
    ops = dict(re.findall(r"%(\d+) (\w+)", "\n".join(lines)))
    out, at = [], 0
    while at < len(lines):
        end = at + 1
        if re.match(r"// \w+(: .*)?$", lines[at]) and "".join(lines[at + 1 : at + 2]).startswith("//   "):
            head = False  # functions that its parts share come before it
            while end < len(lines) and not (head and lines[end - 1] == "}"):
                head |= "__global__" in lines[end]
                end += 1
            value = kernel_namer("\n".join(lines[at:end]), dict(ops))
        else:
            value = lambda line: re.sub(r"%\d+ (?=\w)", "%", line)
        for line in lines[at:end]:
            row = re.match(r"  ([~+-] )?\w+ .*[^#]\b\d+ .* %\d+ \w", line)
            out.append(keep_columns(line, value) if row else value(line))
        at = end
    return out


def main(options):
    lines = SEAL.sub(r"\1HASH;", sys.stdin.read(), count=1).split("\n")
    if any(NODE.match(line) for line in lines):
        lines = dump(lines)
    else:
        lines = commands(lines, "--places" in options)
    if "--shows" in options:
        lines = shown(lines, options[options.index("--shows") + 1 :])
    sys.stdout.write("\n".join(lines).rstrip("\n") + "\n")


main(sys.argv[1:])
