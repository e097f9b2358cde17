#!/usr/bin/env bash
# No two libraries define the same name: which of the two a program would call depends on their order.
#   symbols.sh BUILD
set -euo pipefail
found=
for library in "$1"/libamp*.a; do
  [ "$(basename "$library")" = libampcrt.a ] && continue # all of the runtime once more, for emitted programs
  found+=$(nm --defined-only "$library" 2>/dev/null | awk '$2 ~ /^[TDBRC]$/ { print $3 }' | sort -u)$'\n'
done
[ "$(wc -l <<<"$found")" -gt 1000 ] || { echo "symbols.sh: found no libraries in $1" >&2 && exit 1; }
twice=$(sort <<<"$found" | uniq -d | grep -v '^$' || true)
[ -z "$twice" ] || { echo "two libraries define: $twice" >&2 && exit 1; }
