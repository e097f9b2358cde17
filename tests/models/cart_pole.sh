#!/usr/bin/env bash
# The pole on the cart: a whole training balances it; a few steps in each precision, with the same
# bytes without fusion, resumed and from the emitted program.
#   cart_pole.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
job=$source_dir/models/cart_pole/cart_pole.amp
train() { "$amp" train --device cpu --quiet "$@" "$job"; }

passes "ten epochs" train
standing=$(sed -n 's/^eval balanced: //p' out)
awk -v x="$standing" 'BEGIN { exit !(x >= 0.95) }' && echo "ok: $standing of the poles stand" || failed "$standing of the poles stand"
for precision in f32 f16 bf16; do
  set -- --set precision=$precision -D STEPS=20 --steps
  passes "$precision" train "$@" 40 --save whole
  passes "$precision without fusion" train -O0 "$@" 40 --save flat
  same "$precision without fusion" whole flat
done
passes "the first half" train -D STEPS=20 --set opt.lr.steps=40 --steps 20 --save half
passes "the other half" train -D STEPS=20 --set opt.lr.steps=40 --steps 40 --resume half --save joined
passes "both" train -D STEPS=20 --set opt.lr.steps=40 --steps 40 --save whole
same "resumed" whole joined
passes "C" "$ampc" --target=cpu -D STEPS=20 -o cart.c "$job"
passes "cc" bash -c "$("$ampc" --target=cpu -D STEPS=20 --build-line -o cart.c "$job")"
passes "the emitted program" ./cart -q --steps 40 --save emitted
passes "amp" train -D STEPS=20 --steps 40 --save whole
same "the emitted program" whole emitted
finish
