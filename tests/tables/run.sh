#!/usr/bin/env bash
# run.sh AMPC AMP FILE.run [--rewrite]: runs the command in FILE's first line, "# RUN: ampc ..", at
# 80, 100 and 140 columns, and compares its output with FILE.expected. The other lines of FILE are
# the command's input. No output line may be wider than the columns.
set -u
declare -A program=([ampc]=$(realpath "$1") [amp]=$(realpath "$2"))
file=$(realpath "$3")
cd "$(dirname "$0")/../.." || exit 1
read -r _ _ name arguments <"$file"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_STATE_HOME=$work
bad=0
for columns in 80 100 140; do
  echo "---- $columns columns"
  # shellcheck disable=SC2086 # arguments are words
  sed 1d "$file" | COLUMNS=$columns "${program[$name]}" $arguments >"$work/out" 2>"$work/err" || {
    cat "$work/err" >&2
    bad=1
  }
  case $arguments in *--wide*) ;; *)
    awk -v most=$columns 'length > most { print "FAILED: wider than " most ": " $0; bad = 1 } END { exit bad }' "$work/out" >&2 || bad=1
    ;;
  esac
  cat "$work/out"
done >"$work/all"
if [ "${4-}" = --rewrite ]; then
  cp "$work/all" "${file%.run}.expected"
else
  diff -u "${file%.run}.expected" "$work/all" || bad=1
fi
exit $bad
