#!/usr/bin/env python3
"""`amp lsp` as an editor uses it: diagnostics, hover, definitions, completion, inlay hints, symbols, layout; and messages
that no editor sends. usage: lsp.py AMP [--slow]   --slow: only what takes as long as the server waits for a compile
"""
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import Client, uri

AMP = sys.argv[1]
LIB = """data samples() { return synthetic(64, [24]), synthetic(64, [], dtype=i64, low=0, high=24) }
module Block(n: int) {
  fc = Linear(n, n)
  def forward(x: float[N, n]) {
    h = relu(fc(x))
    return h + x
  }
}
const WIDTH = 24
"""
JOB = """# ✓ 😀
import "lib.amp"
module Net(width: int = WIDTH) {
  blocks = [Block(width) for i in range(2)]
  head = Linear(width, 24)
  def forward(x) {
    for b in blocks { x = b(x) }
    return head(x)
  }
}
model net = Net()
precision f16
optimizer opt = SGD(net, lr=0.1)
train x, y in samples() with batch=8 {
  s = "😀"; out = net(x)
  minimize cross_entropy(out, y) with opt
}
"""
WORDS = """dim S(max=8)
module Wide(std: int = 4) { fc = Linear(std, 600_000 if std > 3 else 2) }
model wide = Wide(std=4) { init("**", normal_(std=0.02)) }
"""
failed = 0


def check(what, got, wanted):
    global failed
    if got != wanted:
        print(f"FAILED: {what}: {got!r}, expected {wanted!r}")
        failed += 1


def contains(what, got, *parts):
    for part in parts:
        check(f"{what} contains {part!r}", part in (got or ""), True)


def place(text, at, utf8=True):
    """Line and character of the mark | in a copy of a line: "  h = |relu(fc(x))"."""
    line = at.replace("|", "", 1)
    number = text.split("\n").index(line)
    before = at[:at.index("|")]
    return number, len(before.encode()) if utf8 else len(before.encode("utf-16-le")) // 2


def span(d):
    start, end = d["range"]["start"], d["range"]["end"]
    return start["line"], start["character"], end["line"], end["character"]


def hover(c, path, *at):
    found = c.at("hover", path, *at)
    return found and found["contents"]["value"]


def labels(c, path, *at):
    return [item["label"] for item in sorted(c.at("completion", path, *at), key=lambda item: item["sortText"])]


def error(message):
    return message["error"]["code"]


# ---- what editors show ----

def features(job, lib):
    c = Client(AMP)
    check("encoding", c.initialized["capabilities"]["positionEncoding"], "utf-8")
    c.open(job, JOB)
    check("a job without mistakes", c.diagnostics(job), [])
    c.open(lib, LIB)
    check("a file of modules", c.diagnostics(lib), [])

    contains("hover of a value", hover(c, lib, *place(LIB, "    return |h + x")), "h: f16[8, 24]", "relu has the type of")
    contains("hover of a call", hover(c, job, *place(JOB, "    return |head(x)")), "a module Linear",
             "head(..): f16[8, 24]", "linear runs in f16: `precision f16`, line 12", "net.head")
    contains("hover of a layer", hover(c, lib, *place(LIB, "  fc = |Linear(n, n)")), "Linear(in_features", "bias: bool = true")
    contains("hover of a setting", hover(c, job, *place(JOB, "train x, y in samples() with |batch=8 {")), "number of samples")
    contains("hover of a const", hover(c, job, *place(JOB, "module Net(width: int = |WIDTH) {")), "WIDTH: int 24", "const WIDTH = 24")
    contains("hover of a module", hover(c, job, *place(JOB, "  blocks = [|Block(width) for i in range(2)]")), "module Block(n: int)")
    contains("hover of an argument", hover(c, job, *place(JOB, "optimizer opt = SGD(net, |lr=0.1)")), "SGD(")
    check("hover of a comment", hover(c, job, 0, 3), None)
    check("hover behind the end", hover(c, job, 10 ** 12, 10 ** 12), None)

    def definition(path, text, at):
        found = c.at("definition", path, *place(text, at))
        return found and (found["uri"], *span(found)[:2])
    check("definition of a module", definition(job, JOB, "  blocks = [|Block(width) for i in range(2)]"), (uri(lib), 1, 7))
    check("definition of a parameter", definition(lib, LIB, "    return h + |x"), (uri(lib), 3, 14))
    check("definition of a member", definition(lib, LIB, "    h = relu(|fc(x))"), (uri(lib), 2, 2))
    check("definition of a loop's name", definition(job, JOB, "    for b in blocks { x = |b(x) }"), (uri(job), 6, 8))
    check("definition of an import", definition(job, JOB, 'import "|lib.amp"'), (uri(lib), 0, 0))
    check("definition of a built-in", definition(lib, LIB, "    h = |relu(fc(x))"), None)

    words = "untitled:words"
    c.open(words, WORDS)
    c.diagnostics(words)
    arguments, width = "model wide = Wide(|std=4) { init(\"**\", normal_(std=0.02)) }", "Linear(std, 600|_000 if std > 3 else 2) }"
    width = "module Wide(std: int = 4) { fc = " + width
    contains("hover of an entry with brackets", hover(c, words, 0, 0), "multiple=SIZE)\n```")
    contains("hover of a module's argument", hover(c, words, *place(WORDS, arguments)), "module Wide(std")
    contains("hover of an argument, not of the function", hover(c, words, 2, arguments.index("std=0.02")), "normal_(mean")
    check("hover of a number", hover(c, words, *place(WORDS, width)), None)
    check("hover of a word in a call", hover(c, words, 1, width.index("else")), None)
    check("definition of an argument", definition(words, WORDS, arguments), (words, 1, 12))

    check("hints of a job", [h["label"] for h in c.hints(job)], ["x: f32[8, 24]", "out: f16[8, 24]"])
    c.change(job, JOB.replace("batch=8", "batch=8, shards=2"))
    check("hints of a job for two members", [h["label"] for h in c.hints(job)], ["x: f32[4, 24]", "out: f16[4, 24]"])
    c.change(job, JOB)
    check("hints of an import", [(h["label"], h["position"]) for h in c.hints(lib)],
          [("h: f16[8, 24]", {"line": 4, "character": 19})])
    check("hints of a range", c.hints(job, 5), [])

    def formatted(text):
        c.change(job, text)
        return c.ask("textDocument/formatting", {"textDocument": {"uri": uri(job)}, "options": {"tabSize": 2}})
    check("the layout of a job that has it", formatted(JOB)["result"], [])
    wide = JOB.replace("  for b", "for  b").replace("lr=0.1", "lr = 0.1").removesuffix("\n")
    edit = formatted(wide)["result"]
    check("another layout", [(e["newText"], span(e)) for e in edit], [(JOB, (0, 0, 16, 1))])
    check("no layout", formatted(JOB.replace("Linear(width, 24)", "Linear(width, = 24)"))["error"], {
        "code": -32803, "message": "not formatted: line 5: the name of an argument is a single name"})
    c.change(job, JOB)
    symbols = c.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri(job)}})["result"]
    check("symbols", [s["name"] for s in symbols], ["import", "Net", "net", "precision", "opt", "train"])
    check("members", [s["name"] for s in symbols[1]["children"]], ["blocks", "head", "forward"])
    check("exit status", c.close(), 0)


def completion(job):
    c = Client(AMP)
    c.open(job, JOB)

    def at(line, with_mark):
        """Completes at the mark of a line that replaces another one."""
        c.change(job, JOB.replace(line, with_mark.replace("|", "")))
        return labels(c, job, *place(JOB.replace(line, with_mark.replace("|", "")), with_mark))
    check("members", at("    return head(x)", "    return net.|"), ["blocks", "forward", "head", "width"])
    check("members of a list", at("    return head(x)", "    return net.blocks[0].|"), ["fc", "forward", "n"])
    check("members of a built-in layer", at("    return head(x)", "    return net.head.|"), [])
    methods = at("    return head(x)", "    return head(x).|")
    check("methods of a tensor", methods[:2] + [m for m in methods if m in ("flatten", "Linear", "if")],
          ["dtype", "shape", "flatten"])
    check("arguments of a layer", at("  head = Linear(width, 24)", "  head = Linear(width, |")[:3],
          ["bias=", "in_features=", "out_features="])
    check("arguments of a module", at("model net = Net()", "model net = Net(|")[:2], ["width=", "Block"])
    check("settings", at("train x, y in samples() with batch=8 {", "train x, y in samples() with |")[:3],
          ["balance=", "batch=", "clip_norm="])
    clauses = at("model net = Net()", "model net = Net() { |")
    check("clauses", [name for name in clauses if name in ("init", "load", "batch=")], ["init", "load"])
    names = at("    return head(x)", "    return |")
    check("names", [n for n in names if n in ("blocks", "head", "x", "relu", "if", "import", "WIDTH", "out")],
          ["WIDTH", "blocks", "head", "x", "if", "relu"])
    check("declarations", [n for n in at("precision f16", "|") if n in ("module", "train")], ["module", "train"])
    check("a comment", at("precision f16", "# a |"), [])
    c.close()


def utf16(job):
    c = Client(AMP, encodings=())
    check("encoding", c.initialized["capabilities"]["positionEncoding"], "utf-16")
    wrong = JOB.replace("out = net(x)", "out = nett(x)")
    c.open(job, wrong)
    found = c.diagnostics(job)
    check("codes", [d["code"] for d in found], ["E201"])
    line, start = place(wrong, '  s = "😀"; out = |nett(x)', utf8=False)
    check("the range in UTF-16", span(found[0]), (line, start, line, start + 4))
    contains("the cure", found[0]["message"], "unknown name `nett`", "did you mean `net`?")
    c.change(job, JOB)
    check("the mistake is corrected", c.diagnostics(job), [])
    contains("hover in UTF-16", hover(c, job, *place(JOB, '  s = "😀"; |out = net(x)', utf8=False)), "out: f16[8, 24]")
    check("hints in UTF-16", c.hints(job)[1]["position"]["character"], 24)
    c.close()


def imports(job, lib):
    """The text of an open file counts, not that on disk. A mistake is reported in its file."""
    c = Client(AMP, "-D", "WIDTH=24", "-D", "NONE=1", "--set", "lr=0.5", "--set", "none=1", "--stdio")
    c.open(job, JOB)
    check("job", c.diagnostics(job), [])
    check("types, although no const has a name of -D", [h["label"] for h in c.hints(job)], ["x: f32[8, 24]", "out: f16[8, 24]"])
    c.open(lib, LIB)
    check("lib", c.diagnostics(lib), [])
    c.change(lib, LIB.replace("Linear(n, n)", "Linear(n, n + 1)"))
    found = c.latest(lib)
    check("a mistake that the job finds in its import", [(d["code"], span(d)) for d in found], [("E303", (5, 11, 5, 16))])
    c.change(lib, LIB.replace("relu(fc(x))", "relu(fc.").replace("const WIDTH", "const DEPTH"))
    check("a syntax error", [d["code"] for d in c.latest(lib)], ["E103"])
    check("no stale hints", c.hints(job), [])
    c.tell("textDocument/didClose", {"textDocument": {"uri": uri(lib)}})
    contains("the file on disk counts again", hover(c, job, *place(JOB, "module Net(width: int = |WIDTH) {")), "int 24")
    new = os.path.join(os.path.dirname(job), "never_saved.amp")
    c.open(new, "const A = B\n")
    check("a file that is not on disk", [d["code"] for d in c.latest(new)], ["E201"])
    c.open(new + ".job.amp", 'import "never_saved.amp"\nconst C = A\n')
    check("its import", [d["code"] for d in c.latest(new + ".job.amp")], [])
    c.open(new, 'import "never_saved.amp.job.amp"\nconst A = 1\n')
    check("a circle of imports", c.latest(new), [])
    os.rename(lib, lib + ".away")
    c.tell("textDocument/didSave", {"textDocument": {"uri": uri(job)}})
    found = c.latest(job)
    check("a missing import", [(d["code"], span(d)[0]) for d in found[:1]], [("E211", 1)])
    os.rename(lib + ".away", lib)
    c.close()
    c = Client(AMP, "-D", "WIDTH=abc")
    c.open(job, JOB)
    check("a wrong value of -D", [(d["message"], span(d)) for d in c.diagnostics(job)], [
        ("-D WIDTH=abc: unknown name `abc`", (0, 0, 0, 0))])
    c.close()


# ---- what editors do not do ----

def hostile(job):
    c = Client(AMP, initialize=False)

    def answer(message):
        c.send(message)
        return error(c.receive())
    check("a request before initialize", answer({"id": 1, "method": "textDocument/hover"}), -32002)
    c.tell("textDocument/didOpen", {"textDocument": {"uri": uri(job), "text": JOB}})  # ignored
    for head in (b"Content-Length: x\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"Host: a\r\n\r\n", b"\r\n\r\n", b"a" * 5000,
                 b"Content-Length: 99999999999999999999999\r\n\r\n"):
        c.raw(head)
        check(f"headers {head[:24]}", error(c.receive()), -32700)
    c.send({"id": "a", "method": "initialize", "params": []})
    check("initialize", c.receive()["id"], "a")
    for code, message in [
            (-32700, b"{"), (-32700, b""), (-32700, b'{"id": 1, "method": "\xff"}'), (-32700, b"[" * 100000),
            (-32600, [1]), (-32700, b"5"), (-32600, {}), (-32600, {"id": {}, "method": "a"}), (-32600, {"id": 1, "method": 7}),
            (-32600, {"id": 1, "method": "initialize"}), (-32601, {"id": 1, "method": "$/none"}),
            (-32602, {"id": 1, "method": "textDocument/hover"}), (-32602, {"id": 1, "method": "textDocument/hover", "params": 1}),
            (-32602, {"id": 1, "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": uri(job)}}}),
            (-32602, {"id": 1, "method": "textDocument/inlayHint", "params": {"range": {"start": {"line": 0}}}})]:
        check(f"answer to {message if len(str(message)) < 200 else 'brackets'}", answer(message), code)
    for params in (None, 1, {}, {"textDocument": 1}, {"textDocument": {"uri": 1, "text": ""}},
                   {"textDocument": {"uri": uri(job)}, "contentChanges": [1]}):
        for method in ("didOpen", "didChange", "didClose", "didSave"):
            c.tell("textDocument/" + method, params)
    c.send({"id": 5, "result": None})  # an answer that nobody asked for
    c.open(job, JOB)
    check("it still works", c.diagnostics(job), [])
    check("a position before the text", answer({"id": 1, "method": "textDocument/hover", "params": {
        "textDocument": {"uri": uri(job)}, "position": {"line": -1, "character": 0}}}), -32602)
    c.raw(b"Content-Length: 104857600\r\n\r\n" + b"x" * 104857600)
    check("a message of 100 MB", error(c.receive()), -32600)
    c.change(job, "const A = 1\0\n")
    check("a NUL", [d["code"] for d in c.diagnostics(job)], ["E100"])
    c.change(job, "const A = " + "(" * 100000)
    check("brackets", [d["code"] for d in c.diagnostics(job)][:1], ["E100"])
    c.open("untitled:1", "const A = B\n")
    check("a file without a path", [d["code"] for d in c.diagnostics("untitled:1")], ["E201"])
    for uri_of in (job, "file:///tmp/%FF.amp"):  # a path that is not UTF-8
        c.open(uri_of, "const WIDTH = 24")
        c.ask("textDocument/hover", {"textDocument": {"uri": uri(uri_of)}, "position": {"line": 0, "character": 7}, "x": "a\0b"})
        contains("hover after a request with a NUL", hover(c, uri_of, 0, 7), "const WIDTH = 24")
    check("the exit status after shutdown and exit", c.close(), 0)

    c = Client(AMP)
    c.ask("shutdown", None)
    check("a request after shutdown", error(c.ask("textDocument/hover", {})), -32600)
    c.server.stdin.close()
    check("the exit status without exit", c.server.wait(10), 1)
    c = Client(AMP)
    c.raw(b"Content-Length: 100\r\n\r\n{")
    c.server.stdin.close()
    check("the exit status after a part of a message", c.server.wait(10), 1)


def signal_worker(c, number):
    with open(f"/proc/{c.server.pid}/task/{c.server.pid}/children") as f:
        workers = f.read().split()
    check("one worker for a file", len(workers), 1)
    os.kill(int(workers[0]), number)


def slow(job):
    """A worker that does not end is killed. Here it stops by a signal, since limits of the compiler bound each compile."""
    c = Client(AMP)
    c.open(job, JOB)
    c.diagnostics(job)
    signal_worker(c, signal.SIGSTOP)
    check("hover of a worker that hangs", hover(c, job, 0, 6), None)
    c.change(job, JOB)
    check("the next edit", c.diagnostics(job), [])
    c.close()


def fast_typing(job):
    """Of the edits that wait in the input, the last one is compiled; a worker that dies is replaced."""
    c = Client(AMP)
    c.open(job, JOB)
    c.diagnostics(job)
    for i in range(200):
        c.change(job, f"const A = B{i}\n", i)
    while "`B199`" not in str(c.diagnostics(job)):
        check("diagnostics of skipped edits are few", len(c.notes) < 100, True)
    signal_worker(c, signal.SIGKILL)
    check("hover without a worker", hover(c, job, 0, 6), None)
    c.change(job, JOB)
    check("the next edit", c.diagnostics(job), [])
    c.close()


def edits_during_a_compile(job):
    """An edit ends a compile whose text it replaces. Here the compile is slow, or its worker stands still."""
    c = Client(AMP)
    c.open(job, "infer f(x: f32[2]) { for i in range(1000000) { x = x + 1.0 }\n return x }\n")
    time.sleep(0.2)
    c.change(job, JOB)
    check("diagnostics of the new text alone", c.diagnostics(job), [])
    signal_worker(c, signal.SIGSTOP)
    c.send({"id": "late", "method": "textDocument/hover", "params": {
        "textDocument": {"uri": uri(job)}, "position": {"line": 0, "character": 0}}})
    c.change(job, JOB)
    check("hover of a text that changes", error(c.receive()), -32801)
    check("the new text", c.diagnostics(job), [])
    c.close()


with tempfile.TemporaryDirectory() as folder:
    files = [os.path.join(folder, name) for name in ("a job é.amp", "lib.amp")]
    for path, content in zip(files, (JOB, LIB)):
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
    if "--slow" in sys.argv:
        slow(files[0])
        sys.exit(failed != 0)
    features(*files)
    completion(files[0])
    utf16(files[0])
    imports(*files)
    hostile(files[0])
    fast_typing(files[0])
    edits_during_a_compile(files[0])
print("FAILED" if failed else "ok")
sys.exit(failed != 0)
