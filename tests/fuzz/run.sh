#!/usr/bin/env bash
# Fuzzes the front end and the emitters. The corpus starts with every .amp file of the repository and with jobs whose
# text tries to become code. Then the C of up to 60 inputs is compiled. From 600 SECONDS on, the time is real time. With
# less, the run makes ten new inputs per second of SECONDS, on any machine, and starts only from small files.
#   run.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
tests/built.sh asan fuzz_frontend ampc
corpus=build-asan/corpus
mkdir -p $corpus build-asan/found
short=
[ "$seconds" -ge 600 ] || short=1
find compiler tests models -name '*.amp' ${short:+-size -2} -print0 | while IFS= read -r -d '' file; do
  { printf 'A' && cat "$file"; } >"$corpus/$(echo "$file" | tr / _)"
done
tests/emit/hostile_text.py --write $corpus
[ -n "$short" ] || tests/errors/hostile.py --write $corpus # each input takes seconds
limit=-max_total_time=$seconds
[ -z "$short" ] || limit=-runs=$(($(find $corpus -type f | wc -l) + 10 * seconds))
# Mask 2 hides the compiler's messages; findings are still printed. libFuzzer would exit with 77 after a finding, which
# here means "skipped", so -error_exitcode sets 1.
build-asan/tests/fuzz_frontend -error_exitcode=1 "$limit" -timeout=200 -rss_limit_mb=2048 \
  -max_len=8192 -dict=tests/fuzz/words.dict -artifact_prefix=build-asan/found/ -close_fd_mask=2 \
  -print_final_stats=1 $corpus

# A sanitizer's report must not look like a refused job, so its exit status is another one.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=99 UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}exitcode=99

# only_own_text ERRORS: are all errors in the text of an own op, which the fuzzer may have changed?
only_own_text() {
  local places
  places=$(grep -aoE '^[^ :]+:[0-9]+:[0-9]+: (fatal )?error:' "$1") && ! grep -qv '^j\.amp:' <<<"$places"
}

# Compiled twice: as gnu11, and with trigraphs.
compiled=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
while IFS= read -r input; do
  [ $compiled -lt 60 ] || break
  tail -c +2 "$corpus/$input" >"$work/j.amp"
  status=0
  timeout 200 build-asan/ampc --target=cpu --emit=c "$work/j.amp" >"$work/j.c" 2>"$work/err" || status=$?
  [ $status -eq 0 ] ||
    { [ $status -lt 70 ] && continue; echo "FAILED: $input: ampc ends with $status"; tail -n 20 "$work/err"; exit 1; }
  for words in -std=gnu11 -trigraphs; do
    cc $words -fsyntax-only -Wall -Wno-unused -Wno-trigraphs -Werror=comment -Ibuild-asan/include "$work/j.c" 2>"$work/err" ||
      only_own_text "$work/err" ||
      { echo "FAILED: the C of $corpus/$input:"; head -5 "$work/err"; exit 1; }
  done
  compiled=$((compiled + 1))
done < <(ls -t $corpus)
echo "$compiled emitted programs compile"
[ $compiled -ge 10 ]
