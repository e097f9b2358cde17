#!/bin/bash
# run_golden.sh [--rewrite] AMPC FILE.amp...
# Compares the output of AMPC with the expected one in FILE.expected, next to the file. --rewrite writes FILE.expected:
# look at the difference before you commit it. The script can run from any folder. AMPC runs in the root of the
# repository, so messages name files as tests/...
#
# A file begins with `# RUN: ampc ARGUMENTS`. Its path is appended to the arguments, or replaces %s in them. With exit
# status 0, standard output is compared, and standard error after it if there is any. With 1 (mistakes) or 3 (missing
# file), standard error is compared. Any other status fails. Without a FILE.expected, nothing may be printed.
# canonical.py replaces numbers by names in dumps, plans and emitted text. A job with a line `# PLACES` keeps the byte
# offsets of its plan. `# SHOWS: PART...` names the parts of an emitted text that are compared.
# `# error: TEXT` or `# warning: TEXT` at the end of a line requires one such message for that line, which contains
# TEXT. Then there may be no other messages. This works with and without FILE.expected.
set -u
unset COLUMNS
root=$(cd "$(dirname "$0")/.." && pwd)
rewrite=
if [ "${1-}" = --rewrite ]; then rewrite=1; shift; fi
[ $# -ge 2 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
ampc=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL $file: $1" >&2; failed=1; }

# Every "# error: TEXT" must have its message, and every message its "# error: TEXT".
check_notes() {
  local severity=$1 wanted=0 found line text
  while IFS=: read -r line text; do
    wanted=$((wanted + 1))
    text=${text#*"# $severity: "}
    grep -F "$file:$line:" "$work/err" | grep -F " $severity[" | grep -qF -- "$text" ||
      fail "line $line: no $severity with: $text"
  done < <(grep -n "# $severity: " "$file")
  found=$(grep -c "^$file:[0-9:]* $severity\[" "$work/err")
  [ "$found" -eq "$wanted" ] || fail "$found messages of kind $severity, $wanted expected"
  notes=$((notes + wanted))
}

# In a dump, a plan or emitted text: replaces numbers by names.
canonical() {
  local options=() parts
  grep -q '^# PLACES' "$file" && options+=(--places)
  read -r -a parts < <(sed -n 's/^# SHOWS: //p' "$file") && options+=(--shows "${parts[@]}")
  python3 tests/canonical.py "${options[@]}" < "$work/actual" > "$work/named" &&
    mv "$work/named" "$work/actual"
}

run_one() {
  file=$(realpath "$1"); file=${file#"$root"/}
  local expected=${file%.amp}.expected arguments status
  read -r arguments < "$file"
  case $arguments in
  "# RUN: ampc"*) arguments=${arguments#"# RUN: ampc"} ;;
  *) fail "the first line is not '# RUN: ampc ARGUMENTS'"; return ;;
  esac
  case $arguments in
  *%s*) arguments=${arguments//%s/$file} ;;
  *) arguments="$arguments $file" ;;
  esac
  # shellcheck disable=SC2086 # arguments are words
  "$ampc" $arguments > "$work/out" 2> "$work/err" < /dev/null
  status=$?
  case $status in
  0) cat "$work/out" "$work/err" > "$work/actual" ;;
  1 | 3) cp "$work/err" "$work/actual" ;;
  *) cat "$work/err" >&2; fail "exit status $status"; return ;;
  esac
  case $status$arguments in
  0*--dump-after=* | 0*--emit=plan* | 0*--emit=c*) canonical || fail "canonical.py" ;;
  esac
  notes=0
  if grep -q "# \(error\|warning\): " "$file"; then
    check_notes error
    check_notes warning
  fi
  if [ -n "$rewrite" ]; then
    if [ -e "$expected" ] || { [ "$notes" -eq 0 ] && [ -s "$work/actual" ]; }; then
      cp "$work/actual" "$expected"
    fi
  elif [ -e "$expected" ]; then
    diff -u --label "$expected" --label actual "$expected" "$work/actual" || fail "the output differs"
  elif [ "$notes" -eq 0 ] && [ -s "$work/actual" ]; then
    fail "there is output, but no $expected"
  fi
  [ "$failed" -eq 0 ] || [ -n "$rewrite" ] || cat "$work/err" >&2
}

failed=0
files=()
for f; do files+=("$(realpath "$f")"); done
cd "$root" || exit 1
for f in "${files[@]}"; do run_one "$f"; done
exit "$failed"
