#!/usr/bin/env bash
# Tests scripts/nightly on tests of its own: which tests it runs, which it repeats, what it prints.
#   nightly.sh
set -euo pipefail
nightly=$(dirname "$(realpath "$0")")/../scripts/nightly
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir built
cat >built/CTestTestfile.cmake <<EOF
add_test(a.good sh -c "echo x >>$work/runs")
add_test(good sh -c "test -e $work/cure")
add_test(left sh -c "exit 77")
add_test(good.long true)
add_test(crashes sh -c "kill -SEGV \$\$")
add_test(hangs sleep 60)
add_test(gone $work/gone)
add_test(other false)
set_tests_properties(a.good good left PROPERTIES LABELS "nightly;mock" SKIP_RETURN_CODE 77)
set_tests_properties(good.long crashes hangs gone PROPERTIES LABELS weekly TIMEOUT 1)
EOF
mkdir endless
cat >endless/CTestTestfile.cmake <<EOF
add_test(first true)
add_test(waits sh -c "echo x >$work/waits; sleep 60")
set_tests_properties(first waits PROPERTIES LABELS nightly)
EOF

# ends STATUS TABLE OPTION...: the exit status of a run, and its table without times
ends() {
  local status=0 table
  "$nightly" --built built --into kept "${@:3}" >out 2>&1 || status=$?
  table=$(sed '0,/^==/d; s/; [0-9]* minutes.*//; s/ * [0-9.]* s  /: /' out | paste -sd ';')
  [ "$status: $table" = "$1: $2" ] && return
  printf 'FAILED: scripts/nightly %s ends with %s: %s\ninstead of %s: %s\n' "${*:3}" "$status" "$table" "$1" "$2"
  cat out
  exit 1
}
ends 1 'passed: a.good;failed: good;skipped: left;1 passed, 1 failed, 1 skipped, 0 not run'
touch cure
ends 0 'passed: a.good;passed: good;skipped: left;2 passed, 0 failed, 1 skipped, 0 not run'
ends 0 'passed: a.good;1 passed, 0 failed, 0 skipped, 0 not run' -R '^a'
ends 0 'passed: a.good;skipped: left;1 passed, 0 failed, 1 skipped, 0 not run' -E '^good'
[ "$(wc -l <runs)" -eq 1 ] || { echo "FAILED: a passed test ran again"; exit 1; }
ends 1 'failed: crashes;failed: gone;passed: good.long;failed: hangs;1 passed, 3 failed, 0 skipped, 0 not run' --weekly
ends 1 '0 passed, 0 failed, 0 skipped, 0 not run' -R nothing
sed -i "s/^[^\t]*/0123456789/" kept/results.tsv # results of another commit
rm cure
ends 1 'passed: a.good;failed: good;not run: left;1 passed, 1 failed, 0 skipped, 1 not run' -j 1 --stop-on-failure
touch cure
ends 0 'passed: a.good;passed: good;skipped: left;2 passed, 0 failed, 1 skipped, 0 not run' -j 1
[ "$(wc -l <runs)" -eq 2 ] || { echo "FAILED: a test that passed at another commit did not run"; exit 1; }
setsid "$nightly" --built endless --into cut -j 1 >/dev/null 2>&1 &
until [ -e waits ]; do sleep 0.1; done
for _ in {1..300}; do # while the second test runs
  kept=$(grep -c '	first	passed	' cut/results.tsv) || true
  [ "$kept" = 0 ] || break
  sleep 0.1
done
kill -- -$!
[ "$kept" = 1 ] || { echo "FAILED: results are not saved before the end"; exit 1; }
