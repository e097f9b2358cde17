#!/usr/bin/env bash
# Parameters that no loss of an optimizer reaches: nothing changes them, as if they were frozen, in
# every optimizer and with groups, averages, several optimizers, 16-bit weights. A checkpoint that
# has moments of them is refused with a cure.
#   unreached.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

job() { # job OPTIMIZER PRECISION CLAUSE: `head` gets no gradient, nor does `mask`, which only compares
  cat <<AMP
data d() { return synthetic(26, [4]), synthetic(26, [], dtype=i64, low=0, high=3) }
module Net {
  fc = Linear(4, 3); head = Linear(4, 7); mask = Parameter([4], init=ones_())
  def forward(x) { return fc(x * (mask > 0.5).to(f32)) }
}
model net = Net() { init("head.*", ones_())$3 }
optimizer opt = $1
precision $2
train x, y in d() with batch=5 {
  minimize cross_entropy(net(x), y) with opt
  every 2 { minimize cross_entropy(net(x * 2.0), y) with opt }
}
eval x, y in d() with batch=5 { metric loss = cross_entropy(net(x), y) + net.head(x).mean() }
AMP
}
train() { "$amp" train --device cpu --quiet "$@"; }
settings="weight_decay=0.5" n=0
while IFS="|" read -r optimizer precision; do
  n=$((n + 1))
  job "$optimizer" "$precision" "" >job.amp
  job "$optimizer" "$precision" '; freeze("head", "mask")' >frozen.amp
  passes "$optimizer, $precision" train --log-dir "logs/$n" --save-weights a --save ema_a job.amp
  cp out results
  passes "frozen" train --save-weights b --save ema_b frozen.amp
  cp out of_frozen
  same "the weights of the job with freeze()" a b
  same "the same results" results of_frozen
done <<END
SGD(net, lr=0.1, momentum=0.9, $settings, ema=0.9)|f32
AdamW(net, lr=0.1, $settings, clip_norm=0.1){group("head.*", weight_decay=0.3);group("fc.bias", lr=0.2)}|f16
LAMB(net, lr=0.1, $settings){group("**.bias", lr=0.2)}|bf16
Adagrad(net, lr=0.1, $settings, initial_accumulator_value=0.1)|bf16 { params(bf16, masters=false) }
END

# ---- a checkpoint from before a parameter lost its loss --------------------------------------------------
job "AdamW(net, lr=0.1)" f32 "" >job.amp
sed 's/return fc(x/return head(x).mean() + fc(x/' job.amp >before.amp
passes "every loss reaches the head" train --save before.ckpt --save-weights a before.amp
refuses "moments of it" 3 'no optimizer of job.amp trains head.bias; a clause `load\("before.ckpt"\)`' train \
  --resume before.ckpt job.amp
sed 's/init("head.\*", ones_())/load("before.ckpt")/' job.amp >after.amp
passes "the cure" train --set opt.lr=0.0 --set opt.weight_decay=0.0 --save-weights b after.amp
same "its weights are those of the checkpoint" a b

# ---- two optimizers, of which one reaches the parameter -------------------------------------------------
cat >shared.amp <<'AMP'
module Net { a = Linear(4, 3); b = Linear(4, 3); def forward(x) { return a(x) } }
model net = Net()
optimizer one = AdamW(net, lr=0.1, weight_decay=0.5)
optimizer two = AdamW(TWO, lr=0.1, weight_decay=0.5)
train x in synthetic(24, [4]) with batch=4 {
  minimize net(x).square().mean() with one
  minimize net.b(x).square().mean() with two
}
AMP
sed 's/TWO/net/' shared.amp >both.amp
sed 's/AdamW(net,/AdamW(net.a,/; s/TWO/net.b/' shared.amp >apart.amp
passes "both optimizers have the net" train --save-weights a both.amp
passes "each has what its loss reaches" train --save-weights b apart.amp
same "each optimizer changes what its loss reaches" a b
finish
