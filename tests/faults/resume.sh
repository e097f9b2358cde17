#!/usr/bin/env bash
# resume= in the job: started new, continued, replaced and switched off, with `amp` and an emitted
# program.
#   resume.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cat >job.amp <<'AMP'
data d() { return synthetic(64, [4]), synthetic(64, [3]) }
model net = Sequential(Linear(4, 8), ReLU(), Linear(8, 3))
optimizer opt = Adam(net, lr=1e-2)
train x, y in d() with batch=8, epochs=3, save="own", resume="own" { minimize mse_loss(net(x), y) with opt }
eval x, y in d() with batch=8 { metric m = mse_loss(net(x), y) }
AMP
train() { "$amp" train --device cpu "$@"; }
says() { if grep -q "$2" "$work/err"; then echo "ok: $1"; else failed "$1: $(cat "$work/err")"; fi; }

mkdir plain
sed 's/, resume="own"//' job.amp >plain/job.amp
passes "a job without it" train --quiet --save whole plain/job.amp
passes "no checkpoint" train --quiet --steps 1 --set train.save= --set train.resume= job.amp
[ ! -e own ] || failed "no checkpoint: own is there"
for option in save resume log-dir; do
  refuses "--$option=" 2 "--$option: the path is empty; leave the option out" train --quiet --$option= job.amp
done
passes "none of the job's" train --quiet --steps 1 --set train.resume= --save one job.amp
refuses "to evaluate what is not there" 3 'own, which the job names with resume=, cannot be read' "$amp" eval --device cpu job.amp
passes "the first time" train --steps 10 job.amp
says "that it begins anew" 'own, which the job names with resume=, does not exist yet: the run starts from the beginning'
cp own ten
refuses "a batch so large that the epoch is over" 3 'ten was saved after batch 2 of an epoch, which now has 1: resume with the batch size' \
  train --resume ten --save other --set train.batch=64 job.amp
passes "the second time" train job.amp
says "that it goes on" 'continues from own, step 10'
same "the bytes of one run" own whole
passes "an evaluation of it" "$amp" eval --device cpu job.amp
passes "--resume beats it" train --quiet --resume ten --save again job.amp
same "from another checkpoint" again whole
sed 's/resume="own"/resume="gone"/' job.amp >gone.amp
refuses "a file that nobody writes" 3 'gone, which the job names with resume=, cannot be read: No such file' train gone.amp
passes "--resume in its place" train --quiet --resume ten --save again2 gone.amp
"$ampc" -o job.c job.amp && eval "$("$ampc" --build-line -o job.c job.amp)" || failed "job.c"
cp ten own
passes "emitted" ./job
says "that the program goes on" 'continues from own, step 10'
same "emitted, the bytes of one run" own whole
rm own
refuses "emitted, to evaluate what is not there" 3 'own, which the job names' ./job --eval
passes "emitted, the first time" ./job --quiet
same "emitted, begun anew" own whole
finish
