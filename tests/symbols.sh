#!/usr/bin/env bash
# No two libraries may define the same symbol, because link order would decide which one a program calls.
#   symbols.sh BUILD
set -euo pipefail
found=
for library in "$1"/libamp*.a; do
  [ "$(basename "$library")" = libampcrt.a ] && continue # the whole runtime again, for emitted programs
  found+=$(nm --defined-only "$library" 2>/dev/null | awk '$2 ~ /^[TDBRC]$/ { print $3 }' | sort -u)$'\n'
done
[ "$(wc -l <<<"$found")" -gt 1000 ] || { echo "symbols.sh: found no libraries in $1" >&2 && exit 1; }
twice=$(sort <<<"$found" | uniq -d | grep -v '^$' || true)
[ -z "$twice" ] || { echo "two libraries define: $twice" >&2 && exit 1; }
