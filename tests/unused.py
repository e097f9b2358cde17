#!/usr/bin/env python3
"""Finds unused functions of headers and unused macros.
usage: tests/unused.py

A function that a header declares must be called outside of tests. If only its own file calls it, it must be static. (The C
compiler finds static functions without a caller.) A test must call each function of runtime/include, which emitted
programs and users call.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ["common", "grammar", "compiler", "runtime", "runner", "templates"]
ENDS = (".c", ".h", ".def", ".y", ".l", ".cu", ".cuh", ".amp")
API = "runtime/include/"
# Functions without a caller, with the reason.
KEPT = {"help_check": "for a test, checks tables that are private to help.c"}


def text_of(path):
    """The text without comments. Words in strings count, because emitted text calls functions too."""
    text = (ROOT / path).read_text(errors="replace")
    return re.sub(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\')|/\*.*?\*/|//[^\n]*', lambda m: m[1] or " ", text, flags=re.S)


def read(parts):
    files = (f.relative_to(ROOT).as_posix() for part in parts for f in sorted((ROOT / part).rglob("*")) if f.suffix in ENDS)
    return {path: text_of(path) for path in files}


def places(texts):
    """{word: {path: count}}"""
    out = collections.defaultdict(collections.Counter)
    for path, text in texts.items():
        for word in re.findall(r"\b[A-Za-z_]\w*", text):
            out[word][path] += 1
    return out


def declared(texts):
    """(function, header, whether the body follows) of each declaration in column 0."""
    for path, text in texts.items():
        for match in re.finditer(r"^(?:static inline )?(?!typedef|extern|static|#)[a-z][\w \*]*?\b(\w+)\([^;{}]*\)[^;{}]*([;{])", text, re.M):
            if path.endswith(".h") and not path.startswith("templates"):
                yield match[1], path, match[2] == "{"


def functions(texts, used, tested):
    for name, header, inline in declared(texts):
        where = used[name]
        if header.startswith(API):
            if not tested[name]:
                yield f"{header}: no test calls {name}"
        elif name in KEPT:
            continue
        elif sum(where.values()) < (2 if inline else 3):
            yield f"{header}: {name} has no caller"
        elif not inline and not tested[name] and len(where) == 2 and where[header] == 1:
            yield f"{header}: {name} is called in its own file only: make it static"


def macros(texts, used):
    """Skips macros of bison and flex, and names built with ##."""
    for path, text in texts.items():
        pasted = ("YY", *re.findall(r"(\w+)##", text))
        for name in re.findall(r"^#define (\w+)", text, re.M):
            if sum(used[name].values()) < 2 and not name.startswith(pasted):
                yield f"{path}: the macro {name} is unused"


def main():
    texts = read(PARTS)
    used, tested = places(texts), places(read(["tests", "bench", "examples"]))
    found = len(list(declared(texts)))
    bad = [*functions(texts, used, tested), *macros(texts, used)]
    if found < 500:
        bad.append(f"only {found} functions were found in headers: the regular expression no longer matches")
    for line in bad:
        print("FAILED:", line)
    print(f"{found} functions of headers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
