#!/usr/bin/env python3
"""Nothing stands in the product that the product does not use: functions of headers, macros.
usage: tests/unused.py

A function that a header declares is called outside of tests; if only its own file calls it, it is static there. The C compiler
finds static functions without a caller. Whatever emitted programs and users call, runtime/include, some test calls.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ["grammar", "compiler", "runtime", "runner", "templates"]
ENDS = (".c", ".h", ".def", ".y", ".l", ".cu", ".cuh", ".amp")
API = "runtime/include/"
# Without a caller, and why.
KEPT = {"help_check": "looks at tables that only help.c knows, for a test"}


def text_of(path):
    """Without comments; words in strings count, since emitted text calls functions, too."""
    text = (ROOT / path).read_text(errors="replace")
    return re.sub(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\')|/\*.*?\*/|//[^\n]*', lambda m: m[1] or " ", text, flags=re.S)


def read(parts):
    files = (f.relative_to(ROOT).as_posix() for part in parts for f in sorted((ROOT / part).rglob("*")) if f.suffix in ENDS)
    return {path: text_of(path) for path in files}


def places(texts):
    """{word: {path: how often}}"""
    out = collections.defaultdict(collections.Counter)
    for path, text in texts.items():
        for word in re.findall(r"\b[A-Za-z_]\w*", text):
            out[word][path] += 1
    return out


def declared(texts):
    """(function, header, is its body there) of each declaration in column 0."""
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
            yield f"{header}: nobody calls {name}"
        elif not inline and not tested[name] and len(where) == 2 and where[header] == 1:
            yield f"{header}: {name} is called in its own file only: make it static"


def macros(texts, used):
    """Not those of bison and flex, nor names that are put together."""
    for path, text in texts.items():
        pasted = ("YY", *re.findall(r"(\w+)##", text))
        for name in re.findall(r"^#define (\w+)", text, re.M):
            if sum(used[name].values()) < 2 and not name.startswith(pasted):
                yield f"{path}: nobody uses the macro {name}"


def main():
    texts = read(PARTS)
    used, tested = places(texts), places(read(["tests", "bench", "examples"]))
    found = len(list(declared(texts)))
    bad = [*functions(texts, used, tested), *macros(texts, used)]
    if found < 500:
        bad.append(f"only {found} functions were found in headers: the reading is broken")
    for line in bad:
        print("FAILED:", line)
    print(f"{found} functions of headers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
