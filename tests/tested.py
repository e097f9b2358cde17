#!/usr/bin/env python3
"""Everything that a user can name has a test: a job, script or session of tests/ names whatever the programs list.
usage: tested.py AMPC AMP

So a row that is added without a test is detected. What the test proves is up to the test. errors/codes.sh does the same
for the codes of messages.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = ("tests/tested.py", "tests/cli/options.py")  # the second one reads --help itself


def printed(*command, text=None):
    return subprocess.run(command, capture_output=True, text=True, input=text, check=True).stdout


def text_of(folder, *ends):
    """All files of a folder of the repository as one text."""
    files = sorted(f for end in ends for f in (ROOT / folder).rglob(f"*{end}"))
    return "\n".join(f.read_text(errors="replace") for f in files if not str(f).endswith(SKIPPED))


def rows(path, pattern, first="", end="$.^"):
    """All matches of the pattern between two texts of a file."""
    text = (ROOT / path).read_text()
    return re.findall(pattern, text[text.index(first):].split(end)[0], re.M)


def options(help_text):
    lefts = re.findall(r"^  (-\S.*?)(?:  |$)", help_text, re.M)
    return {word for left in lefts for word in re.findall(r"(?<![-\w])--[a-z][-\w]*|(?<![-\w])-[a-zA-Z]\b", left)} - {"-W"}


def main():
    ampc, amp = sys.argv[1:]
    commands = text_of("tests", ".sh", ".py", ".amp", ".repl", "CMakeLists.txt")
    verbs = re.findall(r"^  ([a-z]+) ", printed(amp, "--help"), re.M)
    formats = rows("runtime/plan/ampc_declared.h", r"ROW\(\w+, (\w+)\)", "#define AMPC_FORMATS", "\n\n")
    kinds = [ # kind, names, the text that must contain them, the pattern of a use
        ("verb", verbs, commands, r"amp['\"})]*,? ['\"]?{}\b"),
        ("option of ampc", options(printed(ampc, "--help")), commands, r"(?<![-\w]){}(?![-\w])"),
        *((f"option of amp {verb}", options(printed(amp, verb, "--help")), commands, r"(?<![-\w]){}(?![-\w])") for verb in verbs),
        ("command of the prompt", re.findall(r"  :([a-z]+)", printed(amp, "repl", text=":help\n"), re.M),
         text_of("tests/repl", ".repl", ".py", ".sh"), r":{}\b"),
        ("data format, as a reader", formats, text_of("tests/unit", ".c"), r"(?i)AMPC_SOURCE_{}\b|\"{}\""),
        ("op", [line.split()[0] for line in printed(ampc, "--list-ops", "--wide").splitlines()[1:]],
         text_of("runner/selftest", ".c"), r"\bOP_{}\b"),
        ("metric", rows("compiler/layers/metrics.amp", r"^def ([a-z]\w*)\("), commands, r"\b{}[(\"]"),
    ]
    failed = 0
    for kind, names, text, use in kinds:
        lacking = [name for name in sorted(names) if not re.search(use.replace("{}", re.escape(name)), text)]
        for name in lacking or ([] if names else ["(none was found: the regular expression no longer matches)"]):
            print(f"FAILED: {kind}: {name} has no test")
            failed = 1
        print(f"{len(names)}: {kind}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
