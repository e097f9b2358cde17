#!/usr/bin/env bash
# Starts check.c as ranks and looks at exit statuses and messages.
#   run.sh MPIRUN CHECK LIBRARY SHORT_LIBRARY calls|faults|slow
set -u
mpirun=$1 check=$2 library=$3 short=$4 part=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
mkdir -p "$work/tree/bin" "$work/tree/lib/ampc" # as installed
cp "$check" "$work/tree/bin/check" # this run's own, for nobody()
check=$work/tree/bin/check
# Open MPI: tests run as root in containers, and more ranks than cores
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export AMPC_MPI_LIBRARY=$library

failed() {
  echo "FAILED: $1"
  sed 's/^/    /' "$work/out" "$work/err"
  bad=1
}

# ends STATUS RANKS MESSAGE CASE...: runs the case. The job must exit with STATUS (any: not 0). Its ranks must print one
# error, which matches MESSAGE, or none if MESSAGE is empty.
ends() {
  local want=$1 ranks=$2 message=$3 got=0 errors
  shift 3
  "$mpirun" -n "$ranks" "$check" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
  errors=$(grep 'error: ' "$work/err")
  [ "$want" = any ] && [ $got -ne 0 ] && want=$got
  if [ "$got" != "$want" ]; then
    failed "$* with $ranks ranks: exit status $got instead of $want"
  elif [ "$(grep -c . <<<"$errors")" -gt 1 ] || ! grep -qxE "${message:+check: error: }$message" <<<"$errors"; then
    failed "$* with $ranks ranks: the only error should be '$message'"
  else
    echo "ok: $* with $ranks ranks${errors:+: $errors}"
  fi
}

nobody() { # no rank may be left
  local left=
  for _ in {1..100}; do
    left=$(pgrep -f "^$check ") || return 0
    sleep 0.1
  done
  failed "ranks are left: $left"
}

calls() {
  local n
  for n in 2 3 4; do
    ends 0 $n '' calls
    AMPC_MPI_LIBRARY=$short ends 0 $n '' calls
    ends 0 $n '' exchange
    ends 0 $n '' cores
    ends 2 $n 'the job differs between ranks: rank 0 on .* has `b = 2`, rank 1 on .* has `b = 3`' same 1
  done
  AMPC_MPI_LIBRARY=$short ends 0 2 '' exchange
  ends 2 3 'the job differs between ranks: rank 0 on .* has `b = 3`, rank 1 on .* has `b = 2`' same 0
  ends 3 3 'rank 1 on .*: no file 1' agree 1
}

begin() { # begin CASE...: starts 2 ranks that tell their process ids, and waits for these
  local i
  "$mpirun" -n 2 "$check" "$@" >"$work/out" 2>"$work/err" </dev/null &
  for i in {1..300}; do
    pids=$(awk '/^ready/ { print $2 }' "$work/out")
    [ "$(wc -w <<<"$pids")" = 2 ] && break
    sleep 0.1
  done
}

# The signal reaches all ranks, and MPI has not taken its handler.
signals() {
  local i
  begin signals
  kill -USR1 $!
  wait $! || failed "signals: exit status $?"
  for i in 0 1; do
    grep -q "rank $i got signal 10" "$work/out" || failed "signals: not at rank $i"
  done
}

# Time in which all ranks are stopped does not count.
paused() {
  begin paused 1 10
  kill -STOP $pids
  sleep 15
  kill -CONT $pids
  kill -USR1 $pids
  wait $! || failed "paused: exit status $?"
}

faults() {
  local other cure='install MPI .*'
  ends 5 3 'rank 0 on [^ ]* has not answered for 1 s, after 1 steps; the run ends. .*' stop 0 1
  ends any 3 '' die 1
  nobody
  ends 3 3 'rank 2 on [^ ]*: no such file' fails 2
  ends 3 2 'rank 0 on [^ ]*: no such file' fails 0
  ends 5 2 'all ranks answer, but data has not arrived for 1 s, .*: rank 0 .* receive of 1 .*, rank 1 .* gather of 4 .*' \
    crossed 0 1
  ends 5 3 'rank 1 on [^ ]*: .*: .*[Ii]nvalid rank.*' broken 1
  ends 0 3 '' late 1 0.5
  ends 0 3 '' busy 1 0.5
  signals
  AMPC_MPI_LIBRARY=$work/no.so ends 3 3 "this process was started as rank 0 .*, but $work/no.so, .* is not there: $cure" calls
  AMPC_MPI_LIBRARY=$check ends 3 2 "the library for ranks cannot be loaded: $check: .*; $cure" calls
  unset AMPC_MPI_LIBRARY
  ends 3 2 "this process was started as rank 0 .*, but libampcmpi.so, .* is not there: $cure" cores
  cp "$library" "$work/tree/bin" && ends 0 2 '' cores
  mv "$work/tree/bin/libampcmpi.so" "$work/tree/lib/ampc" && ends 0 2 '' cores
  export AMPC_MPI_LIBRARY=$library
  # a launcher of another MPI: the processes would be alone
  if "$mpirun" --version | grep -q 'Open MPI'; then other=PMI; else other=OMPI_COMM_WORLD; fi
  env ${other}_RANK=1 ${other}_SIZE=2 "$check" calls >"$work/out" 2>"$work/err"
  grep -q "error: the launcher started rank 1 (${other}_RANK), but .* sees rank 0 of 1: " "$work/err" || failed "other launcher"
  ends 2 1 'not started as a rank' calls
}

# nightly: many bytes, a job that is stopped for a time, a rank that does not start
slow() {
  ends 0 2 '' large
  ends 5 3 'rank 1 on [^ ]* has not answered for 2 s, .*' device 1 2
  paused
  # MPICH's mpirun kills the rank that does not start, and returns the status of either rank
  # shellcheck disable=SC2016
  "$mpirun" -n 1 sh -c '"$0" cores; echo $? >"$1"; exit 5' "$check" "$work/status" : -n 1 sleep 1000 >"$work/out" 2>"$work/err" &&
    failed "mpirun says that a job is good in which a rank does not start"
  [ "$(cat "$work/status")" = 5 ] && grep -q 'not all ranks have started within 300 s' "$work/err" || failed "a rank that does not start"
}

"$part"
nobody
exit $bad
