#!/usr/bin/env bash
# promises.sh AMP: the prompt's promises about state. It gives the numbers of `amp train`. :set
# compiles nothing. A redefinition builds only the changed kernels. :precision keeps masters and
# optimizer. No home folder is needed. A broken kernel edit changes nothing.
set -u
amp=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
job=tests/repl/small.amp
status=0
failed() { echo "FAILED: $*"; status=1; }
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
session() { timeout 500 "$amp" repl "$job" >"$work/out" 2>&1; } # inputs on stdin
same() { cmp "$2" "$3" || failed "$1"; }
built() { find "$work/cache" -name '*.so' | wc -l; }
says() { grep -qE "$2" "$work/out" || { failed "$1"; cat "$work/out"; }; }

# The steps equal those of amp train, in whatever pieces they run; so do those of a loaded run.
"$amp" train --quiet --steps 20 --save "$work/train" "$job" >/dev/null 2>&1 || failed "amp train"
printf ':train 3\n:show logits\n:grad fc1.weight\n:step\nnet(ones(1, 8))\n:eval\n:train 16\n:save %s\n' \
  "$work/repl" | session || failed "a session's status"
same "the bytes of amp train" "$work/train" "$work/repl"
"$amp" train --quiet --save "$work/all" "$job" >/dev/null 2>&1
printf ':train 5\n:train\n:save %s\n' "$work/end" | session
same "the whole job" "$work/all" "$work/end"
printf ':train 9\n:save %s\n' "$work/nine" | session
printf ':train 2\n:load %s\n:train 11\n:save %s\n' "$work/nine" "$work/more" | session
same "a loaded run continues" "$work/train" "$work/more"
"$amp" train --quiet --steps 20 --resume "$work/nine" --save "$work/resumed" "$job" >/dev/null 2>&1
same "amp train continues a session" "$work/train" "$work/resumed"

# Two members of a process: each gets its share of a batch.
"$amp" train --quiet --steps 20 --set train.shards=2 --save "$work/shared" "$job" >/dev/null 2>&1 || failed "two members"
printf ':train 20\n:save %s\n' "$work/shared_repl" | timeout 500 "$amp" repl --set train.shards=2 "$job" >"$work/out" 2>&1
same "the bytes of two members" "$work/shared" "$work/shared_repl"

# Two train blocks: the same steps, and the same evaluations between them.
{ grep -v '^eval' "$job"
  cat <<'END'
train x, y in numbers(256) with batch=16, epochs=4, name="more" { minimize cross_entropy(net(x), y) with opt }
eval x, y in numbers(128) with batch=64 { metric acc = accuracy(net(x), y) }
END
} >"$work/two.amp"
"$amp" train --json --save "$work/two" "$work/two.amp" 2>/dev/null |
  sed -nE 's/^."event":"eval",.*"acc":(0\.[0-9]{3}).*/\1/p' >"$work/a"
printf ':train 3\n:train\n:save %s\n' "$work/two_repl" | "$amp" repl "$work/two.amp" >"$work/out" 2>&1
sed -nE 's/^eval acc: (0\.[0-9]{3}).*/\1/p' "$work/out" >"$work/b"
same "the bytes of two blocks" "$work/two" "$work/two_repl"
same "the evaluations of two blocks" "$work/a" "$work/b"
[ "$(wc -l <"$work/b")" = 8 ] || failed "$(wc -l <"$work/b") evaluations of two blocks"
rm -f "$work/a" "$work/b"

# :undo and :reload keep the weights.
printf ':train 5\n:const HIDDEN=24\n:undo\n:set lr=0.5\n:undo\ndef f(x) { return x }\n:reload\n:train\n:save %s\n' \
  "$work/undone" | session
same "a session with :undo and :reload" "$work/all" "$work/undone"
says ":reload with typed input" '^stays: <1> def f'

# A schedule without `steps` is as long as the job, also if only the data tell the number of steps.
{ printf '\0\0\010\002\0\0\0\100\0\0\0\010'; seq 1000 1127 | tr -d '\n'; } | gzip >"$work/x.gz"
cat >"$work/length.amp" <<'END'
data rows() { return idx("x.gz", shape=[8]).to(f32) / 64.0 }
model net = Linear(8, 8)
optimizer opt = SGD(net, lr=cosine_schedule(0.1))
train x in rows() with batch=16, epochs=2 { minimize mse_loss(net(x), x) with opt }
END
"$amp" train --quiet --save "$work/length" "$work/length.amp" >/dev/null 2>&1 || failed "amp train"
printf ':train 5\ndef unused(x) { return x }\n:train\n:save %s\n' "$work/own_length" |
  "$amp" repl "$work/length.amp" >"$work/out" 2>&1
same "the length of a schedule" "$work/length" "$work/own_length"

# A checkpoint with another seed continues with its own order of samples, not with that of the open
# data.
"$amp" train --quiet --seed 9 --steps 6 --save "$work/six" "$job" >/dev/null 2>&1
"$amp" train --quiet --steps 12 --resume "$work/six" --save "$work/twelve" "$job" >/dev/null 2>&1
printf ':train 3\n:eval\n:load %s\n:train 6\n:save %s\n' "$work/six" "$work/loaded" | session
same "a loaded run with another seed" "$work/twelve" "$work/loaded"

# :resume does the same as amp train --resume: it trains to the end of the job, from the file in its
# argument or in the job.
printf 'resume "%s"\n:save %s\n' "$work/nine" "$work/gone_on" | session
same "a resumed session" "$work/all" "$work/gone_on"
"$amp" train --quiet --set train.resume="$work/nine" --save "$work/named" "$job" >/dev/null 2>&1
printf ':set train.resume=%s\n:step\n:resume\n:save %s\n' "$work/nine" "$work/by_name" | session
same "a session resumed by the job's name" "$work/named" "$work/by_name"
says "a step beside a checkpoint that the job names" '^this starts a new run; :resume continues from '

# loss has the same meaning as in amp train: the average over the steps since the last line.
"$amp" train --steps 8 "$job" 2>&1 | sed -nE 's/.* (step [48])\/.* (loss [0-9.]+ acc [0-9.]+) .*/\1 \2/p' >"$work/lines"
printf ':train 8\n' | session
sed -nE 's/^(step [48])\/.*  (loss [0-9.]+)  (acc [0-9.]+) .*/\1 \2 \3/p' "$work/out" >"$work/said"
[ "$(wc -l <"$work/said")" = 2 ] || failed "lines of a session"
same "the loss of amp train" "$work/lines" "$work/said"

# A name, an expression of the batch and a layer show the same values, computed with the weights
# before the step.
shown() { # shown TEXT...: prints the output of :show for each TEXT
  printf ':step\n' >"$work/in"
  printf ':show %s\n' "$@" >>"$work/in"
  session <"$work/in" || failed ":show $*"
  grep -vE '^step|^trained|small.amp:|<expression>' "$work/out"
}
for value in logits 'net(x)' net; do shown "$value" >"$work/shown.$value"; done
same "an expression has the weights of the step" "$work/shown.logits" "$work/shown.net(x)"
same "a model's output" "$work/shown.logits" "$work/shown.net"
grep -qx 'f16\[32, 4\]' "$work/shown.net" || failed ":show net"
for value in fc1 net.fc1 'net.fc1(x)'; do shown "$value" >"$work/shown"; mv "$work/shown" "$work/shown.$value"; done
same "a layer's output" "$work/shown.fc1" "$work/shown.net.fc1"
same "a layer's output, called" "$work/shown.fc1" "$work/shown.net.fc1(x)"
[ "$(shown acc | head -1)" = "$(shown '(argmax(logits, dim=-1) == y).to(f32).mean()' | head -1)" ] || failed ":show acc"
[ "$(shown loss | head -1)" = "$(shown 'cross_entropy(logits, y)' | head -1)" ] || failed ":show loss"

# :write makes a program of a session: it keeps comments, has the values in its text, and trains to
# the same weights.
tensors() { python3 -c 'import sys
b = open(sys.argv[1], "rb").read(); sys.stdout.buffer.write(b[8 + int.from_bytes(b[:8], "little"):])' "$1"; }
cat >"$work/typed" <<EOF
module Net(hidden: int = HIDDEN) {
  fc1 = Linear(8, hidden)
  fc2 = Linear(hidden, 4) # a comment of the prompt
  def forward(x: float[N, 8]) { return fc2(tanh(fc1(x))) }
}
:const HIDDEN=24
:set opt.lr=0.004
:set opt.weight_decay=0.1
:set train.batch=16
:set train.seed=77
:set eval2.steps=3
:precision bf16
eval x, y in numbers(64) with name="more" { metric other = accuracy(net(x), y) }
:set eval2.batch=8
:set eval2.steps=3
forgotten = ones(3)
:write $work/typed.amp
:train 11
:save $work/typed.st
:write $work/typed.amp
:set opt.beta1=0.8
:write! $work/more.amp
EOF
session <"$work/typed" && failed ":write over a file"
says ":write prints the command to run it" "^wrote $work/typed.amp: amp train $work/typed.amp\$"
says ":write reports omitted statements" '^1 statement of the session is not part of a program'
says ":write does not write over a file" "typed.amp exists; :write! $work/typed.amp overwrites it"
grep -qx 'opt.beta1 = 0.8' "$work/more.amp" || failed ":write of what the text does not name"
for line in '# A job that trains in no time, for sessions.' 'const HIDDEN = 24' 'precision bf16' \
  '  fc2 = Linear(hidden, 4) # a comment of the prompt' 'optimizer opt = AdamW(net, lr=0.01)' \
  'eval x, y in numbers(64) with name="more" { metric other = accuracy(net(x), y) }' \
  'opt.lr = 0.004' 'opt.weight_decay = 0.1' 'train.batch = 16' 'train.seed = 77' 'eval2.steps = 3' 'eval2.batch = 8'; do
  grep -qxF "$line" "$work/typed.amp" || failed ":write lacks $line"
done
"$amp" train --quiet --steps 11 --save "$work/written.st" "$work/typed.amp" >/dev/null 2>&1 ||
  failed "amp train of what was written"
tensors "$work/typed.st" >"$work/a" && tensors "$work/written.st" >"$work/b"
same "the weights of what was written" "$work/a" "$work/b"
"${amp}c" --check "$work/typed.amp" || failed "ampc of what was written"
# without a job, with its own seed
sed 's/^data numbers/manual_seed(1); data numbers/' "$job" | grep -v '^#' >"$work/whole"
{ sed 's/manual_seed(1); //' "$work/whole"
  printf ':write %s\n:train 5\n:save %s\n' "$work/nojob.amp" "$work/nojob.st"; } |
  timeout 500 "$amp" repl --seed 5 >"$work/out" 2>&1 || failed ":write without a job"
grep -qx 'manual_seed(5)' "$work/nojob.amp" || failed ":write keeps --seed"
"$amp" train --quiet --steps 5 --save "$work/nojob2.st" "$work/nojob.amp" >/dev/null 2>&1
tensors "$work/nojob.st" >"$work/a" && tensors "$work/nojob2.st" >"$work/b"
same "the weights of a job that was typed" "$work/a" "$work/b"

# written JOB OPTION... < INPUTS: `:write` writes $work/new.amp, whose first five steps must equal
# the session's
written() {
  local from=$1
  shift
  { cat; printf ':write! %s\n:train 5\n:save %s\n' "$work/new.amp" "$work/typed.st"; } |
    timeout 500 "$amp" repl "$@" "$from" >"$work/out" 2>&1 || { failed ":write of $from"; cat "$work/out"; }
  eval "$(sed -nE "s|^wrote .*: amp train|'$amp' train --quiet --steps 5 --save '$work/written.st'|p" "$work/out")" \
    >/dev/null 2>&1 || failed "the command that :write printed"
  tensors "$work/typed.st" >"$work/a" && tensors "$work/written.st" >"$work/b"
  same "the weights of $from, $*" "$work/a" "$work/b"
}
has() { grep -qxF "$1" "$work/new.amp" || { failed ":write lacks $1"; cat "$work/new.amp"; }; }
# schedules, groups; a line of the job is changed where it stands, and goes with its optimizer
sed 's/=0.01/=cosine_schedule(0.01, steps=32)/' "$job" >"$work/schedule.amp"
printf ':set opt.lr.peak=0.2\n:set opt.lr.warmup=2\n' | written "$work/schedule.amp"
has 'opt.lr.peak = 0.2'
cp "$work/new.amp" "$work/again.amp"
printf ':set opt.lr.peak=0.3\n' | written "$work/again.amp"
has 'opt.lr.peak = 0.3'
[ "$(grep -c 'opt.lr.peak' "$work/new.amp")" = 1 ] || failed ":write repeats a line"
sed -i 's/^opt.lr.peak.*/& # of the schedule/' "$work/again.amp"
printf 'optimizer opt = SGD(net, lr=0.5)\n' | written "$work/again.amp"
grep -q 'opt.lr\|of the schedule' "$work/new.amp" && failed ":write keeps the settings of another optimizer"
[ "$(wc -l <"$work/new.amp")" = "$(($(wc -l <"$work/again.amp") - 2))" ] || failed ":write leaves empty lines"
{ sed 's/AdamW(net, lr=0.01)/SGD(net, lr=0.1)/; s/\<opt\>/model/' "$job"; echo 'train.epochs = 1'; } >"$work/words.amp"
printf '%s\n' ':set model.lr=0.2' 'train x, y in numbers(64) with batch=8, epochs=2 {' '  minimize net(x).mean() with model' '}' |
  written "$work/words.amp"
has 'model.lr = 0.2'
grep -q 'train.epochs' "$work/new.amp" && failed ":write keeps the settings of another block"
sed 's/lr=0.01/multistep_schedule(lr=0.01, milestones=[4])/' "$job" >"$work/steps.amp"
printf ':set opt.lr.start=0.2\n' | written "$work/steps.amp"
# the seed of the session overrides the seeds of blocks
written "$job" --seed 3 --set train.seed=9 </dev/null
sed 's/log=4/log=4, seed=5/' "$job" >"$work/seed.amp"
printf ':set train.seed=8\n' | written "$work/seed.amp" --seed 3
has 'train x, y in numbers(256) with batch=32, epochs=4, log=4, seed=3 {'
# values in brackets, a computed string, a folder of imports
mkdir "$work/a folder"
printf 'const WIDE = 4\n' >"$work/a folder/wide.amp"
{ printf 'import "wide.amp"\nconst OUT = "a" + "b"\n'
  sed -e 's/(net, lr=0.01)/((net))/' -e 's/log=4/log=( # ( of the log\n  (4))/' -e 's/batch=64/batch=(64)/' \
    -e 's/\bnumbers(256)/(&)/' "$job"; } >"$work/brackets.amp"
printf '%s\n' :const\ OUT=/c ':set opt.lr=0.5' ':set train.seed=7' ':set eval.steps=1' |
  written "$work/brackets.amp" -I "$work/a folder"
for line in 'const OUT = "/c"' 'opt.lr = 0.5' 'train.seed = 7' 'eval.steps = 1'; do has "$line"; done
printf ':const WIDE=3\n' | written "$work/brackets.amp" -I "$work/a folder"
says "a const of an import" 'amp train -D WIDE=3 -I '

# :set compiles nothing, and known kernels are not built again.
before=$(built)
printf ':step\n:set opt.lr=0.5\n:step\n:set opt.beta1=0.8\n:step\n' | session
[ "$(built)" = "$before" ] || failed ":set built kernels"
says "the new rate is used" '^step 2/32 .*opt.lr 0.5 '

# A redefinition builds the changed kernels: here two of silu and one of its gradient become those
# of tanh.
cat >"$work/tanh" <<'EOF'
:step
module Net(hidden: int = HIDDEN) {
  added = 3
  fc1 = Linear(8, hidden)
  fc2 = Linear(hidden, 4)
  def forward(x: float[N, 8]) { return fc2(tanh(fc1(x))) }
}
:step
EOF
session <"$work/tanh"
newest=$(find "$work/cache" -name '*.so' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
[ "$(built)" = $((before + 1)) ] || failed "a redefinition built $(($(built) - before)) libraries"
names=$(nm "$newest" | grep -c '_thunk$')
[ "$names" = 3 ] || failed "a redefinition built $names kernels, not 3"

# Another precision keeps the f32 weights and the optimizer's moments.
rm -f "$work/a" "$work/b" # text files until here, which a checkpoint does not overwrite
printf ':train 5\n:save %s\n:precision bf16\n:save %s\n:diff ckpt %s %s\n' \
  "$work/a" "$work/b" "$work/a" "$work/b" | session
says ":precision keeps masters and moments" '^no tensor differs'
printf ':train 5\n:save %s\n:step\n:save %s\n:diff ckpt %s %s\n' \
  "$work/a" "$work/b" "$work/a" "$work/b" | session
says ":diff ckpt compares steps" '^step 5 and 6'
says ":diff ckpt compares moments" '^moment 2 of fc1.weight: '

# :grad shows the gradient of the next step: with lr 1 the weight changes by it. In f16, it is
# without the loss scale.
for precision in f32 f16; do
  printf '%s\n' ":precision $precision" 'optimizer opt = SGD(net, lr=1.0)' :step \
    net.fc2.bias ':grad fc2.bias' :step net.fc2.bias | session
  grep '^\[' "$work/out" | python3 -c 'import re, sys
old, grad, new = [[float(x) for x in re.findall(r"-?[0-9.]+(?:e[+-][0-9]+)?", l.split("]")[0])] for l in sys.stdin]
sys.exit(not (len(grad) == 4 and max(map(abs, grad)) > 0.002
              and all(abs(a - g - b) < 3e-4 for a, g, b in zip(old, grad, new))))' ||
    { failed ":grad in $precision"; cat "$work/out"; }
done

# A kernel edit that does not compile changes nothing; one that compiles is used.
printf '#!/bin/sh\necho nonsense >>"$1"\n' >"$work/break"
printf '#!/bin/sh\nsed -i "s/= ampc_silu/= R(3.0) * ampc_silu/" "$1"\n' >"$work/triple"
chmod +x "$work/break" "$work/triple"
printf ':kernel net_silu edit\n:kernel net_silu reload\n:train 20\n:save %s\n' "$work/broken" |
  EDITOR=$work/break session && failed "a broken edit does not fail"
says "a broken edit" 'the kernel is unchanged'
same "a broken edit changes nothing" "$work/train" "$work/broken"
says "an edit's errors have the lines of its file" '^/tmp/amp-edit-.*/net_silu\.cu:[1-3]?[0-9]:.*error'
printf ':kernel net_silu edit\n:kernel net_silu reload\n:kernel\n:train 20\n:save %s\n' "$work/edited" |
  EDITOR=$work/triple session || failed "an edit"
says "an edited kernel is listed" '^net_silu: .*edited'
cmp -s "$work/train" "$work/edited" && failed "an edited kernel is not run"
printf ':kernel net_silu edit\n:kernel net_silu reload\n:step\nmodule Net() { fc1 = Linear(8, 4)\n def forward(x) { return fc1(relu(x)) } }\n:step\n' |
  EDITOR=$work/triple session
says "an edit whose kernel is gone" 'net_silu no longer runs'

# Home folders that cannot be written or do not exist.
mkdir "$work/home" && chmod a-w "$work/home"
for home in "$work/home" /nonexistent ""; do
  printf '1 + 1\n' | env -u XDG_STATE_HOME -u XDG_CACHE_HOME HOME="$home" "$amp" repl >"$work/out" 2>&1 ||
    failed "home '$home': exit status"
  says "home '$home'" '^int 2$'
done

# Exit statuses.
printf '1 + 1\n' | "$amp" repl >/dev/null 2>&1 || failed "status of a good session"
printf 'nothing\n1\n' | "$amp" repl >/dev/null 2>&1
[ $? -eq 1 ] || failed "status of a session with a mistake"
"$amp" repl /nonexistent.amp </dev/null >/dev/null 2>&1
[ $? -eq 3 ] || failed "status without the job's file"
"$amp" repl a b </dev/null >/dev/null 2>&1
[ $? -eq 2 ] || failed "status of wrong usage"
printf 'model net =\n' >"$work/wrong.amp"
printf '1 + 1\n' | "$amp" repl "$work/wrong.amp" >"$work/out" 2>&1
[ $? -eq 1 ] || failed "status of a job with a mistake"
says "a job with a mistake leaves a session" '^int 2$'
exit $status
