#!/usr/bin/env bash
# Each code of errors.def must be reported by the compiler, or by an entry of mistakes.txt, and a
# golden job must get it. Codes that only a run or a verb reports, about files or the build of kernels,
# must be in a script of tests/cli. The script prints the codes without a test.
#   codes.sh AMPC
set -u
ampc=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

met() { # prints the codes that golden jobs get
  local job arguments
  for job in tests/errors/*.amp tests/passes/*.amp tests/explain/*.amp; do
    read -r arguments <"$job"
    arguments=${arguments#"# RUN: ampc"}
    case $arguments in *%s*) arguments=${arguments//%s/$job} ;; *) arguments="$arguments $job" ;; esac
    # shellcheck disable=SC2086 # arguments are words
    "$ampc" $arguments 2>&1 >/dev/null </dev/null
  done | grep -oE '(error|warning)\[[EW][0-9]+|"code": "[EW][0-9]+' | grep -oE '[EW][0-9]+$' | sort -u
}
met >"$work/met"
grep -oE '^AMPC_(ERROR|WARNING)\([EW][0-9]+' compiler/diag/errors.def | grep -oE '[EW][0-9]+$' >"$work/codes"
while read -r code; do
  if grep -rq --include='*.[ch]' "$code" runtime runner compiler/kernel compiler/program && grep -rq --include='*.sh' "$code" tests/cli; then
    continue
  fi
  if ! grep -rqw --include='*.[ch]' --include=mistakes.txt "$code" compiler grammar; then
    echo "FAIL $code: no source reports it"
    failed=1
  fi
  if ! grep -qx "$code" "$work/met"; then
    echo "FAIL $code: no job in tests/errors, passes or explain gets it"
    failed=1
  fi
done <"$work/codes"
echo "$(wc -l <"$work/codes") codes"
exit "$failed"
