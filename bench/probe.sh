#!/usr/bin/env bash
# Prints the time of a step with probes (`--probe-every 1`) and of a plain step, on this machine's CPU. It is the time
# that STEPS further steps take, so building and loading do not count. Minimum of 3 runs.
#   bench/probe.sh AMP [STEPS] job.amp...
set -euo pipefail
amp=$(realpath "$1")
shift
steps=20
[[ $1 =~ ^[0-9]+$ ]] && steps=$1 && shift

seconds() { # seconds N OPTION...: microseconds of a run of N steps
  local n=$1 begin end
  shift
  begin=$(date +%s%N)
  "$amp" train --device cpu -q --steps "$n" --limit-batches "$n" "$@" >/dev/null 2>&1
  end=$(date +%s%N)
  echo $(((end - begin) / 1000))
}

step() { # step JOB OPTION...: microseconds of one step
  local job=$1 best=999999999 few many
  shift
  seconds 1 "$@" "$job" >/dev/null # builds the kernels and fills the cache
  for _ in 1 2 3; do
    few=$(seconds 1 "$@" "$job")
    many=$(seconds $((1 + steps)) "$@" "$job")
    ((many - few < best)) && best=$((many - few))
  done
  echo $((best / steps))
}

printf '%-24s %10s %10s %6s\n' job "plain us" "probed us" ratio
for job in "$@"; do
  plain=$(step "$job")
  looked=$(step "$job" --probe-every 1)
  printf '%-24s %10d %10d %6.2f\n' "$(basename "$job" .amp)" "$plain" "$looked" "$(bc -l <<<"$looked / $plain")"
done
