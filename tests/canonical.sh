#!/bin/sh
# Checks that golden text is stable: one more op at the start of a step changes only the lines that name it.
# usage: tests/canonical.sh AMPC
set -eu
ampc=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed 's/epochs=2 {$/& x = x - 1.5/' tests/emit/train.amp >"$work/train.amp"

# changed OPTION LINES PATTERN: LINES lines are new, and every line that is new or gone matches PATTERN
changed() {
  "$ampc" -O0 --target=cpu "$1" tests/emit/train.amp -o - 2>&1 | tests/canonical.py >"$work/before"
  "$ampc" -O0 --target=cpu "$1" "$work/train.amp" -o - 2>&1 | tests/canonical.py >"$work/after"
  diff "$work/before" "$work/after" | grep '^[<>]' >"$work/changed" || true
  new=$(grep -c '^>' "$work/changed" || true)
  if [ "$new" -ne "$2" ] || grep -vE "$3" "$work/changed"; then
    echo "FAILED: $1: $new lines of $(wc -l <"$work/after") are new"
    cat "$work/changed"
    exit 1
  fi
  echo "ok: $1: $new lines of $(wc -l <"$work/after") are new"
}
# the two nodes and the cast that reads them; the command, that cast, the number of commands
changed --dump-after=fuse 3 '@12|^. %cast@7 '
changed --emit=plan 3 'sub|cast|commands$'
