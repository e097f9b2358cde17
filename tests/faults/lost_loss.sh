#!/usr/bin/env bash
# A loss that is not finite. With a loss scaler, the step is skipped, the scale is lowered and
# training continues; after too many such steps in a row the run stops. Without a scaler the run
# stops at once.
#   lost_loss.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
d=$work/data
mkdir -p "$d"
cd "$d" || exit 1

train() { # train JOB OPTIONS...
  timeout 300 "$amp" train --device cpu --log 1 "$@"
}
says() { # says NAME PATTERN: the output of the last command must match PATTERN
  cat "$work/out" "$work/err" | grep -Eq -- "$2" || failed "$1: the output lacks '$2'"
}

lost_data one.idx 12 5
lost_data all.idx 60 "$(seq -s ' ' 0 59)"
lost_job one.amp one.idx f16
lost_job all.amp all.idx f16
lost_job fixed.amp all.idx 'f16 { scaler(static=1024.0) }'
lost_job plain.amp one.idx f32
lost_job low.amp all.idx 'f16 { scaler(init=64.0, min=16.0) }'

passes "one loss of twelve" train one.amp --save one.st --log-dir log
says "it is shown" 'step 6/12 loss (inf|nan)'
says "the scale goes down" 'step 6/12 .* scale 32768 skipped 1'
says "the others are taken" 'skipped steps: 1 of 12'
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "train.loss") c = i } $1 == 6 { print $c }' \
  log/metrics.csv | grep -Eqx 'inf|nan' || failed "the log of step 6"
passes "up to that step" train one.amp --steps 6 --save six.st
passes "and resumed there" train one.amp --resume six.st --save resumed.st
same "as if it had not stopped" one.st resumed.st

passes "emit" "$ampc" --target=cpu -o one.c one.amp
passes "build" bash -c "$("$ampc" --target=cpu --build-line -o one.c one.amp)"
passes "the emitted program" ./one --save emitted.st
says "it skips that step too" 'skipped steps: 1 of 12'
same "the same bytes" one.st emitted.st

# 65536 is halved 16 times to 1, 64 is halved twice to 16; then 20 more steps
refuses "all of them" 5 'losses or gradients of the last 20 steps, up to step 36,.*1, which is the lowest' train all.amp
refuses "a floor" 5 'up to step 22,.*16, which is the lowest' train low.amp
refuses "a fixed scale" 5 'up to step 20,.*1024, which is fixed' train fixed.amp
refuses "no scaler" 5 'the loss or a gradient of step 6 is not finite' train plain.amp

printf ':train\n:scaler\n' >in
passes "the prompt goes on" sh -c '"$0" repl --device cpu one.amp <in' "$amp"
says "after one skipped step" 'skipped 1 of 12'
printf ':train\n:scaler\n' >in
sh -c '"$0" repl --device cpu all.amp <in' "$amp" >"$work/out" 2>"$work/err"
says "the prompt ends" 'of the last 20 steps, up to step 36'
finish
