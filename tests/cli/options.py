#!/usr/bin/env python3
"""Tests that a program accepts every option that its --help lists, and that messages name the program and the verb.
usage: options.py AMPC AMP

No job runs: each call ends with a message about wrong usage, which shows that the option is known. An option
that takes a value gets none; a flag gets one.
"""
import os
import re
import subprocess
import sys
import tempfile

ampc, amp = sys.argv[1:3]
failures = []
COLUMNS = 80

# Options that only training uses: eval does not list them and refuses them.
TRAIN_ONLY = ["seed", "steps", "max-time", "overfit-batches", "save", "save-weights", "save-every", "keep-last", "keep-best",
              "log", "log-dir", "force"]


def call(command, *words):
    done = subprocess.run([*command, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=dict(os.environ, COLUMNS=str(COLUMNS)))
    return done.returncode, done.stdout, done.stderr


def check(what, good, seen):
    print(("ok: " if good else "FAILED: ") + what)
    if not good:
        failures.append(what)
        print("    " + str(seen).replace("\n", "\n    "))


def refuses(name, command, words, text):
    """The call must exit with status 2 and print only "NAME: error: TEXT" and the hint to --help."""
    status, out, err = call(command, *words)
    want = f"{name}: error: {text}\ntry '{name} --help'\n"
    check(f"{name} {' '.join(words)}", status == 2 and out == "" and err == want, f"status {status}: {err}")


def check_numbers(name, command, help_text):
    """Options that take a number must refuse these values."""
    for option in re.findall(r"(--[-a-z]+) (?:N|K|T|LINE|SIZE|TIME)\b", help_text):
        if option == "--temperature" and name == "amp chat":
            continue  # any number from 0 on
        for bad in ("", "nan", "inf", "-1", "1e400", "0x10", "9" * 30, "--5", "1 "):
            status, out, err = call(command, f"{option}={bad}", "job.amp")
            check(f"{name} {option}={bad}", status == 2 and out == "" and option in err, f"status {status}: {err}")


def listed(help_text):
    """(option, takes a value) for each line "  -q, --quiet  what it does", except for "--explain[=FORMAT]"."""
    found = []
    for line in help_text.splitlines():
        left = re.match(r"  (-\S.*?)(  |$)", line)
        for word, value in re.findall(r"(-[-\w]+)(?![-\w\[])( [A-Z][^ ,]*)?", left.group(1)) if left else []:
            found.append((word, bool(value)))
    return found


def check_columns(name, help_text):
    starts = {m.end() for m in re.finditer(r"^  -\S.*?  +(?=\S)", help_text, re.M)
              for m in [re.match(r"  -\S.*?  +", m.group())]}
    check(f"{name} --help is in columns", len(starts) == 1, starts)
    wide = [line for line in help_text.splitlines() if len(line) > COLUMNS or line != line.rstrip()]
    check(f"{name} --help fits its lines", not wide, wide)


def check_program(name, command):
    status, out, err = call(command, "--help")
    options = listed(out)
    check(f"{name} --help", status == 0 and err == "" and out.startswith(f"usage: {name} ") and options, err)
    check_columns(name, out)
    check_numbers(name, command, out)
    for option, takes_value in options:
        if option == "-v" or re.match(r"-[OW]\w", option):
            continue  # tested below
        if takes_value:
            refuses(name, command, [option], f"{option} needs a value")
        elif option.startswith("--"):
            refuses(name, command, [f"{option}=3"], f"{option} takes no value")
        else:  # a letter, followed by an unknown one
            refuses(name, command, [f"{option}~"], "no option -~")
    refuses(name, command, ["--nothing-like-this"], "no option --nothing-like-this")
    refuses(name, command, ["-~"], "no option -~")
    refuses(name, command, ["--hepl"], "no option --hepl; did you mean --help?")
    return {option for option, _ in options}


def check_compiler_options(name, command):
    """The messages must be the same for every program that has these options."""
    refuses(name, command, ["-O3"], "-O3: expected -O0, -O1 or -O2")
    refuses(name, command, ["-D", "A"], "-D A: expected NAME=VALUE")
    refuses(name, command, ["--set=opt.lr"], "--set=opt.lr: expected NAME=VALUE")


def check_eval(command):
    options = check_program("amp eval", command)
    for option in TRAIN_ONLY:
        status, _, err = call(command, f"--{option}", "1", "job.amp")
        check(f"amp eval refuses --{option}",
              f"--{option}" not in options and status == 2 and
              err.startswith(f"amp eval: error: no option --{option}"), err)
    with tempfile.NamedTemporaryFile("w", suffix=".amp") as job:
        job.write("model net = Linear(2, 1)\ndata d() { return synthetic(4, [2]) }\n"
                  "eval x in d() { metric m = mean(net(x)) }\n")
        job.flush()
        refuses("amp eval", command, [job.name], "the weights are missing: give --weights FILE, or write `load` in the job's model")


def main():
    check_program("ampc", [ampc])
    check_compiler_options("ampc", [ampc])
    refuses("ampc", [ampc], ["--explain=blue"], "--explain=blue: expected text or json")
    refuses("ampc", [ampc], ["--color=blue"], "--color=blue: expected auto, always or never")
    refuses("ampc", [ampc], ["--error-limit", "x"], "--error-limit x: expected a whole number from 0 to 2147483647")
    refuses("ampc", [ampc], ["-Wnone"], "-Wnone: no such warning")
    status, out, _ = call([amp], "--help")
    verbs = re.findall(r"^  ([a-z]+) ", out, re.M)
    check("amp --help", status == 0 and "train" in verbs and "eval" in verbs, verbs)
    for verb in verbs:
        name, command = f"amp {verb}", [amp, verb]
        if verb == "eval":
            check_eval(command)
        else:
            options = check_program(name, command)
            lacks = [option for option in TRAIN_ONLY if f"--{option}" not in options]
            check(f"{name} has what only training uses", verb != "train" or not lacks, lacks)
        if verb not in ("selftest", "weights", "import", "fmt", "tokens"):
            check_compiler_options(name, command)
    for verb in ("train", "eval", "inspect"):
        refuses(f"amp {verb}", [amp, verb], [], "no job was given")
        refuses(f"amp {verb}", [amp, verb], ["a.amp", "b.amp"], "more than one job: b.amp")
    refuses("amp repl", [amp, "repl"], ["a.amp", "b.amp"], "more than one job: b.amp")
    refuses("amp train", [amp, "train"], ["--steps", "-3", "a.amp"], "--steps -3: expected a whole number from 0 to 2^53")
    most = "a whole number from 1 to 2^53"
    for bad in ("0", "12abc", " 7", "+7", "1e3", "9007199254740993", "18446744073709551617", ""):
        for option in ("save-every", "keep-last", "keep-best", "limit-batches", "log"):
            refuses("amp train", [amp, "train"], [f"--{option}={bad}", "a.amp"], f"--{option} {bad}: expected {most}")
    for bad in ("-1", "9223372036854775808", "1.5", "nan"):
        refuses("amp train", [amp, "train"], ["--seed", bad, "a.amp"], f"--seed {bad}: expected a whole number from 0 on")
    for bad in ("0", "-1s", "nan", "inf", "0x10", "1e999h", "90d", "s", "1e300"):
        refuses("amp train", [amp, "train"], ["--max-time", bad, "a.amp"],
                f"--max-time {bad}: expected a time such as 90s, 15m or 2h, at most 100 years")
    for bad in ("nan", "-1", "1e9", "0", "9e99G", "99999999999G", "4GB4", "0x10"):
        refuses("ampc", [ampc], [f"--memory-limit={bad}", "a.amp"],
                f"--memory-limit={bad}: expected a size such as 4G, 512MB or 1000000")
    refuses("amp repl", [amp, "repl"], ["--seed", "x"], "--seed x: expected a whole number from 0 on")
    refuses("amp repl", [amp, "repl"], ["--device=tpu"], "--device tpu: expected cpu, cuda, cuda:K or auto")
    sys.exit(1 if failures else 0)


main()
