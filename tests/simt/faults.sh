#!/bin/sh
# Shows that the SIMT check finds faults. Plants those of faults.txt, one at a time, in the CUDA text of faults.amp;
# after `codes:`, `indices:`, `norms:`, `own:` and `attended:`, in that of jobs/indices.amp and so on; after `tensor:`, in that of
# tensor.amp; after `decode:`, in that of a decoder; after `runtime:`, in the PTX of the runtime. With --ptx, plants those of ../ptx/faults.txt in the PTX of the jobs. In
# the wrong text, `~` stands for `@`. Each fault must be found and named. If one cannot be planted, because the text has
# changed, the test fails.
# usage: tests/simt/faults.sh SIMT_CHECK [--ptx ARCHITECTURE]
set -u
check=$1
here=$(cd "$(dirname "$0")" && pwd)
shift
list=$here/faults.txt
[ $# -eq 0 ] || list=$here/../ptx/faults.txt
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
trap 'exit 130' INT TERM
missed=0
found=0

"$check" "$@" "$here/faults.amp" >"$out" 2>&1
status=$?
if [ $status -ne 0 ]; then
  cat "$out"
  [ $status -ne 77 ] || exit 77
  echo "FAILED: the text without a fault"
  exit 1
fi
while IFS='@' read -r what from to message; do
  case $what in '' | '#'*) continue ;; esac
  to=$(printf '%s' "$to" | tr '~' '@')
  case $what in
  runtime:*) "$check" runtime --mutate "$from=>$to" >"$out" 2>&1 ;;
  codes:* | indices:* | norms:* | own:* | attended:*) "$check" "$@" --mutate "$from=>$to" "$here/jobs/${what%%:*}.amp" >"$out" 2>&1 ;;
  decode:*) "$check" "$@" --decode next --mutate "$from=>$to" "$here/../passes/decode_attention.amp" >"$out" 2>&1 ;;
  tensor:*) "$check" "$@" --mutate "$from=>$to" "$here/tensor.amp" >"$out" 2>&1 ;;
  *) "$check" "$@" --mutate "$from=>$to" "$here/faults.amp" >"$out" 2>&1 ;;
  esac
  status=$?
  said=$(grep -E '^simt(_check: .*(ptx|kernels)|: FAILED)' "$out" | grep -E -m 1 "$message")
  case "$status:$said" in
  [45]:?*) # 4: the C compiler or the loader refuses the text
    found=$((found + 1))
    echo "found   $what: $(echo "$said" | sed 's/^[^:]*: [^:]*: //')"
    ;;
  *)
    missed=$((missed + 1))
    echo "MISSED  $what (exit status $status)"
    tail -n 5 "$out"
    ;;
  esac
done <"$list"
echo "$found found, $missed missed"
[ "$missed" -eq 0 ] && [ "$found" -gt 0 ]
