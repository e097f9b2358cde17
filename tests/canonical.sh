#!/bin/sh
# Shows that golden text stays where it is: an op more at the front of a step changes the lines that
# name it, and no others.
# usage: tests/canonical.sh AMPC
set -eu
ampc=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed 's/epochs=2 {$/& x = x - 1.5/' tests/emit/train.amp >"$work/train.amp"

# changed OPTION LINES PATTERN: LINES lines are new, and each that is new or gone has the pattern
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
# the two nodes and the cast that reads them; the command, that cast, the count of commands
changed --dump-after=fuse 3 '@11|^. %cast@6 '
changed --emit=plan 3 'sub|cast|commands$'
