#!/usr/bin/env bash
# Bad input of every kind: each gives one clear error and the right exit status, and changes no
# file.
#   bad_input.sh AMPC AMP
. "$(dirname "$0")/lib.sh"

d=$work/data
small_data "$d"
small_job "$d/job.amp"
job=$d/job.amp
train() { timeout 500 "$amp" train --device cpu "$@"; }
export -f train
export amp

# fresh DIR: writes the data again, so that one test can damage them
fresh() {
  rm -rf "$work/bad"
  cp -r "$d" "$work/bad"
  bad=$work/bad
}
plain() { gunzip -c "$d/$1" >"$work/plain"; }

passes "the job itself trains" train --save "$work/good" "$job"

# ---- data --------------------------------------------------------------------------------------
fresh && rm "$bad/train-images.gz"
refuses "missing data" 3 'train-images\.gz' train "$bad/job.amp"
sed -i 's/-images.gz")/-images.gz", shape=[28, 28])/' "$bad/job.amp"
refuses "missing data of a job with shape=" 3 'train-images\.gz.*searched in .*--data-dir DIR' \
  train "$bad/job.amp"
fresh && head -c 20000 "$d/train-images.gz" >"$bad/train-images.gz"
refuses "truncated gzip" 3 'train-images\.gz' train "$bad/job.amp"
fresh && plain train-images.gz && head -c 300000 "$work/plain" | gzip -n >"$bad/train-images.gz"
refuses "truncated IDX" 3 'train-images\.gz' train "$bad/job.amp"
fresh && plain train-images.gz && head -c 6 "$work/plain" | gzip -n >"$bad/train-images.gz"
refuses "truncated header" 3 'train-images\.gz' train "$bad/job.amp"
fresh && : >"$bad/train-labels.gz"
refuses "empty file" 3 'train-labels\.gz' train "$bad/job.amp"
fresh && plain train-images.gz &&
  { printf 'PK\x03\x04' && tail -c +5 "$work/plain"; } | gzip -n >"$bad/train-images.gz"
refuses "wrong magic" 3 'train-images\.gz.*(magic|IDX)' train "$bad/job.amp"
fresh && plain train-labels.gz &&
  { head -c 100 "$work/plain" && printf '\x0a' && tail -c +102 "$work/plain"; } |
  gzip -n >"$bad/train-labels.gz"
refuses "label out of range" 3 'train-labels\.gz.*10' train "$bad/job.amp"
fresh && plain train-labels.gz &&
  { printf '\0\0\x08\x01\0\0\x02\x00' && tail -c +9 "$work/plain" | head -c 512; } |
  gzip -n >"$bad/train-labels.gz"
refuses "sources of unequal length" 3 '640.*512|512.*640' train "$bad/job.amp"
fresh && rm "$bad/train-images.gz" && mkdir "$bad/train-images.gz"
refuses "a folder for a file" 3 'train-images\.gz' train "$bad/job.amp"

# ---- programs ------------------------------------------------------------------------------------
edit() { # edit SED: makes an edited copy of the job
  sed "$1" "$job" >"$d/edited.amp"
  cmp -s "$job" "$d/edited.amp" && failed "sed '$1' changes nothing"
}
edit 's/relu(/rellu(/'
refuses "unknown name" 1 'error\[E201\].*rellu' train "$d/edited.amp"
refuses "unknown name, ampc" 1 'error\[E201\].*rellu' "$ampc" -o "$work/x.c" "$d/edited.amp"
edit 's/Linear(hidden, 10)/Linear(hidden + 1, 10)/'
refuses "shape mismatch" 1 'error\[E3.*3[23].*3[23]' train "$d/edited.amp"
edit 's/lr=0.1/lr=1e30/; s/precision f16/precision f32/'
refuses "non-finite loss" 5 'finite' train --save "$work/nan" "$d/edited.amp"
[ -e "$work/nan" ] && failed "a checkpoint was written after the loss was not finite"
cp "$work/good" "$work/before"
edit 's/  minimize \(.*\) with opt/  z = net(image)\n  minimize cross_entropy(z, label) + sqrt(z * 0.0).sum() with opt/'
refuses "gradients that are NaN at every scale" 5 'last 20 steps, up to step 76, .*scale of 1, .*good' \
  train --steps 200 --resume "$work/good" --save "$work/good" "$d/edited.amp"
same "gradients that are NaN: the checkpoint is as it was" "$work/good" "$work/before"
sed -i 's/precision f16/precision f16 { scaler(static=512.0) }/' "$d/edited.amp"
refuses "gradients that are NaN at a fixed scale" 5 'up to step 20, .*scale of 512, which is fixed' \
  train --steps 200 "$d/edited.amp"
head -c 3000 /dev/urandom >"$d/noise.amp"
timeout 500 "$ampc" -o "$work/x.c" "$d/noise.amp" >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || failed "noise for a program: exit status"
refuses "no such job" 3 'nothing\.amp' "$ampc" -o "$work/x.c" "$d/nothing.amp"
refuses "no such job, amp" 3 'nothing\.amp' train "$d/nothing.amp"
refuses "unwritable output" 3 'no/such/x\.c' "$ampc" -o "$work/no/such/x.c" "$job"

# ---- command lines -------------------------------------------------------------------------------
refuses "unknown option" 2 'spteps' train --spteps 3 "$job"
refuses "unknown option, ampc" 2 'emitt' "$ampc" --emitt=c "$job"
refuses "no number" 2 'many' train --steps many "$job"
refuses "unknown device" 2 'tpu' "$amp" train --device tpu "$job"
refuses "unknown setting" 1 'lrr' train --set opt.lrr=1 "$job"
refuses "no job" 2 'job' "$amp" train
if ! nvidia-smi >/dev/null 2>&1; then
  refuses "no GPU" 5 'no NVIDIA driver' "$amp" train --device cuda "$job"
fi

# ---- checkpoints ---------------------------------------------------------------------------------
good=$work/good
cp "$good" "$work/kept"
intact() { same "$1: the checkpoint is as it was" "$work/kept" "$good"; }
refuses "unwritable checkpoint" 3 'no/such/w' train --save "$work/no/such/w" "$job"
refuses "checkpoint is a folder" 3 'data' train --save "$d" "$job"
# A full disk: a file may not grow beyond 16 KiB.
full_disk() (
  ulimit -f 16
  train "$@"
)
export -f full_disk
refuses "no room for the checkpoint" 3 'good' bash -c 'full_disk "$@"' _ --save "$good" "$job"
intact "no room"
[ -z "$(find "$work" -maxdepth 1 -name 'good?*')" ] || failed "an unfinished checkpoint is left over"

small_job "$d/other.amp" 48
refuses "another model's checkpoint" 3 'good' train --resume "$good" --save "$good" "$d/other.amp"
intact "another model"
refuses "no checkpoint" 3 'nowhere' train --resume "$work/nowhere" "$job"
size=$(stat -c %s "$good")
flip() { # flip OFFSET: makes a copy with one bit flipped
  cp "$good" "$work/flipped"
  local byte
  byte=$(od -An -tu1 -j "$1" -N 1 "$good")
  printf "\\x$(printf %x $((byte ^ 4)))" | dd of="$work/flipped" bs=1 seek="$1" conv=notrunc 2>/dev/null
}
for offset in 0 9 40 200 $((size / 3)) $((size / 2)) $((size - 1)); do
  flip "$offset"
  cp "$work/flipped" "$work/before"
  refuses "bit flipped at $offset of $size" 3 'flipped' \
    train --resume "$work/flipped" --save "$work/flipped" "$job"
  same "bit flipped at $offset: not overwritten" "$work/before" "$work/flipped"
done
for bytes in 0 7 100 $((size / 2)) $((size - 1)); do
  head -c "$bytes" "$good" >"$work/flipped"
  refuses "checkpoint cut to $bytes bytes" 3 'flipped' train --resume "$work/flipped" "$job"
done
cat "$good" "$d/job.amp" >"$work/flipped"
refuses "checkpoint with bytes behind it" 3 'flipped' train --resume "$work/flipped" "$job"

# ---- no C compiler -------------------------------------------------------------------------------
refuses "no cc" 4 'cc' env PATH=/nonexistent XDG_CACHE_HOME="$work/cache" \
  "$amp" train --device cpu "$job"

finish
