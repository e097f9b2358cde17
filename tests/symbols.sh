#!/usr/bin/env bash
# No two libraries may define the same symbol, because link order would decide which one a program calls. Both forms of
# the runtime export the names of runtime/exports.txt, and these are what the public headers declare.
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

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
list=$(dirname "$0")/../runtime/exports.txt
export LC_ALL=C
ls "$1/include" | sed 's|.*|#include "&"|' | gcc -x c -I "$1/include" -aux-info "$work/functions" -fsyntax-only -
{
  sed -n 's|^/\* [^ ]*ampc_[a-z]*\.h:[^(]*[ *]\(ampc_[a-z0-9_]*\) (.*|\1|p' "$work/functions"
  sed -n 's/^extern .* \(ampc_[a-z0-9_]*\);$/\1/p' "$1"/include/*.h
} | sort -u >"$work/declared"
nm -g --defined-only "$1/libampcrt.a" | awk 'NF == 3 { print $3 }' | sort >"$work/archive"
nm -D --defined-only "$1/shared/libampcrt.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/shared"
for names in declared archive shared; do
  diff "$list" "$work/$names" || { echo "symbols.sh: the names of $names are not those of $list" >&2 && exit 1; }
done
