#!/usr/bin/env bash
# Names and paths with characters that a shell, a compiler, a table, JSON or a terminal interprets.
# Jobs with such names are trained by amp, emitted, built by the build line and run; the test then
# parses the output of the run.
#   foreign_names.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
# quiet NAME FILE: the file has no control characters except newlines and tabs
quiet() {
  python3 - "$2" <<'PY' || failed "$1"
import re, sys
text = open(sys.argv[1], "rb").read().decode()
assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), text
PY
}
name=$'a b;touch PWNED\x1b[31m\n%n $(touch PWNED)`touch PWNED` \'"\\@,'
folder="-fplugin=x @x"
mkdir -- "$folder" && cd -- "$folder" || exit 1
job=$name.amp
cat >"./$job" <<'AMP'
const TAG = "x"
data d(n: int) { return synthetic(n, shape=[4]), synthetic(n, shape=[1]) }
model net = Linear(4, 1)
optimizer opt = SGD(net, lr=0.01) # C:\data\
train x, y in d(64) with batch=4, epochs=2, save=TAG, name="a,\"b\"" {
  minimize mse_loss(net(x), y) with opt # C:\data\
}
train x, y in d(16) with batch=4, name="a_\"b\"" { minimize mse_loss(net(x), y) with opt }
eval x, y in d(16) with batch=4, name="=1+1 %s%n */ größe" { metric error = mse_loss(net(x), y) }
AMP

# ---- amp -----------------------------------------------------------------------------------------------
tag=$'TAG=\xff\x1b'
"$amp" train --device cpu -D "$tag" --json --log 3 --log-dir $'logs\x1b' --save $'s\x1b\xff' "./$job" >out 2>err ||
  failed "amp train: exit status $?: $(cat err)"
quiet "amp train: stdout" out
quiet "amp train: stderr" err
python3 - <<'PY' || failed "the output of amp train"
import csv, json
lines = [json.loads(l) for l in open("out")]
blocks = ['a,"b"', 'a_"b"', "=1+1 %s%n */ größe"]
assert {l["block"] for l in lines if "block" in l} == set(blocks), lines
assert lines[-1]["saved"] == "s\\x1b\\xff", lines[-1]
rows = list(csv.DictReader(open("logs\x1b/metrics.csv", newline="")))
assert {r["block"] for r in rows} == set(blocks), rows
columns = [blocks[0] + ".loss", blocks[1] + ".loss", blocks[2] + ".error"]
assert list(rows[0])[-3:] == columns and all(None not in r and len(r) == len(rows[0]) for r in rows)
assert all(float(r[c]) > 0 for r in rows for c, b in zip(columns, blocks) if b == r["block"])
PY
"$amp" inspect --json "./$job" >out 2>err || failed "amp inspect --json: $(cat err)"
python3 -c 'import json; json.load(open("out"))' || failed "amp inspect --json"
"$amp" inspect "./$job" >out 2>err || failed "amp inspect"
quiet "amp inspect" out
printf ':blocks\n"\\x1b[31m"\n:open ./no\x1b\nnone\x1b\n:show nothing\n' | "$amp" repl --device cpu "./$job" >out 2>err
[ $? -eq 1 ] && [ -s out ] || failed "amp repl: exit status"
quiet "amp repl: stdout" out
quiet "amp repl: stderr" err
"$amp" train --device cpu --resume $'no\x1b\n::error' "./$job" >out 2>err
[ $? -eq 3 ] || failed "--resume of nothing"
quiet "a runtime error" err
grep -q '^::error' err && failed "a path begins a line of its own"

# ---- emitted programs
# ---------------------------------------------------------------------------------- built NAME
# PROGRAM OPTIONS...: the build line, run by two shells, makes a program that writes the same
# checkpoint as amp
built() {
  local what=$1 shell program=$2
  shift 2
  for shell in sh bash; do
    rm -f -- "$program" e
    "$ampc" --target=cpu -D "$tag" "$@" "./$job" >/dev/null 2>err || failed "$what: $(cat err)"
    "$ampc" --target=cpu -D "$tag" --build-line "$@" "./$job" >line 2>err || failed "$what, build line: $(cat err)"
    quiet "$what: the line" line
    [ "$(wc -l <line)" -eq 1 ] || failed "$what: more than one line"
    $shell ./line || failed "$what: $shell does not build it"
    "$program" -q --save e >/dev/null 2>err || failed "$what: the program: $(cat err)"
    cmp $'s\x1b\xff' e || failed "$what: another checkpoint than amp's"
  done
}
built "a name like an option" ./-fplugin=x -o -fplugin=x.c
built "a name like a file of options" ./@x -o @x.c
built "a name with all of these characters" "./$name" -o "$name.c"
built "no suffix" "./bare $name.out" --emit=c -o "bare $name"
"$ampc" --target=cpu --emit=c -o $'end\n' "./$job" || failed "a newline at the end"
"$ampc" --target=cpu --emit=c --build-line -o $'end\n' "./$job" 2>err && failed "a newline at the end, build line"
"$ampc" --target=cpu --build-line -o $'end\n.c' "./$job" 2>err && failed "a newline at the end of the program's name"
grep -q 'ends in a newline' err || failed "a newline at the end of the program's name: $(cat err)"
"$ampc" --target=cpu --library --build-line -o $'end\n.c' "./$job" >/dev/null || failed "a newline before .o"
[ -n "$(find "$work" -name 'PWNED*')" ] && failed "a shell ran a part of a name"

# ---- make parses the dependencies -------------------------------------------------------------------------
cp "./$job" 'a b#$c:d%e\f.amp'
"$ampc" --target=cpu -o 'o p#$q:r%s\t.c' --deps deps 'a b#$c:d%e\f.amp' || failed "--deps"
printf '\t@printf "%%s\\n%%s" '"'"'$@'"'"' '"'"'$^'"'"' >made\n' >>deps
make -s -f deps -B 'o p#$q:r%s\t.c' >/dev/null 2>err || failed "make: $(cat err)"
printf '%s\n%s' 'o p#$q:r%s\t.c' 'a b#$c:d%e\f.amp' | cmp - made || failed "make reads other names"
"$ampc" -o x.c --deps deps2 "./$job" 2>err && failed "--deps with a newline in a name"
finish
