#!/usr/bin/env bash
# terminal.sh AMPC AMP: on a terminal of 80 columns, the progress line has all fields, from the
# epoch to the remaining time, and is never longer than the terminal. A slow compile says what is
# going on, except with -q. The speed of a line is that of the last seconds.
set -u
amp=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cat >job.amp <<'EOF'
data numbers(n: int) {
  x = synthetic(n, [8])
  y = synthetic(n, [], dtype=i64, low=0, high=10)
  return x, y
}
model net = Linear(8, 10)
optimizer opt = SGD(net, lr=0.01234)
precision f16
train x, y in numbers(64000) with batch=64 {
  minimize cross_entropy(net(x), y) with opt
  metric acc = accuracy(net(x), y)
}
EOF
script -qec "stty cols 80; '$amp' train --device cpu job.amp" typescript >/dev/null </dev/null || {
  cat typescript
  exit 1
}
lines=$(tr '\r' '\n' <typescript | sed 's/\x1b\[K//g' | grep loss)
whole='^ep(och)? 1 (step )?[0-9]+/1000 loss [0-9.]+ acc [0-9.]+ lr 0.01234 '
whole+='(scale |x)65536 skip(ped)? 0 [0-9]+( samples)?/s eta [0-9ms]+$'
if ! grep -qE "$whole" <<<"$lines" || grep -qE '.{80}' <<<"$lines"; then
  echo "FAILED: progress lines on a terminal:"
  echo "$lines"
  exit 1
fi

# ---- a slow compile ------------------------------------------------------------------------------
real=$(command -v cc)
mkdir slow && printf '#!/bin/sh\n[ "$1" = --version ] || sleep 3\nexec %q "$@"\n' "$real" >slow/cc && chmod +x slow/cc
cold() { # cold OPTION...: trains on a terminal with an empty cache; the output without escapes
  XDG_CACHE_HOME=$(mktemp -d "$work/XXXX") PATH=$work/slow:$PATH \
    script -qec "'$amp' train --device cpu --steps 2 $* job.amp" typescript >/dev/null </dev/null
  tr '\r' '\n' <typescript | sed 's/\x1b\[K//g'
}
said=$(cold)
if ! grep -qE '^compiling [0-9]+ kernels: 2 s$' <<<"$said" || ! grep -q ' 2/2 loss' <<<"$said"; then
  echo "FAILED: a slow compile says: $said"
  exit 1
fi
said=$(cold -q)
if grep -q compiling <<<"$said"; then
  echo "FAILED: a slow compile with -q says: $said"
  exit 1
fi

# ---- the speed of the last seconds ---------------------------------------------------------------
# The run is stopped for four of its eight seconds, which its last lines have forgotten.
sed 's/batch=64/batch=64, epochs=100000/' job.amp >long.amp
"$amp" train --device cpu --log 200 --max-time 8 long.amp 2>lines >/dev/null &
until grep -q loss lines || ! kill -0 $!; do sleep 0.1; done
kill -STOP $! && sleep 4 && kill -CONT $!
wait $!
read -r steps speed <<<"$(sed -nE 's,.* step ([0-9]+)/.* ([0-9]+) samples/s .*,\1 \2,p' lines | tail -1)"
if ((speed * 8 * 10 < steps * 64 * 12)); then
  echo "FAILED: $steps steps of 64 in 8 s, of which 4 were a pause; the last line says $speed samples/s"
  exit 1
fi
