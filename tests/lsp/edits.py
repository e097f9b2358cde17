#!/usr/bin/env python3
"""What `amp lsp` edits and finds by name: cures, signatures, the places of a name, renames.
usage: edits.py AMP AMPC [JOB...]   with jobs: only renames of all of their names
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "names")]
import run as names  # noqa: E402
from client import Client, uri  # noqa: E402

AMP, AMPC = (os.path.abspath(p) for p in sys.argv[1:3])
LIB = """data samples() { return synthetic(64, [24]), synthetic(64, [], dtype=i64, low=0, high=24) }
def twice(x, k: float = 2.0) { return x * k }
module Block(n: int, act: str = "relu") {
  fc = Linear(n, n)
  def encode(x: float[N, n], scale=1.0) {
    h = relu(fc(x))
    h = h * scale
    return h.twice(k=3.0) + [x for x in [1.0, 2.0]][0]
  }
  def forward(x: float[N, n]) {
    h = encode(x, scale=0.5)
    return h + x
  }
}
const WIDTH = 24
"""
JOB = """import "lib.amp" # ✓ 😀
dim S(max=8)
module Net(width: int = WIDTH) {
  blocks = [Block(width) for i in range(2)]
  head = Linear(width, 24)
  norm = LayerNorm(width)
  def forward(x) {
    for b in blocks { x = b.encode(x, scale=2.0) + b(x) }
    fc = head(norm(x))
    return fc
  }
}
model net = Net(width=24) { init("**.norm.weight", ones_()) }
optimizer opt = SGD(net, lr=0.1)
opt.lr = 0.2
train x, y in samples() with batch=8 {
  s = "😀"; out = net(x)
  batch = out
  error = cross_entropy(batch, y)
  metric batch = error
  minimize error with opt
}
infer f(x: f32[S, 24]) { return net(x) + net.blocks[0].fc(x) }
"""
OWN = """op plus(x: float[N]) -> (y: float[N]) {
  threads = N
  cuda = "y[i] = x[i] + 1.0f;"
}
infer g(v: f32[4]) { return plus(v) }
"""
THREE = """data d() { return synthetic(64, [3]), synthetic(64, [3]) }
module Net() {
  s = INIT
  def forward(x) {
LINES
    return s(x)
  }
}
model net = Net()
optimizer opt = SGD(net, lr=0.1)
train x, y in d() with batch=8 { minimize mse_loss(net(x), y) with opt }
"""
BALANCED = """data d() { return synthetic(64, [3]), synthetic(64, [], dtype=i64, low=0, high=3) }
model net = Linear(3, 3)
optimizer opt = SGD(net, lr=0.1)
train x, y in d() with batch=8, balance="y" { minimize cross_entropy(net(x), y) with opt }
eval x, y in d() with batch=8 { metric acc = accuracy(net(x), y) }
"""
failed = 0


def check(what, got, wanted):
    global failed
    if got != wanted:
        print(f"FAILED: {what}: {got!r:.400}, expected {wanted!r:.400}")
        failed += 1


def place(text, at, utf16=False):
    """Line and character of the mark | in a part of the text that stands there once."""
    part = at.replace("|", "", 1)
    assert text.count(part) == 1, at
    before = text[:text.index(part) + at.index("|")]
    line = before[before.rfind("\n") + 1:]
    return before.count("\n"), len(line.encode("utf-16-le")) // 2 if utf16 else len(line.encode())


def applied(text, edits):
    """The text after edits, whose characters count bytes."""
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    out = text.encode()
    for e in reversed(edits):
        start, end = (starts[e["range"][k]["line"]] + e["range"][k]["character"] for k in ("start", "end"))
        out = out[:start] + e["newText"].encode() + out[end:]
    return out.decode()


# ---- cures ----

def actions(c, path, where):
    """[(title, edits)] for a range."""
    found = c.ask("textDocument/codeAction", {"textDocument": {"uri": uri(path)}, "range": where,
                                              "context": {"diagnostics": []}})["result"]
    for a in found:
        check("kind", (a["kind"], list(a["edit"]["changes"])), ("quickfix", [uri(path)]))
    check("one is preferred", [a["isPreferred"] for a in found], [i == 0 for i in range(len(found))])
    return [(a["title"], a["edit"]["changes"][uri(path)]) for a in found]


def cures(job):
    """The cures of tests/names: an edit is as that test follows the cure. It is offered if the result has no error."""
    c = Client(AMP)
    c.open(job, "")
    c.diagnostics(job)
    offered = 0
    for case in names.read_cases():
        text, _ = names.program(case["slot"], case["wrong"])
        c.change(job, text)
        first = [d for d in c.diagnostics(job) if d["severity"] == 1][0]
        found = actions(c, job, first["range"])
        errors = names.errors(AMPC, text)
        right = names.followed(text, errors[0])
        for title, edits in found[:1]:
            check(f"the edit of {case['name']}", applied(text, edits), right)
            check("the title", title in first["message"], True)
        if case["name"] in ("swapped", "init_of_nn", "epoch_loop", "deepcopy", "confusion_matrix"):
            check(f"{case['name']}, whose cure belongs elsewhere", found, [])
        offered += len(found) > 0
        if not found and right is not None:
            check(f"{case['name']} has an edit", names.left(AMPC, text, errors) != [], True)
    check("many cases have one", offered >= 70, True)

    def cure(line):
        text = JOB.replace("  batch = out", line)
        c.change(job, text)
        c.diagnostics(job)
        at = text.split("\n").index(line)
        return [(t, applied(text, e).split("\n")[at]) for t, e in actions(c, job, {
            "start": {"line": at, "character": 3}, "end": {"line": at, "character": 3}})]
    check("a line to leave out", [right for _, right in cure("  opt.step()")], ["  error = cross_entropy(batch, y)"])
    check("a line with a comment", cure("  opt.step() # why"), [])
    check("a line with two statements", cure("  opt.step(); batch = out"), [])
    text = JOB.replace("out = net(x)", "out = nett(x)")
    c.change(job, text)
    wrong = [d for d in c.diagnostics(job)][0]["range"]
    check("a name behind a character of four bytes", [applied(text, e) for _, e in actions(c, job, wrong)], [JOB])
    for init, lines, wanted in [
            ("StandardScaler()", ["h = s(x)"], [[]]), ("LazyLinear(3)", ["h = s(x)"], [[]]),
            ("Linear(3, 3)", ["h = x.sum(axis=1).dim()"], [["h = x.sum(dim=1).dim()"]]),
            ("Linear(3, 3)", ["h = x.sum(axis=1)", "h = s(h)"], [[]]),
            ("Linear(3, 3)", ["h = np.concatenate([x, x], axis=1)", "h = s(h)"], [[]]),
            ("Linear(3, 3)", ["h = np.concatenate([x, x], axis=1)"], [["h = cat([x, x], axis=1)"]]),
            ("Linear(3, 3)", ["h = F.gelu(x)", "h = x.float()"], [["h = gelu(x)"], ["h = x.to(f32)"]]),
            ("Linear(3, 3)", ["h = x.sum(bad=1)", "h = x.float()"], [[], ["h = x.to(f32)"]])]:
        text = THREE.replace("INIT", init).replace("LINES", "\n".join(lines))
        c.change(job, text)
        found = {d["range"]["start"]["line"]: d["range"] for d in c.diagnostics(job)}
        edits = [actions(c, job, found[line]) for line in sorted(found)]
        check(f"cures of {init} and {lines}",
              [[applied(text, e).split("\n")[line] for _, e in a] for line, a in zip(sorted(found), edits)], wanted)
    for where in ((0, 0), (10 ** 9, 10 ** 9)):
        check("a place without mistakes", actions(c, job, {k: {"line": where[0], "character": where[1]} for k in ("start", "end")}), [])
    c.close()


# ---- names ----

class Session:
    def __init__(self, job, lib, *more, encodings=("utf-8",)):
        self.c, self.texts, self.utf16 = Client(AMP, encodings=encodings), {job: JOB, lib: LIB}, not encodings
        for path in (job, *more):
            self.c.open(path, self.texts[path])
            check("no mistakes", self.c.diagnostics(path), [])

    def params(self, path, at, **more):
        line, character = place(self.texts[path], at, self.utf16)
        return {"textDocument": {"uri": uri(path)}, "position": {"line": line, "character": character}, **more}

    def signature(self, path, at):
        found = self.c.ask("textDocument/signatureHelp", self.params(path, at))["result"]
        if not found:
            return None
        s, active = found["signatures"][0], found["activeParameter"]
        start, end = s["parameters"][active]["label"] if s["parameters"] else (0, 0)
        return s["label"], s["label"][start:end], s["documentation"]["value"]

    def places(self, method, path, at, **context):
        found = self.c.ask("textDocument/" + method, self.params(path, at, context=context))["result"]
        return found and [(os.path.basename(p["uri"]), p["range"]["start"]["line"] + 1, p["range"]["start"]["character"])
                          for p in found]

    def rename(self, path, at, name):
        """The edits of each file, or the reason."""
        answer = self.c.ask("textDocument/rename", self.params(path, at, newName=name))
        if "error" in answer:
            return answer["error"]["message"]
        return {p: answer["result"]["changes"].get(uri(p), []) for p in self.texts}


def signatures(job, lib):
    s = Session(job, lib, lib)
    sgd = s.signature(job, "SGD(|net, lr")
    check("an optimizer", (sgd[0][:20], sgd[1], sgd[2]),
          ("SGD(model, lr, momen", "model", "Gradient descent, optionally with momentum."))
    for path, at, label, active in [
            (job, "SGD(net, |lr", "SGD(model, lr", "lr"), (job, "SGD(net, lr=|0.1", "SGD(model, lr", "lr"),
            (lib, "synthetic(64, [|24", "synthetic(n: int", "shape"), (lib, "dtype=|i64", "synthetic(n: int", "dtype=f32"),
            (job, "Block(|width", 'Block(n: int, act: str = "relu")', "n: int"), (job, "Net(width=|24", "Net(width: int = WIDTH)", "width: int = WIDTH"),
            (lib, "twice(k=|3.0", "twice(x, k: float = 2.0)", "k: float = 2.0"), (job, "encode(x, |scale", "encode(x: float[N, n], scale=1.0)", "scale=1.0"),
            (job, "+ b(|x)", "forward(x: float[N, n])", "x: float[N, n]"), (job, "out = net(|x)", "forward(x)", "x"),
            (job, "cross_entropy(batch, |y", "cross_entropy(logits", "target"), (job, "ones_(|)", "ones_()", ""),
            (job, 'init("**.norm.weight"|', "init(PATTERNS", "PATTERNS")]:
        got = s.signature(path, at)
        check(f"the signature at {at}", got and (got[0][:len(label)], got[1]), (label, active))
    for path, at in [(job, "|dim S"), (job, "train| x"), (job, "return f|c"), (lib, "const WIDTH = |24"), (job, "import| ")]:
        check(f"no signature at {at}", s.signature(path, at), None)
    wrong = JOB.replace("cross_entropy(batch, y)", "cross_entropy(batch, [1,")
    s.c.change(job, wrong)
    s.texts[job] = wrong
    check("an open call", s.signature(job, "cross_entropy(batch, [1,|")[1], "target")
    s.texts[job] = JOB.replace("out = net(x)", "out = net(x).sum(1)")
    s.c.change(job, s.texts[job])
    check("a method of a tensor", s.signature(job, "net(x).sum(|1)")[:2], ("sum(x, dim=none, keepdim=false)", "dim=none"))
    wrong = JOB.replace("lr=0.1)", "lr=0.1, none=")
    s.c.change(job, wrong)
    s.texts[job] = wrong
    check("an unknown argument", s.signature(job, "none=|")[1], "")
    s.c.close()


PLACES = [  # a place, and all places: lines of the job, lines of the library
    ("job", "= |WIDTH)", [3], [15]), ("lib", "|fc = ", [23], [4, 6]), ("lib", "def |encode", [8], [5, 11]),
    ("job", "|scale=2.0", [8], [5, 7, 11]), ("lib", "|h = relu", [], [6, 7, 7, 8]), ("lib", "def |twice", [], [2, 8]),
    ("lib", "(|n: int", [], [3, 4, 4, 5, 10]), ("lib", "[|x for", [], [8, 8]), ("lib", "encode(x: float[|N", [], [5]),
    ("job", "|error = ", [19, 20, 21], []), ("job", "|batch = out", [18, 19], []), ("job", "f32[|S", [2, 23], []),
    ("job", "|opt = SGD", [14, 15, 21], []), ("job", "Net(|width=24", [3, 4, 5, 6, 13], []), ("job", "|fc = head", [9, 10], []),
    ("job", "for |b in", [8, 8, 8], []), ("job", "module |Net", [3, 13], []), ("lib", "|k: float", [], [2, 2, 8]),
    ("job", "|net = Net", [13, 14, 17, 23, 23], []), ("lib", "data |samples", [16], [1]), ("job", "train x, |y", [16, 19], [])]


def emitted(texts, edits, old):
    """The emitted text of the job, without layout and hashes, with the old name for the new one."""
    with tempfile.TemporaryDirectory() as folder:
        for p, text in texts.items():
            with open(os.path.join(folder, os.path.basename(p)), "w", encoding="utf-8") as out:
                out.write(applied(text, edits.get(p, [])))
        text = subprocess.run([AMPC, "--emit=c", "--target=cpu", "-o", "-", "job.amp"], cwd=folder, capture_output=True,
                              text=True, check=True).stdout
    return re.sub(r"xxh64 \w+|0x\w+ull|\s|//", "", text.replace("renamed", old))


def renames(job, lib):
    """Every place is found. The renamed job gives the same text, but for the name."""
    for opened in ((), (lib,)):
        s = Session(job, lib, *opened)
        before = emitted(s.texts, {}, "")
        for file, at, in_job, in_lib in PLACES:
            path = job if file == "job" else lib
            if path not in (job, *opened):
                continue
            old = re.search(r"\|(\w+)", at)[1]
            found = s.places("references", path, at, includeDeclaration=True)
            check(f"places of {at}", ([p[1] for p in found if p[0] == os.path.basename(job)], [p[1] for p in found if p[0] == "lib.amp"]),
                  (in_job, in_lib))
            check("without the declaration", len(s.places("references", path, at, includeDeclaration=False)), len(found) - 1)
            check("in the file", s.places("documentHighlight", path, at), [p for p in found if p[0] == os.path.basename(path)])
            edits = s.rename(path, at, "renamed")
            if isinstance(edits, str):
                check(f"the rename of {at}", edits, "edits")
                continue
            check(f"edits of {at}", [[e["range"]["start"]["line"] + 1 for e in edits[p]] for p in (job, lib)], [in_job, in_lib])
            if opened:
                check(f"the text that is emitted after {at}", emitted(s.texts, edits, old), before)
        s.c.close()


def refused(job, lib):
    s = Session(job, lib, lib)
    for path, at, name, why in [
            (job, "head = |Linear", "L", "`Linear` is no name that this job declares"), (lib, "|h = relu", "x", "lib.amp:5 uses `x`, which would get another meaning"),
            (lib, "|h = relu", "fc", "`fc` is declared in lib.amp:4"), (lib, "|h = relu", "WIDTH", "`WIDTH` is declared in lib.amp:15"),
            (lib, "|fc = ", "h", "lib.amp:6 uses `h`, which would get another meaning"), (job, "|out = net", "net", "`net` is declared in job.amp:13"),
            (lib, "const |WIDTH", "net", "`net` is declared in job.amp:13"), (lib, "|h = relu", "relu", "`relu` is a function of the language"),
            (lib, "|h = relu", "for", "`for` is a word of the language"), (lib, "|h = relu", "data", "`data` is a word of the language"),
            (lib, "|h = relu", "1a", "`1a` is not a name"), (lib, "|h = relu", "", "`` is not a name"), (lib, "|h = relu", "a b", "`a b` is not a name"),
            (lib, "|h = relu", "é", "`é` is not a name"), (job, "|norm = ", "n2", 'job.amp:13: "norm" may select `norm` or `n2` by its path, and texts are not renamed'),
            (job, "|head = ", "norm", "`norm` is a function of the language"), (lib, "def |forward", "run", "a call of a module runs its `forward`, so this name is fixed"),
            (job, "metric |batch", "m", "commands and files refer to a metric by its name, so `batch` is not renamed"),
            (job, "infer |f", "m", "commands and files refer to an infer block by its name, so `f` is not renamed"), (job, "with |batch", "m", "`batch` is no name that this job declares"),
            (job, "|train x", "m", "`train` is no name that this job declares"), (job, '"lib|.amp', "m", "there is no name here"),
            (job, "lr=0|.1", "m", "there is no name here"), (job, "# |✓", "m", "there is no name here")]:
        check(f"{at} to {name}", s.rename(path, at, name), why)
        answer = s.c.ask("textDocument/prepareRename", s.params(path, at))
        if "no name" in why or "by its name" in why:
            check(f"prepare at {at}", answer["error"]["message"], why)
    prepared = s.c.ask("textDocument/prepareRename", s.params(job, "|out = net"))["result"]
    check("prepare", (prepared["placeholder"], prepared["range"]["start"]["character"]), ("out", 14))
    for params in ({}, {"newName": 1}):
        check("no new name", s.c.ask("textDocument/rename", s.params(job, "|out = net", **params))["error"]["code"], -32602)
    s.c.change(lib, LIB.replace("h * scale", "h * scal"))
    check("a job with errors", s.rename(job, "|out = net", "o"), "job.amp has errors: correct them first")
    s.c.change(lib, LIB)
    os.chmod(lib, 0o444)
    if not os.access(lib, os.W_OK):
        check("a file that cannot be written", s.rename(job, "= |WIDTH)", "W"), f"{lib} cannot be written")
    os.chmod(lib, 0o644)

    second = os.path.join(os.path.dirname(job), "second.amp")
    s.texts[second] = 'import "lib.amp"\nconst DEEP = WIDTH\n'
    s.c.open(second, s.texts[second])
    edits = s.rename(lib, "const |WIDTH", "WIDE")
    check("a second job", [len(edits[p]) for p in (job, lib, second)], [1, 1, 1])
    check("its collision", s.rename(lib, "const |WIDTH", "DEEP"), "second.amp:2 uses `DEEP`, which would get another meaning")
    s.texts[second] = OWN
    s.c.change(second, OWN)
    check("a name in the text of an op", s.rename(second, "|x: float", "z"), "the text of an op may use `x`")
    check("its name", [len(v) for v in s.rename(second, "op |plus", "more").values()], [0, 0, 2])
    s.texts[second] = BALANCED
    s.c.change(second, BALANCED)
    check("a name in a text of its block", s.rename(second, "train x, |y", "z"), 'second.amp:4: balance="y" names this variable, and texts are not renamed')
    check("a name that no text names", [len(v) for v in s.rename(second, "train |x", "z").values()], [0, 0, 2])
    check("a name of another block", [len(v) for v in s.rename(second, "eval x, |y", "z").values()], [0, 0, 2])
    unknown = "module A { m = Linear(2, 2)\n def g(t) { return t.m } }\n"
    s.texts[second] = unknown
    s.c.change(second, unknown)
    check("a member of what is unknown", s.rename(second, "|m = ", "n"), "second.amp:2: it is not known whether this `m` is the same name")
    check("it is no place for sure", len(s.places("references", second, "|m = ")), 1)
    s.c.close()


def utf16(job, lib):
    s = Session(job, lib, encodings=())
    edits = s.rename(job, "|out = net", "o")[job]
    check("a rename in UTF-16", [(e["range"]["start"]["character"], e["range"]["end"]["character"]) for e in edits], [(12, 15), (10, 13)])
    s.c.close()


def every_name(job):
    """A rename of each name of a job has its place, or is refused for a reason that the text shows."""
    c, done = Client(AMP), set()
    with open(job, encoding="utf-8") as f:
        text = f.read()
    c.open(job, text)
    c.diagnostics(job)
    for i, line in enumerate(text.split("\n")):
        for m in re.finditer(r"[A-Za-z_]\w*", re.sub(r'#.*|"[^"]*"', lambda m: " " * len(m[0]), line)):
            at = {"line": i, "character": len(line[:m.start()].encode())}
            if (i, at["character"]) in done:
                continue
            answer = c.ask("textDocument/rename", {"textDocument": {"uri": uri(job)}, "position": at, "newName": "renamed"})
            why = answer.get("error", {}).get("message", "")
            if why:
                known = re.search("is no name|there is no name|by its name|text of an op|select `|runs its `forward`|is not known", why)
                check(f"{job}:{i + 1}: {m[0]}", why, why if known else "edits")
                continue
            starts = [e["range"]["start"] for e in answer["result"]["changes"].get(uri(job), [])]
            check(f"{job}:{i + 1}: {m[0]} is a place of itself", at in starts, True)
            done |= {(s["line"], s["character"]) for s in starts}
    c.close()


for model in sys.argv[3:]:
    every_name(os.path.abspath(model))
if sys.argv[3:]:
    sys.exit(failed != 0)
with tempfile.TemporaryDirectory() as folder:
    files = [os.path.join(folder, name) for name in ("job.amp", "lib.amp")]
    for path, content in zip(files, (JOB, LIB)):
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
    cures(os.path.join(folder, "wrong.amp"))
    signatures(*files)
    renames(*files)
    refused(*files)
    utf16(*files)
print("FAILED" if failed else "ok")
sys.exit(failed != 0)
