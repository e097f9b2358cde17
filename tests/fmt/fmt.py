#!/usr/bin/env python3
"""`amp fmt`: golden files, the jobs of the repository, damaged layouts, and the command line.
usage: fmt.py AMPC AMP [--rewrite]
"""
import os
import pathlib
import random
import re
import socket
import stat
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ampc, amp = (os.path.realpath(program) for program in sys.argv[1:3])
failures = 0


def check(what, good, seen=""):
    global failures
    if not good:
        failures += 1
        print(f"FAILED: {what}\n{seen}")


def run(*words, text=b""):
    done = subprocess.run(words, input=text, capture_output=True)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def fmt(text):
    """The result for a text; None if it has errors."""
    status, out, err = run(amp, "fmt", "-", text=text)
    check("the status is 0 or 1", status in (0, 1), err)
    return None if status else out


def tree(path):
    """The syntax tree without places."""
    return re.sub(rb"  \d+:\d+$", b"", run(ampc, "--emit=ast", path)[1], flags=re.M)


# A second lexer, as simple as possible: strings, comments, other words, blanks.
PIECE = re.compile(rb'"""(?:.|\n)*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*|[^\s"#]+|\n|[^\S\n]+')


def words(text):
    return [piece.rstrip() for piece in PIECE.findall(text.removeprefix(b"\xef\xbb\xbf")) if not piece.isspace()]


def joined(text):
    """The text without blanks outside of strings and comments."""
    return b"".join(word + b"\n" * word.startswith(b"#") for word in words(text))


def golden():
    for path in sorted(HERE.glob("*.amp")):
        result, expected = fmt(path.read_bytes()), path.with_suffix(".expected")
        if "--rewrite" in sys.argv:
            expected.write_bytes(result or b"")
        check(f"{path.name} becomes {expected.name}", result == expected.read_bytes(), (result or b"").decode())


def fmt_files(folder, texts):
    """Writes the texts to files and formats these. Returns the results; those of wrong texts are the texts themselves."""
    files = [pathlib.Path(folder) / f"{i}.amp" for i in range(len(texts))]
    for file, text in zip(files, texts):
        file.write_bytes(text)
    status, _, err = run(amp, "fmt", *files)
    check("the status is 0 or 1", status in (0, 1), err)
    results = [file.read_bytes() for file in files]
    _, out, _ = run(amp, "fmt", *files)
    check("a second call changes nothing", out == b"", out.decode())
    return files, results


def repository(folder):
    """Models keep their layout. Every job keeps its words and its tree."""
    jobs = [path for part in ("compiler", "examples", "models", "tests") for path in sorted((ROOT / part).rglob("*.amp"))]
    kept = [path for path in jobs if "tests" not in path.relative_to(ROOT).parts]
    status, out, err = run(amp, "fmt", "--check", *kept)
    check("models, examples and layers have the layout of amp fmt", (status, out, err) == (0, b"", ""), out.decode() + err)
    texts = [path.read_bytes() for path in jobs]
    files, results = fmt_files(folder, texts)
    changed = 0
    for path, file, before, after in zip(jobs, files, texts, results):
        changed += after != before
        check(f"{path}: the same words", joined(after) == joined(before))
        check(f"{path}: the same tree", after == before or tree(file) == tree(path))
    check("jobs were changed", len(kept) > 40 and changed > 5, f"{len(kept)}, {changed}")


def damaged_line(line, draw):
    """Other blanks in a line, where the formatter decides alone."""
    if b"#" in line or b'"""' in line or re.search(rb";  ", line):
        return line
    out = b""
    for piece in PIECE.findall(line):
        if piece.isspace():
            piece = draw.choice([b" ", b"  ", b"\t", b" \r "])
            if out[-1:] in b";":  # more would be a column
                piece = b" "
        out += piece
        if piece[-1:] in b",([" and draw.random() < 0.5 and not line.startswith(b"#"):
            out += b"  "
    return b" " * draw.randrange(2) + out.strip() + b" " * draw.randrange(3)


def damage(folder):
    """Jobs with another layout become what they were."""
    draw = random.Random(1)
    paths = sorted((ROOT / "models").rglob("*.amp")) + sorted((ROOT / "examples").rglob("*.amp"))
    texts = [path.read_bytes() for path in paths]  # without text of ops, and lines aligned with a bracket
    texts = [text for text in texts for _ in range(4) if b'"""' not in text and not re.search(rb"\n {9}", text)]
    others = []
    for text in texts:
        lines = [damaged_line(line, draw) for line in text.split(b"\n")]
        other = b"\n".join(line + b"\n" * draw.randrange(3) if not line.strip() else line for line in lines)
        end = draw.choice([b"\n", b"\r\n"])
        others.append(draw.choice([b"", b"\xef\xbb\xbf", b"\n"]) + other.replace(b"\n", end))
    for text, other, result in zip(texts, others, fmt_files(folder, others)[1]):
        check("the damaged text becomes the old one", result == text, f"{other.decode()}\n{result.decode()}")
    check("jobs were damaged", len(texts) > 80, len(texts))


def command_line(work):
    os.chdir(work)
    good, other, bad = (pathlib.Path(name) for name in ("good.amp", "other.amp", "bad.amp"))
    good.write_text("const A = 1\n")
    other.write_text("const  A=1")
    other.chmod(0o640)
    bad.write_text("const  A=\n")
    pathlib.Path("link.amp").symlink_to("other.amp")
    inode = good.stat().st_ino
    check("--check names a file", run(amp, "fmt", "--check", "good.amp", "link.amp") == (1, b"link.amp\n", ""))
    check("--check of stdin", run(amp, "fmt", "--check", "-", text=b"const  A=1") == (1, b"-\n", ""))
    check("--check changes nothing", other.read_text() == "const  A=1")
    status, out, err = run(amp, "fmt", "bad.amp", "missing.amp", "good.amp", "link.amp", ".")
    check("the other files are formatted", (status, out) == (3, b"link.amp\n"), f"{status} {out}")
    for text in ("bad.amp:1:10: error[E100]", "amp fmt: error: cannot read missing.amp: No such file",
                 "amp fmt: error: cannot read .: Is a directory"):
        check(f"the message {text}", text in err, err)
    check("a file with an error stays", bad.read_text() == "const  A=\n")
    check("a file in the layout stays", good.stat().st_ino == inode)
    check("a link stays a link", pathlib.Path("link.amp").is_symlink() and other.read_text() == "const A = 1\n")
    check("the mode stays", stat.S_IMODE(other.stat().st_mode) == 0o640)
    check("no file is left", sorted(os.listdir()) == ["bad.amp", "good.amp", "link.amp", "other.amp"], os.listdir())
    check("an error alone", run(amp, "fmt", "bad.amp")[0] == 1)
    check("stdin with an error", run(amp, "fmt", "-", text=b"const A=\n")[:2] == (1, b""))
    check("no file", run(amp, "fmt")[0] == 2)
    check("an empty file", run(amp, "fmt", "-") == (0, b"", ""))
    check("bytes that are no text", run(amp, "fmt", "-", text=b"const A = 1 # \0")[0] == 1)
    check("bytes that are not UTF-8", run(amp, "fmt", "-", text=b"const A = 1 # \xff")[0] == 1)
    ours, its = socket.socketpair()
    ours.sendall(b"const  A=1")
    ours.shutdown(socket.SHUT_WR)
    done = subprocess.run([amp, "fmt", "-"], stdin=its, capture_output=True)
    check("stdin that is a socket, as Node.js makes it", (done.returncode, done.stdout) == (0, b"const A = 1\n"), done.stderr)
    check("a pipe is not written", run("bash", "-c", f"{amp} fmt <(echo 'const  A=1')")[0] == 3)
    deep = b"const A = " + b"(\n" * 100 + b"#\n" * 60000 + b"1" + b")" * 100
    status, out, err = run(amp, "fmt", "-", text=deep)
    check("indentation that fills the disk is refused", (status, out) == (1, b"") and "formatted, the file has" in err, err)


golden()
for part in (repository, damage, command_line):
    with tempfile.TemporaryDirectory() as work:
        part(work)
sys.exit(failures > 0)
