#!/usr/bin/env bash
# amp infer --generate: a tiny model of bytes learns a text and continues it, and so does a library
# called from C. Draws are repeatable. Control characters are escaped on a terminal. Tokens may be
# numbers. Errors.
#   generate.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
infer() { timeout 100 "$amp" infer -q --device cpu --weights w.safetensors "$@"; }
prints() { # prints NAME TEXT COMMAND...: exactly TEXT on stdout
  local name=$1 text=$2
  shift 2
  passes "$name" "$@"
  printf '%s' "$text" >want
  cmp -s out want || failed "$name: instead of '$text'"
}

cat >job.amp <<'JOB'
const T = 16; const V = 128; const C = 32
dim N(max=4); dim S(max=16, multiple=2)
data text() { ids = tokens("text.txt", length=T + 1, format="u8"); return ids[:, :-1], ids[:, 1:].to(i64) }
module Net {
  emb = Linear(V, C, bias=false); qkv = Linear(C, 3 * C); mid = Linear(C, 2 * C); head = Linear(2 * C, V)
  pos = Parameter([T, C], init=normal_(std=0.1))
  def forward(ids: int[N, S]) -> float[N, S, V] {
    x = emb((ids.unsqueeze(2) == arange(V)).to(f32)) + pos[:S]
    q, k, v = qkv(x).unsqueeze(1).chunk(3, dim=3)
    return head(relu(mid(x + scaled_dot_product_attention(q, k, v, is_causal=true).squeeze(1))))
  }
}
model net = Net()
optimizer opt = Adam(net, lr=1e-2)
manual_seed(3)
train ids, next in text() with batch=16, steps=250 { minimize cross_entropy(net(ids).flatten(0, 1), next.flatten()) with opt }
infer next(ids: i64[N, S]) -> float[N, S, V] { return net(ids) }
infer last(ids: i32[1, T]) -> float[1, V] { return net(ids)[:, -1] }
infer bytes(ids: u8[1, T]) -> float[1, T, V] { return net(ids.to(i64)).to(bf16) }
infer ahead(ids: i64[1, T]) { x = net(ids); return x + 0.1 * x.mean(1, keepdim=true) }
infer short(ids: i64[1, S]) { return net(ids)[:, -1] }
infer two(ids: i64[2, T]) { return net(ids) }
infer numbers(ids: f32[1, T]) { return ids }
infer pair(ids: i64[1, T]) { return net(ids), ids }
infer more(ids: i64[1, T], x: f32[1]) { return net(ids) + x }
infer wide(ids: i64[1, T]) { return zeros(1, T, 300) }
infer nothing(ids: i64[1, T]) { return net(ids) / 0.0 * 0.0 }
infer control(ids: i64[1, T]) { return zeros(1, T, 256) + 9.0 * (arange(256) == ids.unsqueeze(2) + 1) }
infer accents(ids: i64[1, T]) { return zeros(1, T, 256) + 9.0 * (arange(256) == 364 - ids.unsqueeze(2)) }
infer pairs(ids: i64[1, T]) { i = arange(256) - ids.unsqueeze(2); return 9.0 * (i == 1) + 8.0 * (i == 2) - 1.0 }
JOB
sentence='the cat sat on the mat, and the dog ran. '
for _ in $(seq 60); do printf '%s' "$sentence"; done >text.txt
passes "a training" "$amp" train -q --device cpu --save w.safetensors job.amp

# ---- output --------------------------------------------------------------------------------
next="infer --block next --temperature 0 job.amp"
prints "the likeliest tokens: the text that was learnt" "${sentence}${sentence}t" $next --generate 68 --prompt 'the cat sat on '
prints "from a file, longer than what the block takes" "$sentence$sentence" $next --generate 1 --prompt-file <(printf '%s' "$sentence${sentence% }")
prints "one size" "$sentence" $next --generate 10 --dim S=16 --prompt "${sentence:0:31}"
prints "a size of --dim that the text grows beyond" "${sentence:0:14}" $next --generate 6 --dim S=8,16 --prompt "${sentence:0:8}"
prints "logits of the last token" "$sentence" infer --block last --temperature 0 --generate 24 --prompt "${sentence:0:17}" job.amp
prints "u8 in, bf16 out" "$sentence" infer --block bytes --temperature 0 --generate 24 --prompt "${sentence:0:17}" job.amp
draw="infer --block next --generate 60 --temperature 1.5 --prompt the job.amp"
passes "a draw" $draw --seed 1
cp out one
passes "the same seed" $draw --seed 1
cp out again
same "the same seed, the same text" one again
passes "another seed" $draw --seed 2
cmp -s one out && failed "another seed: the same text"
passes "one size or several" $draw --seed 1 --dim S=16
passes "--top-k 1" $draw --seed 1 --top-k 1
[ "$(head -c 41 out)" = "$sentence" ] || failed "--top-k 1 is the likeliest token"
for one in "--top-p 0" "--top-p 0.01" "--min-p 1"; do
  passes "$one" $draw --seed 1 $one
  [ "$(head -c 41 out)" = "$sentence" ] || failed "$one is the likeliest token"
done
passes "all tokens" $draw --seed 1 --top-p 1 --min-p 0 --repetition-penalty 1
cp out again
same "values that change nothing" one again
passes "top-p" $draw --seed 1 --top-p 0.99
cmp -s one out && failed "--top-p 0.99 changes nothing"
prints "a likeliest token that the prompt has" babc infer --block pairs --temperature 0 --generate 2 --prompt ba job.amp
prints "it becomes less likely" bacd infer --block pairs --temperature 0 --generate 2 --repetition-penalty 1.2 --prompt ba job.amp
prints "a little less likely" babc infer --block pairs --temperature 0 --generate 2 --repetition-penalty 1.1 --prompt ba job.amp
python3 -c 'import sys; sys.stdout.buffer.write(bytes(b for c in sys.argv[1] for b in (ord(c), 0)))' "the cat " >tokens.bin
prints "tokens in, numbers out" "$(printf '%d ' \'t \'h \'e 32 \'c \'a \'t 32 \'s \'a)$(printf '%d' \'t)"$'\n' $next --generate 3 --prompt-file tokens.bin
SHELL=$BASH script -qec "timeout 100 $amp infer -q --device cpu --weights w.safetensors --block control --temperature 0 --generate 6 --prompt $'\x1a' job.amp" /dev/null >out 2>err </dev/null
[ "$(tr -d '\r' <out)" = '\x1a\x1b\x1c\x1d\x1e\x1f ' ] || failed "control characters on a terminal"
prints "a file gets the bytes" $'\x1a\x1b\x1c' infer --block control --temperature 0 --generate 2 --prompt $'\x1a' job.amp
passes "how fast" timeout 100 "$amp" infer --device cpu --weights w.safetensors --block last --generate 3 --prompt "$sentence" job.amp
grep -Eq '^prompt: 41 tokens in [0-9.]+ s; 3 tokens in [0-9.]+ s \([0-9.]+ a second\)$' err || failed "how fast"

# ---- stop strings ---------------------------------------------------------------------------
prints "a stop string" 'the cat sat on the ' $next --generate 68 --prompt 'the cat sat on ' --stop 'mat,'
prints "the first of several" 'the cat sat on the mat, ' $next --generate 68 --prompt 'the cat sat on ' --stop dog --stop 'and the dog' --stop ran
prints "only the generated text counts" "${sentence}the " $next --generate 68 --prompt 'the cat sat on ' --stop 'cat sat'
prints "one that never comes" "${sentence}" $next --generate 26 --prompt 'the cat sat on ' --stop 'cat ran'
prints "one that has begun when the text ends" "${sentence}the cat" $next --generate 33 --prompt 'the cat sat on ' --stop 'the cat ran'
prints "the bytes of a character" é infer --block accents --temperature 0 --generate 9 --prompt é --stop é job.amp
prints "half a character" $'é\xc3' infer --block accents --temperature 0 --generate 9 --prompt é --stop $'\xa9' job.amp
prints "the same half of another character" ééé infer --block accents --temperature 0 --generate 4 --prompt é --stop è job.amp
passes "how many tokens" timeout 100 "$amp" infer --device cpu --weights w.safetensors --block accents --temperature 0 --generate 9 --prompt é --stop é job.amp
grep -q '; 2 tokens in' err || failed "a stop string: how many tokens"

# ---- a library -------------------------------------------------------------------------------------
grep -v '^train\|^optimizer\|^infer' job.amp >net.amp
grep '^infer next' job.amp >>net.amp
passes "library" "$ampc" --library --target=cpu --dim N=1 --dim S=2,4,8,16 -o net.c net.amp
passes "header" "$ampc" --dim N=1 --dim S=2,4,8,16 -o net.h net.amp
cat >call.c <<'EOF2'
#include <stdio.h>
#include <string.h>
#include "net.h"
int main(void)
{
  static float logits[16 * 128];
  struct ampc_runtime *rt = NULL;
  int64_t ids[100] = {'t', 'h', 'e'}, n = 3;
  if (net_open("cpu", "w.safetensors", NULL, &rt)) return puts(net_error()), 3;
  for (; n < 63; n++) {
    int64_t from = n < 16 ? 0 : n - 16, length = n - from, size = 2, best = 0;
    while (size < length) size *= 2;
    if (net_next(rt, 1, size, ids + from, logits)) return puts(net_error()), 4;
    const float *x = logits + (length - 1) * 128;
    for (int64_t i = 0; i < 128; i++)
      if (x[i] > x[best]) best = i;
    ids[n] = best;
  }
  for (int64_t i = 0; i < n; i++) putchar((int)ids[i]);
  net_close(rt);
  return 0;
}
EOF2
line=$("$ampc" --build-line --library --target=cpu --dim N=1 --dim S=2,4,8,16 -o net.c net.amp)
passes "library: compiles" sh -c "$line -Wall -Werror"
libraries="-L$(dirname "$ampc") -lampcrt -lz -ldnnl -lgomp -ljansson -lxxhash -lpthread -ldl -lm"
# shellcheck disable=SC2086 # words
passes "C" cc -std=c11 -I. -o call call.c net.o $libraries
passes "called from C" ./call
cp out called
passes "the same prompt" $next --generate 60 --prompt the
cp out said
same "a C program writes the same text" called said

# ---- errors -------------------------------------------------------------------------------
ask="--generate 5 --prompt abc job.amp"
refuses "attention to later tokens" 2 'infer `ahead` is not causal: its logits for token 2 depend on the tokens after it' infer --block ahead $ask
[ -s out ] && failed "a refused block: the prompt is printed"
passes "padded" timeout 100 "$amp" infer --device cpu --weights w.safetensors --block next --no-cache $ask
grep -q '^the text is padded, so a number that depends on its length, such as 1 / S, is that of the padded text$' err || failed "padded: no line"
passes "not padded" timeout 100 "$amp" infer --device cpu --weights w.safetensors --block next $ask
grep -q padded err && failed "not padded: a line"
prints "one position of a growing text" "${sentence:0:14}" infer --block short --temperature 0 --generate 6 --prompt "${sentence:0:8}" job.amp
refuses "one position of a text that is padded" 2 'infer `short` returns f32\[1, 128\], the logits after the last token only, so a text cannot be padded' infer --no-cache --block short $ask
prints "each token from all before it" "$sentence$sentence" $next --no-cache --generate 41 --prompt "$sentence"
passes "longer than the context" timeout 100 "$amp" infer --device cpu --weights w.safetensors --block next --generate 9 --prompt 'the cat sat' job.amp
grep -q '^the text will have 19 tokens and infer `next` reads at most 16: later tokens depend on the last 16 alone, and take longer' err || failed "longer than the context: no line"
refuses "a prompt shorter than the block" 2 'the prompt has 3 tokens; infer `last` reads 16' infer --block last $ask
refuses "two texts" 2 'the argument of infer `two` is i64\[2, 16\]' infer --block two $ask
refuses "two texts, by a dim" 1 'E614.*infer `next` takes i64\[2, [0-9]*\]; expected the tokens of one text' infer --block next --dim N=2 $ask
refuses "no tokens" 2 'the argument of infer `numbers` is f32\[1, 16\]' infer --block numbers $ask
refuses "two results" 2 'infer `pair` has 2 results' infer --block pair $ask
refuses "two arguments" 2 'infer `more` has 2 arguments' infer --block more $ask
refuses "a vocabulary larger than bytes" 2 'infer `wide` has a vocabulary of 300 tokens, so a prompt cannot be bytes of text' infer --block wide $ask
refuses "not finite" 5 'the logits after token 2 are not finite' infer --block nothing $ask
refuses "a byte that it does not know" 2 'token 1 of the text is 195; infer `next` takes numbers below 128' infer --block next --generate 5 --prompt 'aä' job.amp
printf '\1\2\3' >odd.bin
refuses "half a token" 3 'odd.bin has 3 bytes' infer --block next --generate 5 --prompt-file odd.bin job.amp
refuses "an empty file" 3 'is empty' infer --block next --generate 5 --prompt-file /dev/null job.amp
refuses "no file" 3 'cannot read gone' infer --block next --generate 5 --prompt-file gone job.amp
refuses "no prompt" 2 'needs a text to continue' infer --block next --generate 5 job.amp
refuses "an empty prompt" 2 'prompt is empty' infer --block next --generate 5 --prompt '' job.amp
refuses "two prompts" 2 'prompt cannot be combined with --prompt-file' infer --block next --prompt-file text.txt $ask
refuses "data, too" 2 'data cannot be combined with --generate' infer --block next --data 'text()' $ask
refuses "an input, too" 2 'input cannot be combined with --generate' infer --block next --input x.npy $ask
refuses "classes, too" 2 'top cannot be combined with --generate' infer --block next --top 3 $ask
refuses "a prompt alone" 2 'prompt needs --generate' infer --block next --prompt a job.amp
refuses "a temperature alone" 2 'temperature needs --generate' infer --block next --temperature 1 job.amp
refuses "a temperature below zero" 2 'temperature=-1: expected 0 or more' infer --temperature=-1 $ask
refuses "no temperature" 2 'temperature hot: expected 0 or more' infer --temperature hot $ask
refuses "none of the likeliest" 2 'top-k 0' infer --top-k 0 $ask
refuses "a top-p above 1" 2 'top-p 1.5: expected a number from 0 to 1' infer --top-p 1.5 $ask
refuses "a min-p below 0" 2 'min-p=-0.1: expected a number from 0 to 1' infer --min-p=-0.1 $ask
refuses "a penalty of 0" 2 'repetition-penalty 0: expected a finite number above 0' infer --repetition-penalty 0 $ask
refuses "an empty stop string" 2 'stop : expected a text of at least one byte' infer --stop '' $ask
refuses "a stop string among numbers" 2 'stop: after the tokens of tokens.bin the output is numbers' infer --block next --generate 5 --prompt-file tokens.bin --stop a job.amp
refuses "a stop string alone" 2 'stop needs --generate' infer --block next --stop a job.amp
passes "choices of one token" $next --generate 3 --prompt the --top-p 0.5 --top-k 3
grep -q '^warning: --top-k --top-p: no effect with --temperature 0' err || failed "top-k, top-p with temperature 0"
passes "a penalty, and a choice" infer --temperature 1 --block next --generate 3 --prompt the --min-p 0.5 job.amp
[ ! -s err ] || failed "a warning without a reason"
refuses "no tokens to be written" 2 'generate 0' infer --generate 0 --prompt a job.amp
[ $failures -eq 0 ]
