#!/usr/bin/env bash
# What a GPU that is lent for 15 minutes should tell. Everything that needs no GPU is done before.
#   slot.sh [BUILD] prepare   here: writes BUILD/slot.tar.gz: programs, libraries, data, kernels for sm_90
#   slot.sh [BUILD] 1         there: parts 1 to 3, in less than 8 minutes
#   slot.sh [BUILD] 2         there: parts 4 to 7
#   slot.sh report FOLDER...  prints a table of the results; a FOLDER has results, or archives of them
# The parts, with seconds:
#   1   80  amp selftest: attention by own kernels, and by cuDNN with two repairs
#   2   40  amp selftest: mnist_cnn in f16, bf16, f32
#   3  150  steps and single commands of gpt2, gpt2 with dropout, bert_large: own kernels, cuDNN
#   4  150  torch.compile of the same nets
#   5  150  steps and memory of five nets in f32, tf32 and 16 bits
#   6   60  compute-sanitizer: one layer of gpt2 with dropout, one of bert_large
#   7   60  single commands of resnet50
# Each result is a file in RESULTS. A part that ends, fails or exceeds its time leaves the others alone. A part that is
# done is skipped, so after a stop the same call goes on. It also skips each file that exists, even if a measurement
# failed: to repeat it, remove the file. After each part, the files are also packed into OUT, if that is set.
# Calls 1 and 2 need BUILD/slot.tar.gz, the sources, NVIDIA's libraries and, for PyTorch, PYTHON; no network.
# NVRTC of the same version (CUDA_PATH selects it) finds the kernels, any other compiles them again. Variables, with
# their defaults, in addition to those of gpu.sh:
#   RESULTS  the folder of the results (bench/results/slot)
#   OUT      a folder for slot-1.tar.gz and slot-2.tar.gz, the results of the calls
#   LIMITS   seconds of parts 1 to 7;  CALL  seconds of a call (480)
#   OP       the op of part 1 (attention)
set -euo pipefail
place=build
[ $# -eq 0 ] || [[ $1 =~ ^(prepare|1|2|part|report)$ ]] || { place=$1 && shift; }
word=${1:-}
shift $(($# > 0))
export RESULTS=${RESULTS:-bench/results/slot} WARM=${WARM:-5} STEPS=${STEPS:-25} DATA=none
built=$place/slot
[ "$word" != prepare ] || built=$place
. "$(dirname "$0")/gpu.sh" "$built" functions # goes to the root of the sources
predict() { :; }                              # not in the time of the GPU
slot=$results packed=$(realpath -m "$place/slot") archive=$place/slot.tar.gz
export RESULTS=$slot XDG_CACHE_HOME=$packed/cache
read -ra limits <<<"${LIMITS:-80 40 150 150 150 60 60}"
attention="gpt2_dropout:bf16 bert_large:f16 gpt2:bf16"
types="mnist_cnn:f16 efficientnet_b7:f16 $(for net in resnet50 bert_large gpt2 mnist_cnn efficientnet_b7; do echo "$net:tf32 $net:f32"; done)"

# ---- here -----------------------------------------------------------------------------------------
make_pack() {
  local precision
  [ -x "$build/bench_steps" ] && [ -x "$build/amp" ] || stop 2 "$build has no bench_steps and amp: build them"
  rm -rf "$packed" "$archive"
  pack "$packed"
  results=$packed pairs="$attention $types resnet50:f16"
  prepare sm_90
  pairs=${attention% *}
  AMPC_ATTENTION=r1r2 prepare sm_90
  find_net mnist_cnn
  for precision in f16 bf16 f32; do # what amp selftest compiles
    for more in "" opt.accumulate=2; do
      "${ours[@]}" "$build/bench_steps" --compile sm_90 "${consts[@]}" . 1 1 "$job" train.batch=32 "precision=$precision" $more
    done
  done
  tar -C "$place" -czf "$archive" slot
  [ "$(stat -c %s "$archive")" -le $((64 << 20)) ] || stop 1 "$archive has more than 64 MiB"
  du -sh "$archive"
}

# ---- there: the parts -----------------------------------------------------------------------------
tell() { # tell "STATUS..." FILE COMMAND...: keeps all output, if the command exits with one of the statuses
  local good=" $1 " file=$slot/$2 status=0
  shift 2
  [ ! -e "$file" ] || return 0
  timeout "$each" "$@" >"$file.new" 2>&1 &
  wait $! || status=$?
  [[ $good == *" $status "* ]] || { tail -n 3 "$file.new" && echo "${file##*/}: status $status" && return 1; }
  mv "$file.new" "$file"
}

measure_in() { # measure_in FOLDER PAIRS: as gpu.sh does, in a folder of its own
  results=$slot/$1 pairs=$2
  mkdir -p "$results"
  ln -sfn "$packed/data" "$results/data"
  measure_pairs
}

part_1() {
  local bad=0
  each=$((limits[0] / 3))
  for how in own r1r2 r2b; do
    AMPC_ATTENTION=$how tell "0 5" "1.$how.txt" "${ours[@]}" "$packed/amp" selftest --device "$device" --brief --filter "${OP:-attention}" || bad=1
  done
  return $bad
}

part_2() {
  local bad=0
  results=$packed each=$((limits[1] * 2 / 3))
  find_data
  find_net mnist_cnn
  for precision in f16 bf16 f32; do
    tell "0 5" "2.$precision.txt" "${ours[@]}" "$packed/amp" selftest --device "$device" --brief --filter ceil --verbose \
      --set train.batch=32 --set "precision=$precision" "${consts[@]}" "$job" || bad=1
  done
  return $bad
}

part_3() {
  each=$((limits[2] * 2 / 5)) peers=
  export AMPC_ATTENTION
  AMPC_ATTENTION=own && measure_in 3.own "${attention% *}"
  AMPC_ATTENTION=r1r2 && measure_in 3.r1r2 "${attention% *}"
  AMPC_ATTENTION=own && measure_in 3.own gpt2:bf16
}

part_4() {
  each=$((limits[3] / 2)) peers=compile commands=
  mkdir -p "$slot/4"
  cp -n "$slot"/3.own/*.ampc.json "$slot/4/" 2>/dev/null || true
  AMPC_ATTENTION=own measure_in 4 "$attention"
}

part_5() {
  each=$((limits[4] / 4)) peers= commands=
  AMPC_ATTENTION=own measure_in 5 "$types"
}

part_6() {
  local tool bad=0 scratch
  tool=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || { echo "skipped: no compute-sanitizer" >"$slot/6.txt" && return; }
  results=$packed each=$((limits[5] / 2))
  scratch=$(mktemp -d)
  find_data
  for net in gpt2_dropout:LAYERS bert_large:DEPTH; do
    find_net "${net%:*}"
    AMPC_ATTENTION=own tell "0 9" "6.${net%:*}.txt" "${ours[@]}" "$tool" --tool memcheck --error-exitcode 9 "$packed/bench_steps" --device "$device" \
      "${consts[@]}" -D "${net#*:}=1" "$scratch" 1 1 "$job" train.batch=2 || bad=1
  done
  rm -rf "$scratch"
  return $bad
}

part_7() {
  each=${limits[6]} peers=
  measure_in 7 resnet50:f16
}

# ---- there: the calls -----------------------------------------------------------------------------
run_part() { # run_part N: leaves N.done, or N.why with the reason
  local limit=${limits[$1 - 1]} rest=$((${CALL:-480} - SECONDS)) status=0 begin=$SECONDS
  [ ! -e "$slot/$1.done" ] || return 0
  [ "$limit" -le $rest ] || limit=$rest
  [ "$limit" -ge 1 ] || { echo "no time was left in the call" >"$slot/$1.why" && return 0; }
  echo "slot.sh: part $1, at most $limit s" >&2
  echo "interrupted" >"$slot/$1.why"
  timeout -k 10 "$limit" bench/slot.sh "$place" part "$1" >"$slot/$1.log" 2>&1 &
  wait $! || status=$?
  case $status in
  0) echo $((SECONDS - begin)) >"$slot/$1.done" && rm "$slot/$1.why" ;;
  124 | 137) echo "over its limit of $limit s" >"$slot/$1.why" ;;
  *) echo "status $status: $(tail -n 1 "$slot/$1.log")" >"$slot/$1.why" ;;
  esac
  [ -z "${OUT:-}" ] || tar -C "$slot" --exclude=data --exclude='work-*' -czf "$OUT/slot-$call.tar.gz" .
}

run_call() { # run_call PART...
  [ -x "$packed/amp" ] || tar --no-same-owner -C "$place" -xzf "$archive" || stop 2 "no $archive: run slot.sh prepare"
  mkdir -p "$slot"
  for part; do run_part "$part"; done
  "$python" bench/slot_report.py "$slot"
}

case $word in
prepare) make_pack ;;
1) call=1 && run_call 1 2 3 ;;
2) call=2 && run_call 4 5 6 7 ;;
part) "part_$1" ;;
report) "$python" bench/slot_report.py "$@" ;;
*) stop 2 "unknown word ${word:-(none)}: one of prepare, 1, 2, report" ;;
esac
