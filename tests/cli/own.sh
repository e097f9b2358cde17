#!/usr/bin/env bash
# Own ops. Training, the emitted program and all levels of fusion give the same bytes. An error of
# the C compiler is reported at its place in the op's text, in the job or in the text's own file. An
# edited text is compiled again. Own ops at the prompt.
#   own.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cp "$source_dir"/tests/simt/jobs/own.amp "$source_dir"/tests/simt/jobs/own_outputs.amp "$work"
cd "$work" || exit 1

for precision in f32 f16 bf16; do
  trains() { "$amp" train -q --device cpu --set precision=$precision --steps 4 "$@"; }
  passes "trains in $precision" trains --save two.safetensors own.amp
  passes "without fusion in $precision" trains -O0 --save none.safetensors own.amp
  same "the same without fusion in $precision" two.safetensors none.safetensors
  passes "emits in $precision" "$ampc" --force --set precision=$precision --target=cpu -o own.c own.amp
  # shellcheck disable=SC2046 # a command of several words
  passes "builds in $precision" eval $("$ampc" --set precision=$precision --target=cpu --build-line -o own.c own.amp)
  passes "runs in $precision" ./own -q --steps 4 --save emitted.safetensors
  same "the same as a program in $precision" two.safetensors emitted.safetensors
done

# ---- several outputs, some of them unread or recomputed -----------------------------------------
trains() { "$amp" train -q --device cpu --steps 4 "$@" own_outputs.amp; }
passes "trains with several outputs" trains --save two.safetensors
passes "without fusion" trains -O0 --save none.safetensors
same "the same without fusion" two.safetensors none.safetensors
passes "emits" "$ampc" --target=cpu -o outputs.c own_outputs.amp
# shellcheck disable=SC2046 # a command of several words
passes "builds" eval $("$ampc" --target=cpu --build-line -o outputs.c own_outputs.amp)
passes "runs" ./outputs -q --steps 4 --save emitted.safetensors
same "the same as a program" two.safetensors emitted.safetensors

# ---- the examples: an op and its backward against a loop of the language ------------------------------
for example in recurrence oscillators; do
  for own in true false; do
    passes "$example, OWN=$own" "$amp" train -q --json --device cpu -D OWN=$own -D STEPS=12 -D WIDTH=16 \
      --set precision=f32 --steps 30 "$source_dir/examples/$example/$example.amp"
    grep -o '"loss":[0-9.]*' out | cut -c1-14 | tail -n 1 >loss.$own
  done
  [ -s loss.true ] && same "the op and the loop train alike" loss.true loss.false
done

# ---- host_parts: more parts than threads; each part starts with the original pointers -----
cat >parts.amp <<'EOF'
op moved(x: float[N, D]) -> (y: float[N, D]) {
  host_parts = N; host = "x += part * D; y += part * D; for (int64_t d = 0; d < D; d++) y[d] = 2 * x[d];"
}
data d() { return synthetic(2, [200, 3]) }
infer f(x: f32[2, 200, 3]) { return abs(moved(x[0]) - 2.0 * x[0]).sum() }
EOF
passes "many parts" "$amp" infer --device cpu --data 'd()' parts.amp
grep -qx 0 out || failed "parts of a text"

# ---- errors in texts -------------------------------------------------------------------------------
sed 's/float t = x\[i\] + b\[i % D\];/float t = x[i] + c[i % D];/' own.amp >wrong.amp
refuses "a host text" 4 '^wrong.amp:12:24: error\[E704\]: .c. undeclared' "$amp" train --device cpu wrong.amp
grep -q '|                        ^' err && grep -q 'in the host text of op bias_gelu' err || failed "the place of the error is not shown"
sed 's/float sum = 0;/float sum = 0 0;/' own.amp >wrong.amp
refuses "two numbers" 4 '^wrong.amp:47:19: error\[E704\]' "$amp" train --device cpu wrong.amp
cat >texts.amp <<'EOF'
op half(x: float[N]) -> (y: float[N]) {
  threads = N; cuda = "y[i] = y_t(0.5f * x[i]);"; host = file("texts/half.c")
}
op twice(x: float[N]) -> (y: float[N]) { threads = N; cuda = "y[i] = y_t(2 * x[i]);"; host = "for (int64_t i = 0; i < N; i++) y[i] = 2 * x[i];" }
data four() { return synthetic(4, []) }
infer f(x: f32[4]) { return half(x), twice(x) }
EOF
mkdir texts
printf 'for (int64_t i = 0; i < N; i++)\n  y[i] = 0.5f * x[j];\n' >texts/half.c
refuses "a text of its own" 4 '^texts/half.c:2:19: error\[E704\]: .j. undeclared' \
  "$amp" infer --device cpu --data 'four()' texts.amp
printf 'for (int64_t i = 0; i < N; i++)\n  y[i] = 0.5f * x[i];\n' >texts/half.c

# ---- the prompt --------------------------------------------------------------------------------------
answers() { # answers PATTERN LINE...
  local pattern=$1
  shift
  printf '%s\n' "$@" | "$amp" repl --device cpu texts.amp >out 2>&1
  if grep -Eq -- "$pattern" out; then echo "ok: $pattern"; else failed "the prompt: $pattern"; fi
}
answers '4\.0000' 'twice(zeros([3]) + 2)'
answers '1\.5000' 'half(zeros([3]) + 3)'
answers '9\.0000' 'op thrice(x: float[N]) -> (y: float[N]) { host = "for (int64_t i = 0; i < N; i++) y[i] = 3 * x[i];" }' 'thrice(zeros([2]) + 3)'
answers 'half.c:2:19: error\[E704\]' 'half(zeros([2]))' "$(sed -i 's/x\[i\]/x[j]/' texts/half.c)"
[ "$failures" -eq 0 ]
