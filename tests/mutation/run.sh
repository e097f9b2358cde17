#!/bin/sh
# Tests that `amp selftest` detects wrong code. The script makes one error at a time, in the text of
# the kernels (kernels.txt, by selftest --mutate) and in the gradient rules (rules.txt, in a copy of
# the sources that it builds), and expects every run to fail. The test fails if an error is not
# detected, or cannot be made because the code has changed.
# The part `texts` only searches the texts of rules.txt in the sources, which is fast. usage:
# tests/mutation/run.sh AMP [name of the part: kernels, rules, texts]
set -u
amp=$1
part=${2:-all}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
noticed=0
survived=0

# judge LABEL STATUS: counts a run of selftest; its output is in $work/out. With status 70 a check of the compiler itself
# has noticed the error.
judge() {
  if [ "$2" -eq 5 ] || [ "$2" -eq 70 ]; then
    noticed=$((noticed + 1))
    echo "noticed   $1"
  else
    survived=$((survived + 1))
    echo "SURVIVED  $1 (exit status $2)"
    tail -n 3 "$work/out"
  fi
}

# literal FROM TO < TEXT: replaces every FROM by TO; status 1 if there is none
literal() {
  FROM=$1 TO=$2 awk '
    BEGIN { from = ENVIRON["FROM"]; to = ENVIRON["TO"]; status = 1 }
    {
      line = $0; out = ""
      while ((at = index(line, from)) > 0) {
        out = out substr(line, 1, at - 1) to
        line = substr(line, at + length(from))
        status = 0
      }
      print out line
    }
    END { exit status }'
}

mutate_kernels() {
  while IFS='@' read -r op from to; do
    case $op in '' | '#'*) continue ;; esac
    "$amp" selftest --filter "$op" --mutate "$from=>$to" >"$work/out" 2>&1
    judge "$op: $from => $to" $?
  done <"$here/kernels.txt"
}

build_copy() {
  mkdir "$work/tree" || exit 1
  for name in CMakeLists.txt bench cmake common compiler grammar runtime runner templates; do
    cp -r "$root/$name" "$work/tree/" || exit 1
  done
  cmake -S "$work/tree" -B "$work/build" -G Ninja -DBUILD_TESTING=OFF \
    -DCMAKE_BUILD_TYPE=Debug >"$work/out" 2>&1 &&
    ninja -C "$work/build" -j 2 amp >"$work/out" 2>&1 && return
  tail -n 20 "$work/out"
  echo "the copy of the sources does not build"
  exit 1
}

mutate_rules() {
  build_copy
  while IFS='@' read -r op file from to; do
    case $op in '' | '#'*) continue ;; esac
    if ! literal "$from" "$to" <"$root/$file" >"$work/tree/$file"; then
      survived=$((survived + 1))
      echo "SURVIVED  $op: $file has no $from"
    elif ! ninja -C "$work/build" -j 2 amp >"$work/out" 2>&1; then
      survived=$((survived + 1))
      echo "SURVIVED  $op: $from => $to does not build"
      tail -n 5 "$work/out"
    else
      "$work/build/amp" selftest --filter "$op" >"$work/out" 2>&1
      judge "$op: $from => $to" $?
    fi
    cp "$root/$file" "$work/tree/$file"
  done <"$here/rules.txt"
}

check_texts() {
  while IFS='@' read -r op file from to; do
    case $op in '' | '#'*) continue ;; esac
    literal "$from" "$to" <"$root/$file" >/dev/null && continue
    survived=$((survived + 1))
    echo "SURVIVED  $op: $file has no $from"
  done <"$here/rules.txt"
  [ "$survived" -eq 0 ] && echo "every text of rules.txt is in the sources"
  exit "$survived"
}

case $part in
kernels) mutate_kernels ;;
rules) mutate_rules ;;
texts) check_texts ;;
*) mutate_kernels && mutate_rules ;;
esac
echo "$noticed noticed, $survived survived"
[ "$survived" -eq 0 ] && [ "$noticed" -gt 0 ]
