#!/usr/bin/env bash
# Tests kept.py on tests of its own, in a tree of its own: which change of which input makes a test run again.
#   kept.sh
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{build/tests,tests/room,models,docs}
cp "$(dirname "$(realpath "$0")")/kept.py" "$work/tests/"
cd "$work"
touch tests/room/{run.sh,helper} docs/page models/job build/libampcrt.a
printf 'echo %s\n' one | tee build/ampc build/amp >/dev/null
printf 'reads\tdocs\t\nfree\talways\t\nplain\t\t\ntold\t\tcat build/telling\n' >build/tests/reads.tsv
for part in $(cd tests && python3 -Bc 'import kept; print(*kept.PARTS)'); do mkdir -p "build/${part/\*/program}"; done
tells() { printf '%032d job\n' "$1" >build/telling; }
tells 1
# what a failed test prints may look like results of other tests
printf '%s ........   Passed    1.00 sec\n' '  1/2 Test #1: unknown' '  1/99 Test #1: free' >nested
cat >build/CTestTestfile.cmake <<EOF
add_test(plain sh -c "echo x >>$work/plain" $work/tests/room/run.sh $work/build/ampc)
add_test(linked sh -c "echo x >>$work/linked" $work/build/amp)
add_test(told sh -c "echo x >>$work/told" $work/build/ampc)
add_test(reads sh -c "echo x >>$work/reads" $work/build/ampc)
add_test(free sh -c "echo x >>$work/free")
add_test(fails sh -c "echo x >>$work/fails; cat $work/nested; false")
EOF

# runs NAME...: kept.py runs these tests and no other
runs() {
  local ran
  rm -f plain linked reads free fails told
  tests/kept.py --share share build >out 2>&1 || true
  ran=$(find . -maxdepth 1 -name '[plrft]*' -type f -printf '%f\n' | sort | paste -sd ' ')
  ! grep -q Traceback out && [ "$ran" = "$*" ] && return
  echo "FAILED: ran $ran instead of $*, after: $change"
  cat out
  exit 1
}
change=nothing
runs fails free linked plain reads told
runs fails free
change="a file in the folder of the script" && echo x >tests/room/helper
runs fails free plain
change="READS" && echo x >docs/page
runs fails free reads
change="the program ampc" && echo x >>build/ampc
runs fails free plain reads
change="what the job takes from the compiler" && tells 2
echo x >>build/ampc
runs fails free plain reads told
change="a part of the program" && echo x >build/tests/CMakeFiles/simt_check.dir/object
echo x >>build/ampc
runs fails free plain reads told
change="nothing is told" && echo 'exit 1' >build/telling
echo x >>build/ampc
runs fails free plain reads told
change="a library" && echo x >build/libampcrt.a
runs fails free linked
change="a model" && echo x >models/job
runs fails free linked plain reads told
change="a variable" && export OMP_NUM_THREADS=1
runs fails free linked plain reads told
change="another key" && export TESTS_KEY=1
runs fails free linked plain reads told
change="nothing, and an earlier state" && unset TESTS_KEY OMP_NUM_THREADS
runs fails free
echo 'set_tests_properties(linked plain reads PROPERTIES LABELS "full;share")' >>build/CTestTestfile.cmake
change="another day" && export TESTS_KEY=2
AMPC_SHARE=1/3 runs fails free linked told
AMPC_SHARE=2/3 runs fails free plain
AMPC_SHARE=3/3 runs fails free reads
earlier=$(date -d '2 days ago' +%s)
git init -q . && git add tests
GIT_COMMITTER_DATE="$earlier +0000" git -c user.name=x -c user.email=x commit -qm x
change="the own file of a test of the second share" && echo x >tests/room/run.sh && export TESTS_KEY=3
AMPC_SHARE=1/3 runs fails free linked plain told
