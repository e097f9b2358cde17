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
printf 'reads\tdocs\nfree\talways\nplain\t\n' >build/tests/reads.tsv
cat >build/CTestTestfile.cmake <<EOF
add_test(plain sh -c "echo x >>$work/plain" $work/tests/room/run.sh $work/build/ampc)
add_test(linked sh -c "echo x >>$work/linked" $work/build/amp)
add_test(reads sh -c "echo x >>$work/reads" $work/build/ampc)
add_test(free sh -c "echo x >>$work/free")
add_test(fails sh -c "echo x >>$work/fails; false")
EOF

# runs NAME...: kept.py runs these tests and no other
runs() {
  local ran
  rm -f plain linked reads free fails
  tests/kept.py build >out 2>&1 || true
  ran=$(find . -maxdepth 1 -name '[plrf]*' -type f -printf '%f\n' | sort | paste -sd ' ')
  [ "$ran" = "$*" ] && return
  echo "FAILED: ran $ran instead of $*, after: $change"
  cat out
  exit 1
}
change=nothing
runs fails free linked plain reads
runs fails free
change="a file in the folder of the script" && echo x >tests/room/helper
runs fails free plain
change="READS" && echo x >docs/page
runs fails free reads
change="the program ampc" && echo x >>build/ampc
runs fails free plain reads
change="a library" && echo x >build/libampcrt.a
runs fails free linked
change="a model" && echo x >models/job
runs fails free linked plain reads
change="a variable" && export OMP_NUM_THREADS=1
runs fails free linked plain reads
change="another key" && export TESTS_KEY=1
runs fails free linked plain reads
change="nothing, and an earlier state" && unset TESTS_KEY OMP_NUM_THREADS
runs fails free
