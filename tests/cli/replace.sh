#!/usr/bin/env bash
# Which files -o and --deps overwrite, and which not. --build-line writes nothing.
#   replace.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
cp "$source_dir/tests/emit/train.amp" job.amp
sed 's/lr=[0-9.]*/lr=0.012345/' job.amp >other.amp
cmp -s job.amp other.amp && failed "the two jobs are equal"
kept() { # kept NAME PATTERN FILE COMMAND...: the command is refused and leaves the file unchanged
  local name=$1 pattern=$2 file=$3
  shift 3
  cp -a "$file" before
  refuses "$name" 3 "$pattern" "$@"
  same "$name: the file" before "$file"
}

for kind in c cu; do
  emit=("$ampc" -o "job.$kind")
  passes "$kind: a new file" "${emit[@]}" job.amp
  passes "$kind: the same again" "${emit[@]}" job.amp
  passes "$kind: of another job" "${emit[@]}" other.amp
  passes "$kind: without main" "${emit[@]}" --library job.amp
  passes "$kind: from stdout" "${emit[@]}" --emit="${kind/cu/cuda}" -o - job.amp
  "$ampc" --emit="${kind/cu/cuda}" job.amp >"job.$kind" || failed "$kind: to stdout"
  passes "$kind: over stdout's" "${emit[@]}" other.amp
  for edit in '$a\/* mine *\/' '1s/^/ /' '3s/[0-9a-f]\{16\}/0123456789abcdef/' '$d' 's/$/\r/'; do
    "${emit[@]}" --force job.amp || failed "--force"
    sed -i "$edit" "job.$kind"
    kept "$kind: edited by $edit" "was edited since" "job.$kind" "${emit[@]}" job.amp
  done
  "${emit[@]}" --force job.amp || failed "--force"
  sed -i 3d "job.$kind"
  kept "$kind: without the line" "does not look as if ampc" "job.$kind" "${emit[@]}" job.amp
  printf 'int main(void) { return 0; }\n' >"job.$kind"
  kept "$kind: not ampc's" "does not look as if ampc.*" "job.$kind" "${emit[@]}" job.amp
  "${emit[@]}" job.amp 2>err
  grep -q -- 'overwrite it with --force' err || failed "$kind: no cure"
  passes "$kind: --force" "${emit[@]}" --force job.amp
  passes "$kind: then without" "${emit[@]}" other.amp
  : >"job.$kind"
  passes "$kind: over an empty file" "${emit[@]}" job.amp
done
ln -s job.c link.c
sed -i '5s/^/ /' job.c
kept "through a link" "was edited" job.c "$ampc" -o link.c job.amp
for kind in plan params memory ast graph; do
  passes "$kind: a new file" "$ampc" --emit=$kind -o text job.amp
  passes "$kind: the same again" "$ampc" --emit=$kind -o text job.amp
  kept "$kind: over a job" "does not look as if ampc" other.amp "$ampc" --emit=$kind -o other.amp job.amp
  rm text
done
[ "$(id -u)" -eq 0 ] || { chmod 0 job.cu; refuses "unreadable" 3 "cannot read job.cu" "$ampc" -o job.cu job.amp; chmod 600 job.cu; }

# ---- --deps ----------------------------------------------------------------------------------------------
passes "--deps: a new file" "$ampc" -o new.c --deps deps job.amp
passes "--deps: again" "$ampc" -o new.c --deps deps other.amp
kept "--deps over a job" "does not look as if ampc" other.amp "$ampc" -o new.c --deps other.amp job.amp
kept "--deps of another output" "does not look as if ampc" deps "$ampc" -o newer.c --deps deps job.amp
[ -e newer.c ] && failed "--deps refused: the output was written"
ln -s later.c link
for deps in later.c ./later.c "$PWD/later.c" link; do
  refuses "-o and --deps are one file, $deps" 2 'are both later\.c' "$ampc" -o later.c --deps "$deps" job.amp
done
passes "--deps --force" "$ampc" -o new.c --deps other.amp --force job.amp

# ---- --build-line ------------------------------------------------------------------------------------------
mkdir folder && cp job.amp folder && cd folder || exit 1
for options in "-o new.c" "-o new.cu" "--target=cpu --deps deps" "-o new.c --library -v --force"; do
  # shellcheck disable=SC2086 # options are words
  "$ampc" --build-line $options job.amp >../out 2>../err || failed "--build-line $options"
  [ "$(wc -l <../out)" -eq 1 ] && grep -Eq '^(cc|nvcc) ' ../out || failed "--build-line $options: what it prints"
  [ -s ../err ] && failed "--build-line $options: stderr"
done
[ "$(echo *)" = job.amp ] || failed "--build-line wrote: $(echo *)"
"$ampc" -o new.c job.amp && echo '/* mine */' >>new.c && cp new.c before
"$ampc" --build-line -o new.c job.amp >/dev/null || failed "--build-line of an edited file"
same "--build-line: the edit" before new.c
finish
