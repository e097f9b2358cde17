#!/usr/bin/env bash
# Attention by cuDNN in a job, with the mock's libraries: the losses of our own kernel, which takes over with its own bytes where
# cuDNN is not asked or fails; plans that are kept; -O0 and -O2 alike.
#   attention.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
mock=$(realpath "$3")
job=$source_dir/tests/mock/attention.amp

# run NAME OPTIONS...: 6 steps; NAME.log, NAME.pt, counters in NAME.report
run() {
  local name=$1
  shift
  XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$mock MOCK_CUDA_REPORT=$work/$name.report timeout 500 "$amp" train \
    --device cuda --seed 1 --steps 6 --log 1 --save "$work/$name.pt" "$@" "$job" >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log" && failed "$name: exit status"; }
  [ "$(sed -n 's/^held //p' "$work/$name.report")" = 0 ] || failed "$name: objects were not given back"
}
graphs() { sed -n 's/^graphs_run //p' "$work/$1.report"; }

# The draws of dropout are those of our kernel, or losses would not be alike.
for set in "-D P=0" "-D P=0.2" "-D P=0.2 -D MASKED=true"; do
  run cudnn $set
  [ "$(graphs cudnn)" -ge 20 ] || failed "$set: cuDNN computes attention $(graphs cudnn) times" # 6 both ways, 8 batches of eval
  run kept $set
  same "$set: plans that were kept" "$work/cudnn.pt" "$work/kept.pt"
  run unfused -O0 $set
  same "$set: -O0" "$work/cudnn.pt" "$work/unfused.pt"
  [ "$(graphs unfused)" = "$(graphs cudnn)" ] || failed "$set, -O0: $(graphs unfused) times by cuDNN"
  run own --no-cudnn $set
  [ "$(graphs own)" = 0 ] || failed "$set, --no-cudnn: $(graphs own) times by cuDNN"
  for name in cudnn own; do sed -n 's/.* step \(.*\) loss \([^ ]*\) .*/\1 \2/p' "$work/$name.log" >"$work/$name.losses"; done
  paste -d' ' "$work/cudnn.losses" "$work/own.losses" |
    awk '{ d = $2 - $4; if (d < 0) d = -d; n++ } !(d <= 0.002 * $4) { bad = 1; print } END { exit bad || n != 6 }' ||
    failed "$set: losses by cuDNN and by our own kernel"
  cmp -s "$work/cudnn.pt" "$work/own.pt" && failed "$set: both ways have the same bits: is it one way?"
done
[ "$(ls "$work/cache/ampc" | grep -c '\.cudnn$')" -ge 6 ] || failed "plans are not kept" # forward and backward, of three kinds

rm -rf "$work/cache"
MOCK_DNN_REFUSES=-1 run fails -D P=0.2 -D MASKED=true
same "cuDNN fails" "$work/own.pt" "$work/fails.pt"
grep -q "^note: attention.* by the program's own kernels, not by cuDNN: its engine [0-9]* fails" "$work/fails.log" ||
  { cat "$work/fails.log" && failed "not the note that is expected"; }
finish
