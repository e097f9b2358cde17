#!/usr/bin/env bash
# run.sh AMP FILE [--rewrite]: runs the command in the first line of FILE with FILE as input.
# Compares the output, both streams interleaved, and the exit status with the .expected next to it.
# These are replaced first: times; folders of the test; line numbers of emitted text; losses, which
# differ by machine; memory of libraries, which is zero on some machines.
set -u
unset COLUMNS
amp=$(realpath "$1")
file=$(realpath "$2")
cd "$(dirname "$0")/../.." || exit 1
command=$(sed -n '1s/^# RUN: amp //p' "$file")
[ -n "$command" ] || { echo "$file: the first line is not # RUN: amp ..."; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
XDG_STATE_HOME=$work timeout 500 "$amp" $command <"$file" >"$work/all" 2>&1
status=$?
{
  sed -E -e 's/ in [0-9.]+ s, [0-9]+ samples\/s/ in T s/' \
    -e 's/^(step [0-9]+\/[0-9]+ .*loss) [^ ]+/\1 L/' -e 's/^(.*  acc) [0-9.]+/\1 A/' \
    -e 's/^(eval[a-z0-9]* acc:) [0-9.]+/\1 A/' -e 's/^(parameter .*optimizer) +norm$/\1  norm/' -e 's/^([a-z0-9_.]+ +[a-z0-9]+\[[0-9, ]*\] +[a-z_, ]*[a-z_]) +[0-9.e+-]+$/\1  N/' \
    -e 's/^ *[0-9]+  ([^ ]|  |$)/    N  \1/' -e 's/^(total|activations and work) +[0-9.]+ [kM]?B/\1 N/' \
    -e '/^libraries +[0-9.]+ [kM]?B$/d' "$work/all"
  echo "exit status $status"
} >"$work/out"
if [ "${3:-}" = --rewrite ]; then
  cp "$work/out" "${file%.repl}.expected"
else
  diff -u "${file%.repl}.expected" "$work/out"
fi
