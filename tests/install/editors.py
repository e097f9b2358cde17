#!/usr/bin/env python3
"""Colours in Visual Studio Code and Vim: both grammars give the words of a sample the colours that it is marked with.
usage: editors.py BUILD

For Visual Studio Code this interprets the grammar as TextMate does, but without the grammar of C that it includes. The
reserved words come from docs/grammar.md. Without Vim, half of the test is skipped.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARE = pathlib.Path(sys.argv[1]).resolve() / "share"

# [colour|text]
SAMPLE = r'''
[comment|# A comment with def and "text".]
[declaration|import] [string|"nets.amp"]
[declaration|const] [name|A]: [type|int] = [number|1_000]; [declaration|const] [name|DIR] = [string|"a#][escape|\n][string|"]; [declaration|precision] [type|bf16]
[declaration|def] [name|g](x) { [keyword|return] [number|0.5], -[number|1e-3], x1, [constant|none] } [comment|# the end]
[declaration|module] [name|Net](width: [type|int] = [number|8]) {
  fc = [layer|Linear]([number|1], width, [argument|bias]=[constant|false])
  [declaration|def] [name|forward](x: [type|float][N]) -> [type|f32][N] {
    data = x.[function|flatten]([number|1]); model = data; relu = fc
    h = [function|relu](fc(x)) [keyword|if] width != [number|3] [keyword|else] self.in.if
    [keyword|if] h == [number|2] [keyword|and] [keyword|not] x { h = [[constant|true] [keyword|for] i [keyword|in] [function|range]([number|3])] }
    [keyword|autocast]([type|f32]) { h = net.every + train }
  }
}
[declaration|op] [name|twice](x: [type|f32][N]) -> (y: [type|f32][N]) {
  cuda = [string|"""]
    const float c = x[i]; // def
  [string|"""]
  threads = N
}
[declaration|train] x, y [keyword|in] d([string|"train"]) [keyword|with] [argument|batch]=[number|128], [argument|every]=[number|5] {
  [keyword|minimize] [function|cross_entropy](net(x), y) [keyword|with] opt
}
'''
SCOPES = {"comment": "comment", "string": "string", "constant.character": "escape", "constant.numeric": "number",
          "keyword.declaration": "declaration", "entity.name": "name", "keyword.control": "keyword",
          "constant.language": "constant", "storage.type": "type", "variable.parameter": "argument",
          "support.class": "layer", "support.function": "function", "keyword.operator": None}
failures = 0


def check(what, good, seen=""):
    global failures
    print(("ok: " if good else "FAILED: ") + what)
    if not good:
        failures += 1
        print(seen)


def unmarked(sample):
    """The text, and for each line the colour of each character."""
    lines, colours = [], []
    for line in sample.strip("\n").split("\n"):
        lines.append("")
        colours.append([])
        for part in re.split(r"(\[[a-z]+\|(?:[^\]]|\](?=\[))*?\])", line):
            mark = re.fullmatch(r"\[([a-z]+)\|(.*)\]", part)
            lines[-1] += mark[2] if mark else part
            colours[-1] += [mark[1] if mark else None] * len(mark[2] if mark else part)
    return lines, colours


# ---- TextMate ----

def colour_of(scope):
    return next(SCOPES[start] for start in SCOPES if scope.startswith(start))


def paint(out, scope, begin, end):
    if scope:
        out[begin:end] = [colour_of(scope)] * (end - begin)


def textmate(grammar, lines):
    """The colour of each character of each line."""
    colours, inside = [], None
    for line in lines:
        out, at = [None] * len(line), 0
        while at <= len(line):
            rules = inside.get("patterns", []) if inside else grammar["patterns"]
            found = [(m.start(), i, m, rule) for i, rule in enumerate(rules) if "include" not in rule
                     if (m := re.compile(rule.get("match") or rule["begin"]).search(line, at))]
            end = re.compile(inside["end"]).search(line, at) if inside else None
            start, _, match, rule = min(found, key=lambda f: f[:2], default=(len(line) + 1, 0, None, None))
            if inside and "contentName" not in inside:
                paint(out, inside["name"], at, min(start, end.end() if end else len(line)))
            if end and end.start() <= start:
                paint(out, inside["name"], end.start(), end.end())
                at, inside = end.end(), None
                if at == len(line):
                    break
                continue
            if not match:
                break
            paint(out, rule.get("name"), match.start(), match.end())
            for group, capture in rule.get("captures", {}).items():
                paint(out, capture["name"], *match.span(int(group)))
            inside = rule if "begin" in rule else inside
            at = match.end()
        colours.append(out)
    return colours


# ---- Vim ----

SCRIPT = """set nomore encoding=utf-8
filetype plugin on
syntax on
edit %s
let out = [&filetype . ' ' . &commentstring]
for l in range(1, line('$'))
  call add(out, join(map(range(1, len(getline(l))), {i, c -> synIDattr(synID(g:l, c, 1), 'name')}), ','))
endfor
call writefile(out, '%s')
qa!
"""


def vim(lines):
    """The file type and its format of comments, and the colour of each character. None without Vim."""
    if not shutil.which("vim") or "+syntax" not in subprocess.run(["vim", "--version"], capture_output=True, text=True).stdout:
        return None
    with tempfile.TemporaryDirectory() as folder:
        job, script, out = (pathlib.Path(folder) / name for name in ("job.amp", "script.vim", "out"))
        job.write_text("\n".join(lines) + "\n")
        script.write_text(SCRIPT % (job, out))
        subprocess.run(["vim", "-es", "-N", "-u", "NONE", "-i", "NONE", "--cmd", f"set rtp^={SHARE}/vim/vimfiles", "-S", script],
                       stdin=subprocess.DEVNULL, check=True, timeout=60)
        first, *rows = out.read_text().split("\n")[:-1]
    names = lambda row: [g[3:].lower() if g.startswith("amp") and g != "ampCode" else None for g in row.split(",")]
    return first, [names(row) if line else [] for line, row in zip(lines, rows, strict=True)]


def compare(editor, lines, seen, wanted):
    for line, got, want in zip(lines, seen, wanted, strict=True):
        wrong = [f"{line[i]!r} at {i}: {g} instead of {w}" for i, (g, w) in enumerate(zip(got, want, strict=True))
                 if g != w and line[i] != " "]
        check(f"{editor}: {line}", not wrong, "\n".join(wrong))


def main():
    code = SHARE / "ampc/vscode"
    grammar = json.loads((code / "amp.tmLanguage.json").read_text())
    package = json.loads((code / "package.json").read_text())
    json.loads((code / "language-configuration.json").read_text())
    for part in package["contributes"]["languages"] + package["contributes"]["grammars"]:
        check("the files of the extension", (code / (part.get("configuration") or part["path"])).is_file())

    lines, wanted = unmarked(SAMPLE)
    text = (ROOT / "docs/grammar.md").read_text()
    always, types = re.search(r"Reserved everywhere: `(.*?)` \(also `(?:.*?)`\) and the types\s+`(.*?)`", text, re.S).groups()
    tops = re.search(r"first word of a statement at the top level: `(.*?)`", text, re.S)[1].split()
    constants = ("true", "false", "none")
    for word in always.split() + ["True", "False", "None"]:
        colour = "declaration" if word == "def" else "constant" if word.lower() in constants else "keyword"
        lines.append(f"{word} x")
        wanted.append([colour] * len(word) + [None] + ["name" if word == "def" else None])
    for word in types.split():
        lines.append(f"f(x: {word})")
        wanted.append([None] * 5 + ["type"] * len(word) + [None])
    for word in tops:
        lines.append(f"{word} x")
        named = word not in ("import", "precision", "train", "eval")
        wanted.append(["declaration"] * len(word) + [None, "name" if named else None])
    emacs = re.search(r"```elisp.*?```", (ROOT / "docs/editors.md").read_text(), re.S)[0]
    lacks = [word for word in always.split() + tops if f'"{word}"' not in emacs]
    check("the mode for Emacs has the words", not lacks, lacks)
    check("docs/grammar.md has the words", len(always.split()) > 15 and len(types.split()) > 8 and len(tops) > 10)

    compare("TextMate", lines, textmate(grammar, lines), wanted)
    seen = vim(lines)
    if seen:
        check("the file type", seen[0] == "amp # %s", seen[0])
        compare("Vim", lines, seen[1], wanted)
    else:
        print("skipped: no Vim")
    sys.exit(failures > 0)


main()
