#!/usr/bin/env bash
# autocast_categories.sh AMPC: compares the types that ampc assigns with autocast_categories.txt.
# Each expression is compiled in regions f16 and bf16, with inputs of the region's type, of f32, and
# one of each. Every op of the op table with a category other than none must be in the list.
set -u
ampc=$(realpath "$1")
list=$(dirname "$(realpath "$0")")/autocast_categories.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
  echo "FAILED: $1"
  bad=1
}

expected() { # expected CATEGORY REGION TYPE_OF_A WIDEST: prints the type of the result
  case $1 in
  low) echo "$2" ;;
  f32) echo f32 ;;
  none | promote) echo "$4" ;;
  *) echo "no such category: $1" ;;
  esac
}

lines=$(grep -v '^#' "$list")
for region in f16 bf16; do
  for types in "$region $region" "f32 f32" "$region f32"; do
    read -r a b <<<"$types"
    n=0
    {
      echo "precision $region"
      while read -r _ _ expression; do
        n=$((n + 1))
        echo "infer case$n(a: $a[4, 4], b: $b[4, 4], m: bool[4, 4], t: i64[4]) { return $expression }"
      done <<<"$lines"
    } >"$work/job.amp"
    "$ampc" --dump-after=precision "$work/job.amp" >"$work/out" 2>&1 ||
      { cat "$work/out"; complain "region $region, inputs $types: not compiled"; continue; }
    n=0
    while read -r name category expression; do
      n=$((n + 1))
      widest=$a # of the inputs that the expression reads
      [[ " $expression " =~ [^a-z_]b[^a-z_] ]] && [ "$b" = f32 ] && widest=f32
      wanted=$(expected "$category" "$region" "$a" "$widest")
      got=$(sed -n "s/^%[0-9]* = output \([a-z0-9]*\)\[.* case$n  *#.*/\1/p" "$work/out")
      [ "$got" = "$wanted" ] ||
        complain "$name in $region, a $a, b $b: $expression is ${got:-nothing}, expected $wanted"
    done <<<"$lines"
  done
done

# ops that the language names, and their category in the table
"$ampc" --list-ops --wide >"$work/ops" || complain "--list-ops"
while read -r op category; do
  case $(grep -cE "^$op +" "$list") in
  0) [ "$category" = none ] || complain "$op, $category in the op table, is not in $(basename "$list")" ;;
  *) grep -qE "^$op +$category +" "$list" || complain "$op is $category in the op table, not in the list" ;;
  esac
done < <(sed 1d "$work/ops" | grep -v '(internal)' | awk '{print $1, $2}')
exit $bad
