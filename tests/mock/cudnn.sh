#!/usr/bin/env bash
# Convolutions by cuDNN, with the mock's libraries. Their results must match those of ampc's own kernels, and saved
# plans must give the same bytes. If cuDNN cannot be used, ampc's kernels run, with one note.
#   cudnn.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
mock=$(realpath "$3")
cat >"$work/job.amp" <<'AMP'
data images(n: int) { return synthetic(n, shape=[16, 12, 12]), synthetic(n, shape=[], dtype=i64, low=0, high=3) }
model net = Sequential(
  Conv2d(16, 32, 3, padding=1), ReLU(), Conv2d(32, 32, 3, padding=2, dilation=2, groups=2), ReLU(),
  Conv2d(32, 16, 3, stride=2, bias=false), ReLU(), Conv2d(16, 16, 1), AdaptiveAvgPool2d(1), Flatten(), Linear(16, 3))
optimizer opt = SGD(net, lr=0.05, momentum=0.9)
precision f16
train x, y in images(64) with batch=8 { minimize cross_entropy(net(x), y) with opt }
AMP

# run NAME OPTIONS...: four steps; NAME.log, NAME.pt, counters in NAME.report
run() {
  local name=$1
  shift
  XDG_CACHE_HOME=${cache:-$work/cache} LD_LIBRARY_PATH=${libraries:-$mock} MOCK_CUDA_REPORT=$work/$name.report \
    LD_PRELOAD=${preload:-} timeout 500 "$amp" train --device cuda --seed 1 --steps 4 --log 1 --save "$work/$name.pt" "$@" "$work/job.amp" \
    >"$work/$name.log" 2>&1 || { cat "$work/$name.log" && failed "$name: exit status"; }
  [ "$(sed -n 's/^held //p' "$work/$name.report")" = 0 ] || failed "$name: objects were not freed"
}
convolutions() { sed -n 's/^convolutions_run //p' "$work/$1.report"; }
notes() { grep -c '^note: ' "$work/$1.log"; }

hiding_library "$work/hide.so" libcudnn

run cudnn
[ "$(convolutions cudnn)" -ge 40 ] || failed "cuDNN computes $(convolutions cudnn) convolutions"
[ "$(ls "$work/cache/ampc" | grep -c '\.cudnn$')" -ge 8 ] || failed "plans are not kept"
run kept
same "plans that were kept" "$work/cudnn.pt" "$work/kept.pt"
[ "$(convolutions kept)" = "$(convolutions cudnn)" ] || failed "plans that were kept are not used"
for plan in "$work"/cache/ampc/*.cudnn; do printf x >>"$plan"; done
run damaged
mkdir "$work/full" && cp -r "$work/cache/ampc" "$work/full"
for plan in "$work"/full/ampc/*.cudnn; do rm "$plan" && mkdir "$plan"; done # a folder cannot be replaced
cache=$work/full run unkept
[ "$(grep -c 'plans of cuDNN are not cached' "$work/unkept.log")" = 1 ] || failed "plans that cannot be saved: no single note"
same "plans that were damaged are made anew" "$work/cudnn.pt" "$work/damaged.pt"

run own --no-cudnn
[ "$(convolutions own)" = 0 ] || failed "--no-cudnn: $(convolutions own) convolutions by cuDNN"
[ "$(notes own)" = 0 ] || failed "--no-cudnn needs no note"
sed -n 's/.* step \(.*\) loss \([^ ]*\) .*/\1 \2/p' "$work/cudnn.log" >"$work/a"
sed -n 's/.* step \(.*\) loss \([^ ]*\) .*/\1 \2/p' "$work/own.log" >"$work/b"
paste -d' ' "$work/a" "$work/b" | awk '{ d = $2 - $4; if (d < 0) d = -d; n++ } !(d <= 0.002 * $4) { bad = 1; print } END { exit bad || n != 4 }' ||
  failed "losses by cuDNN and by our own kernels"
cmp -s "$work/cudnn.pt" "$work/own.pt" && failed "both give the same bits: was only one of them used?"

# falls_back NAME PATTERN: one note, and the bytes of ampc's own kernels
falls_back() {
  rm -rf "$work/cache"
  run "$1"
  [ "$(notes "$1")" = 1 ] || failed "$1: $(notes "$1") notes"
  grep -qE "^note: .*own kernels, not by cuDNN: $2" "$work/$1.log" || { cat "$work/$1.log" && failed "$1: not the expected note"; }
  same "$1" "$work/own.pt" "$work/$1.pt"
}
preload=$work/hide.so falls_back missing \
  'libcudnn\.so\.9 is not on this machine: install cuDNN 9 .*nvidia-cudnn-cu13.*--cuda-path'
grep -Eq 'driver|toolkit' <(grep '^note' "$work/missing.log" | sed 's/, or say.*//') &&
  failed "the note must not advise to install a driver or toolkit"
MOCK_DNN_VERSION=80907 falls_back too_old 'libcudnn\.so\.9 is cuDNN 80907: version 9'
MOCK_DNN_START=1001 falls_back no_start 'cuDNN does not start: CUDNN_STATUS_NOT_INITIALIZED'
MOCK_DNN_ENGINES=0 falls_back no_engine 'it names no engine'
MOCK_DNN_FROM=7 MOCK_DNN_SIZE=3000 falls_back no_size 'its engine 7: CUDNN_STATUS_NOT_SUPPORTED'
MOCK_DNN_ENGINES=1 falls_back nondeterministic 'its engine 0 is not deterministic'
mkdir "$work/empty"
cp -P "$mock"/*.so* "$work/empty"
rm "$work/empty/libcudnn.so.9"
echo 'int ampc_nothing;' | cc -shared -fPIC -x c - -o "$work/empty/libcudnn.so.9"
libraries=$work/empty falls_back damaged_library 'libcudnn\.so\.9 has no function cudnn'

# An engine that fails at its first call is replaced by the next one. A note says so once, and the choice is saved.
# tells NAME NOTES PATTERN: there are NOTES notes, and one of them names such an engine
tells() {
  [ "$(notes "$1")" = "$2" ] && grep -q "$3: its engine [0-9]* fails: CUDNN_STATUS_EXECUTION_FAILED" "$work/$1.log" ||
    { cat "$work/$1.log"; failed "$1: a call that fails"; }
}
rm -rf "$work/cache"
MOCK_DNN_REFUSES=5 run fails
tells fails 2 'by another engine of cuDNN'
same "another engine" "$work/cudnn.pt" "$work/fails.pt"
[ "$(convolutions fails)" = "$(convolutions cudnn)" ] || failed "another engine: $(convolutions fails) convolutions"
MOCK_DNN_REFUSES=5 run fails_again
[ "$(notes fails_again)" = 1 ] || { cat "$work/fails_again.log"; failed "the engine that fails is kept"; }
same "another engine, kept" "$work/cudnn.pt" "$work/fails_again.pt"

# If all engines fail, ampc's own kernels take over, and no plan is saved.
rm -rf "$work/cache"
MOCK_DNN_REFUSES=-1 run fail_all
tells fail_all 2 "by the program's own kernels, not by cuDNN"
same "all engines fail" "$work/own.pt" "$work/fail_all.pt"
find "$work/cache" -name '*.cudnn' | grep -q . && failed "plans that fail are kept"
finish
