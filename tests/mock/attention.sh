#!/usr/bin/env bash
# Attention by cuDNN in a job, with the mock's libraries. Its losses must match those of ampc's own kernel, which
# takes over with its own results if cuDNN is off or fails. Kept plans, -O0 and -O2 give the same bytes. `amp inspect
# --cudnn` must report which one is used.
#   attention.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
ampc=$1
mock=$(realpath "$3")
job=$source_dir/tests/mock/attention.amp

# run NAME OPTIONS...: 6 steps; NAME.log, NAME.pt, counters in NAME.report
run() {
  local name=$1
  shift
  XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$mock MOCK_CUDA_REPORT=$work/$name.report timeout 500 "$amp" train \
    --device cuda --seed 1 --steps 6 --log 1 --save "$work/$name.pt" "$@" "$job" >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log" && failed "$name: exit status"; }
  [ "$(sed -n 's/^held //p' "$work/$name.report")" = 0 ] || failed "$name: objects were not freed"
}
graphs() { sed -n 's/^graphs_run //p' "$work/$1.report"; }
kernels() { sed -n 's/^kernels_run //p' "$work/$1.report"; }
# close_losses WHAT A B: compares the losses of two runs
close_losses() {
  local name
  for name in "$2" "$3"; do sed -n 's/.* step \(.*\) loss \([^ ]*\) .*/\1 \2/p' "$work/$name.log" >"$work/$name.losses"; done
  paste -d' ' "$work/$2.losses" "$work/$3.losses" |
    awk '{ d = $2 - $4; if (d < 0) d = -d; n++ } !(d <= 0.002 * $4) { bad = 1; print } END { exit bad || n != 6 }' ||
    failed "$1: losses of $2 and $3"
}

# both CHOICE OPTIONS...: compares cuDNN's attention, as AMPC_ATTENTION chooses it, with ampc's own kernel. Dropout's
# draws must be equal, otherwise the losses would differ.
both() {
  export AMPC_ATTENTION=$1
  shift
  local set="$AMPC_ATTENTION $*"
  run cudnn "$@"
  # 6 steps, both ways; 2 batches of eval
  [ "$(graphs cudnn)" -ge 14 ] || failed "$set: cuDNN computes attention $(graphs cudnn) times"
  run kept "$@"
  same "$set: plans that were kept" "$work/cudnn.pt" "$work/kept.pt"
  run unfused -O0 "$@"
  same "$set: -O0" "$work/cudnn.pt" "$work/unfused.pt"
  [ "$(graphs unfused)" = "$(graphs cudnn)" ] || failed "$set, -O0: $(graphs unfused) times by cuDNN"
  run own --no-cudnn "$@"
  [ "$(graphs own)" = 0 ] || failed "$set, --no-cudnn: $(graphs own) times by cuDNN"
  # With cuDNN the sums of dy y are not computed either. Masks and dropout are kernels beside cuDNN.
  [ "$AMPC_ATTENTION" ] || [ "$(kernels own)" -ge $(($(kernels cudnn) + $(graphs cudnn) + 6)) ] ||
    failed "$(kernels cudnn) kernels and $(graphs cudnn) graphs of cuDNN, without it $(kernels own) kernels"
  close_losses "$set" cudnn own
  cmp -s "$work/cudnn.pt" "$work/own.pt" && failed "$set: both give the same bits: was only one of them used?"
  export -n AMPC_ATTENTION
}
both "" -D P=0
for choice in r1r2 r2b; do
  both $choice -D P=0.2
  both $choice -D P=0.2 -D MASKED=true
done
# two kinds without dropout; forward with dropout, with a mask; backward of each choice
[ "$(ls "$work/cache/ampc" | grep -c '\.cudnn$')" -ge 8 ] || failed "plans are not kept"

# Otherwise own kernels compute attention with dropout or a mask. The text of kernels and plan does not depend on it.
for choice in "" own; do
  AMPC_ATTENTION=$choice run usual -D P=0.2 -D MASKED=true
  [ "$(graphs usual)" = 0 ] || failed "\"$choice\": $(graphs usual) times by cuDNN"
  same "\"$choice\"" "$work/own.pt" "$work/usual.pt"
done
for choice in "" own r1r2 r2b; do
  AMPC_ATTENTION=$choice "$ampc" --target=sm_90 --emit=cuda -D P=0.2 -D MASKED=true "$job" >"$work/text.$choice" ||
    failed "ampc, $choice"
  cmp -s "$work/text." "$work/text.$choice" || failed "$choice: another text"
done
for program in "$ampc --emit=plan" "$amp inspect" "$amp train"; do
  AMPC_ATTENTION=r3 $program "$job" >"$work/out" 2>"$work/err" && failed "$program: AMPC_ATTENTION=r3"
  grep -q "AMPC_ATTENTION is r3; it may be own, r1r2 or r2b" "$work/err" ||
    { cat "$work/err" && failed "$program: not the expected error"; }
done

# A version that would break the context when the step is replayed must not compute gradients: 24 keys are no tile.
rm -rf "$work/cache"
MOCK_DNN_VERSION=90900 run faulty
[ "$(grep -c "^note: attention's gradients.* by the program's own kernels, not by cuDNN: cuDNN 9\.9\.0 reads outside .*9\.10\.2" "$work/faulty.log")" = 1 ] ||
  { cat "$work/faulty.log" && failed "cuDNN 9.9.0: not the expected note"; }
run sound
[ "$(graphs faulty)" -ge 8 ] && [ "$(graphs faulty)" -lt "$(graphs sound)" ] ||
  failed "cuDNN 9.9.0: $(graphs faulty) times by cuDNN, $(graphs sound) by 9.19.1"
close_losses "cuDNN 9.9.0" sound faulty
# Up to 9.15.0 the lengths of the images help: the same numbers, by cuDNN.
rm -rf "$work/cache"
MOCK_DNN_VERSION=91500 run lengths
[ "$(graphs lengths)" = "$(graphs sound)" ] || failed "cuDNN 9.15.0: $(graphs lengths) times by cuDNN"
same "cuDNN 9.15.0" "$work/sound.pt" "$work/lengths.pt"

# attentions NAME OPTIONS...: what inspect reports for the three of them
hiding_library "$work/no_nvrtc.so" libnvrtc
hiding_library "$work/no_driver.so" libcuda.so
hiding_library "$work/no_cudnn.so" libcudnn
attentions() {
  local name=$1
  shift
  LD_LIBRARY_PATH=$mock LD_PRELOAD="$work/no_nvrtc.so ${hidden:-}" "$amp" inspect --cudnn --json "$@" "$job" >"$work/json" 2>"$work/err" ||
    failed "inspect --cudnn, $name"
  python3 - "$work/json" >"$work/$name" <<'PY'
import json, sys
for block in json.load(open(sys.argv[1]))["blocks"]:
    for c in block["commands"]:
        if any(n["op"].startswith("attention") for n in c["nodes"]): print(c["library"])
PY
}
# says NAME FORWARD BACKWARD: patterns; the third attention is that of eval
says() {
  paste -s -d'|' "$work/$1" | grep -qE "^$2\|$3\|$2\$" || { cat "$work/$1" && failed "inspect --cudnn, $1"; }
}
attentions sound
says sound "cuDNN's engine [0-9]+" "cuDNN's engine [0-9]+"
MOCK_DNN_VERSION=90900 attentions faulty
says faulty "cuDNN's engine [0-9]+" "own kernels: cuDNN 9\.9\.0 reads outside .*: install cuDNN 9\.10\.2 or newer"
attentions f32 --set precision=f32
says f32 "own kernels: its operands are not 16 bits wide" "own kernels: its operands are not 16 bits wide"
attentions usual -D P=0.2 -D MASKED=true
says usual "own kernels: ampc's own kernel is predicted to be faster.*" "own kernels: cuDNN computes wrong gradients.*"
AMPC_ATTENTION=own attentions asked -D P=0.2 -D MASKED=true
says asked "own kernels: AMPC_ATTENTION=own .*" "own kernels: AMPC_ATTENTION=own .*"
AMPC_ATTENTION=r2b attentions chosen -D P=0.2 -D MASKED=true
says chosen "cuDNN's engine [0-9]+" "cuDNN's engine [0-9]+"
job=$source_dir/tests/simt/jobs/groups.amp attentions groups
[ "$(sort -u "$work/groups")" = "own kernels: its keys and values have fewer heads than its queries" ] ||
  { cat "$work/groups" && failed "inspect --cudnn, groups"; }
hidden=$work/no_cudnn.so attentions absent
says absent "own kernels: no cuDNN" "own kernels: no cuDNN"
MOCK_DNN_ENGINES=0 hidden=$work/no_driver.so attentions no_driver
says no_driver "cuDNN or own kernels: .* NVIDIA's driver, which is not here" "cuDNN or own kernels: .* NVIDIA's driver, which is not here"
MOCK_DNN_ENGINES=0 attentions no_engine
says no_engine "own kernels: it names no engine" "own kernels: it names no engine"

rm -rf "$work/cache"
AMPC_ATTENTION=r1r2 MOCK_DNN_REFUSES=-1 run fails -D P=0.2 -D MASKED=true
same "cuDNN fails" "$work/own.pt" "$work/fails.pt"
grep -q "^note: attention.* by the program's own kernels, not by cuDNN: its engine [0-9]* fails" "$work/fails.log" ||
  { cat "$work/fails.log" && failed "not the expected note"; }
finish
