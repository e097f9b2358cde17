#!/usr/bin/env bash
# Kills runs (SIGKILL) at random moments, half of them while a checkpoint is being written,
# and resumes them. Each must write the bytes of a run that was not disturbed.
#   kill9.sh AMPC AMP RUNS
. "$(dirname "$0")/lib.sh"
runs=$3
RANDOM=${SEED:=$$}
echo "SEED=$SEED repeats these moments"

job=$source_dir/models/fashion_mnist/mlp.amp
train() { "$amp" train --device cpu --steps 200 --save-every 10 --quiet "$@" "$job"; }
now() { date +%s%3N; }

passes "an undisturbed run" train --save "$work/whole"
begin=$(now)
passes "the same again" train --save "$work/again"
all=$(($(now) - begin))
same "two runs agree" "$work/whole" "$work/again"
begin=$(now)
"$amp" train --device cpu --steps 1 --quiet "$job" >/dev/null 2>&1
start=$(($(now) - begin)) # time to read the data and load the kernels
[ $start -lt $all ] || start=0

# kill_at_time PID, kill_in_write PID: kill the process; the second one waits for a half-written
# file
kill_at_time() {
  sleep "$(awk -v ms=$((start + RANDOM % (all - start + 1))) 'BEGIN { print ms / 1000 }')"
  kill -9 "$1" 2>/dev/null
}
is_writing() { # the unfinished file has a longer name, or no name; then the process has it open
  local parts=("$work"/dir/run?*)
  [ -e "${parts[0]}" ] || readlink "/proc/$1/fd"/* 2>/dev/null | grep -q "^$work/dir/.*(deleted)$"
}
kill_in_write() {
  local wanted=$((1 + RANDOM % 4)) writes=0 before=0 # counts the writes that it observes, which are few on a busy machine
  while kill -0 "$1" 2>/dev/null; do
    if is_writing "$1"; then
      [ $before -eq 0 ] && writes=$((writes + 1)) && before=1
      [ $writes -eq $wanted ] && kill -9 "$1" 2>/dev/null && touch "$work/in_write" && return
    else
      before=0
    fi
  done
}

killed=0 left=0 in_write=0 with_checkpoint=0
for ((i = 0; i < runs; )); do
  rm -rf "$work/dir" "$work/in_write"
  mkdir "$work/dir"
  save=$work/dir/run
  "$amp" train --device cpu --steps 200 --save-every 10 --quiet --save "$save" "$job" \
    >"$work/out" 2>"$work/err" &
  pid=$!
  if [ $((i % 2)) -eq 0 ]; then kill_at_time $pid; else kill_in_write $pid; fi
  wait $pid 2>/dev/null
  [ $? -eq 137 ] || continue # the run had already ended: try another moment
  i=$((i + 1)) killed=$((killed + 1))
  [ -e "$work/in_write" ] && in_write=$((in_write + 1))
  [ -n "$(find "$work/dir" -name 'run?*')" ] && left=$((left + 1))
  resume=()
  [ -e "$save" ] && resume=(--resume "$save") && with_checkpoint=$((with_checkpoint + 1))
  train "${resume[@]}" --save "$save" >"$work/out" 2>"$work/err" || failed "run $i cannot be resumed"
  same "run $i ends with the same bytes" "$work/whole" "$save"
done
echo "$killed killed, $in_write of them inside a write, $with_checkpoint resumed from a checkpoint, $left left a part"
[ $in_write -gt 0 ] || failed "no run was killed inside a write"
[ $with_checkpoint -gt $((runs / 4)) ] || failed "too few runs had a checkpoint"
finish
