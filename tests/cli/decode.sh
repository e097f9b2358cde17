#!/usr/bin/env bash
# The functions that `--library --decode BLOCK` makes, called from C and C++: the logits have the bits of the block, also
# for two texts at once and after rewind. Wrong calls, blocks and options are refused. examples/chat is built by CMake,
# and its greedy text is that of amp infer.
#   decode.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
libraries="-L$(dirname "$ampc") -lampcrt -lz -ljansson -lxxhash -lpthread -ldl -lm"
sed "s|^const TEXT = \"[^\"]*\"|const TEXT = \"$source_dir/examples/chat/main.c\"|" "$source_dir/examples/chat/chat.amp" >chat.amp
passes "a training" "$amp" train -q --device cpu --set train.steps=30 --save chat.safetensors chat.amp

build() { # build JOB FLAGS OPTIONS...: JOB.o, compiled with these flags, and JOB.h of JOB.amp
  local job=$1 flags=$2
  shift 2
  passes "$job: library" "$ampc" --library --no-onednn "$@" -o "$job.c" "$job.amp"
  passes "$job: header" "$ampc" "$@" -o "$job.h" "$job.amp"
  passes "$job: compiles" sh -c "$("$ampc" --build-line --library --no-onednn "$@" -o "$job.c" "$job.amp") $flags"
}
warnings="-Wall -Wextra -Werror"

# ---- bits -----------------------------------------------------------------------------------------
cp chat.amp whole.amp
build chat "$warnings" --decode next
build whole -w
cat >call.c <<'C'
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "chat.h"
#include "whole.h"
enum { V = CHAT_NEXT_VOCABULARY, T = CHAT_NEXT_CONTEXT, PROMPT = 70 };
static float want[2][T][V], logits[V];
static int64_t token[2][T];
static int differs(struct ampc_sequence *s, int k, int64_t from, int64_t to)
{
  return chat_next_next(s, token[k] + from, to - from, logits) || memcmp(logits, want[k][to - 1], sizeof logits);
}
static int refused(int status, const char *why)
{
  return status == 2 && strstr(chat_error(), why) ? 1 : (fprintf(stderr, "%d: %s\n", status, chat_error()), 0);
}
int main(int argc, char **argv)
{
  struct ampc_runtime *rt, *all;
  struct ampc_sequence *s[2] = {NULL, NULL}, *none = NULL;
  if (argc < 2 || chat_open("cpu", argv[1], NULL, &rt) || whole_open("cpu", argv[1], NULL, &all)) return 1;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < T; i++) token[k][i] = (i * 37 + k * 11 + i * i) % V;
  for (int k = 0; k < 2; k++)
    if (whole_next(all, T, token[k], &want[k][0][0]) || chat_next_begin(rt, &s[k])) return 2;
  if (memcmp(want[0], want[1], sizeof want[0]) == 0) return 3;
  if (differs(s[0], 0, 0, PROMPT) || differs(s[1], 1, 0, 3)) return 4;
  for (int i = 0; i < T - PROMPT; i++)
    if (differs(s[0], 0, PROMPT + i, PROMPT + i + 1) || differs(s[1], 1, 3 + i, 4 + i)) return 5;
  static float row[2][V];
  if (chat_next_rewind(s[0], 0) || chat_next_rewind(s[1], 0) || differs(s[0], 0, 0, PROMPT) || differs(s[1], 1, 0, 3)) return 24;
  for (int i = 0; i < T - PROMPT; i++) { /* in one step; in the other order, too */
    const int a = i & 1, b = !a, at[2] = {PROMPT + i, 3 + i};
    if (chat_next_together((struct ampc_sequence *[]){s[a], s[b]}, 2, (int64_t[]){token[a][at[a]], token[b][at[b]]},
                           (float *[]){row[a], row[b]})) return 25;
    if (memcmp(row[0], want[0][at[0]], sizeof row[0]) || memcmp(row[1], want[1][at[1]], sizeof row[1])) return 26;
  }
  float *to[2] = {row[0], row[1]};
  if (!refused(chat_next_together(s, 2, (int64_t[]){1, 2}, to), "text 0 of 2: 1 tokens after 128")) return 27;
  if (!refused(chat_next_together(s, 0, token[0], to), "") || !refused((int)ampc_sequences_next(s, 2, NULL, (void *[]){row, row}), "")) return 28;
  if (!refused(chat_next_next(s[0], token[0], 1, logits), "1 tokens after 128; chat is compiled for texts of 128")) return 6;
  if (chat_next_rewind(s[0], 20) || differs(s[0], 0, 20, 90) || chat_next_rewind(s[0], 0)) return 7;
  if (!refused(chat_next_together(s, 2, (int64_t[]){256, 1}, to), "text 0 of 2: token 0 of 1 is 256")) return 29;
  if (!refused(chat_next_together(s, 2, (int64_t[]){1, 1}, (float *[]){row[0], NULL}), "")) return 30;
  if (differs(s[0], 1, 0, 9) || differs(s[0], 1, 9, 30)) return 8; /* another text in the same cache */
  if (!refused(chat_next_rewind(s[0], 31), "ampc_sequence_rewind") || !refused(chat_next_rewind(s[0], -1), "")) return 9;
  if (!refused(chat_next_next(s[0], token[0], T, logits), "128 tokens after 30")) return 10;
  if (!refused(chat_next_next(s[0], token[0], INT64_MAX, logits), "after 30")) return 11;
  if (!refused(chat_next_next(s[0], token[0], 0, logits), "")) return 12;
  if (!refused(chat_next_next(s[0], (int64_t[]){1, 256, 2}, 3, logits), "token 1 of 3 is 256, expected 0 to 255")) return 13;
  if (!refused(chat_next_next(s[0], (int64_t[]){-1}, 1, logits), "token 0 of 1 is -1, expected 0 to 255")) return 14;
  if (differs(s[0], 1, 30, 31)) return 15; /* nothing has changed */
  if (!refused(ampc_sequence_begin(all, &none), "whole has no block that continues a text") || none) return 16;
  if (!refused(chat_next_begin(NULL, &none), "NULL") || !refused(chat_next_begin(rt, NULL), "NULL")) return 17;
  if (!refused(chat_next_next(NULL, token[0], 1, logits), "NULL")) return 18;
  if (!refused(chat_next_next(s[0], NULL, 1, logits), "NULL")) return 19;
  if (!refused(chat_next_next(s[0], token[0], 1, NULL), "NULL")) return 20;
  if (chat_next_cache_bytes() != 2 * T * 96 * (int64_t)sizeof(float)) return 21; /* keys and values of one block */
  if (ampc_memory_of(rt).space[AMPC_CACHE] != chat_next_cache_bytes()) return 22;
  for (int k = 0; k < 2; k++) chat_next_end(s[k]);
  chat_next_end(NULL);
  chat_close(rt);
  whole_close(all);
  return 0;
}
C
include="-I. -I$(dirname "$ampc")/include"
# shellcheck disable=SC2086 # words
passes "C" cc -std=c11 -Wall -Wextra -Werror -pedantic $include -o call call.c chat.o whole.o $libraries
passes "called from C" ./call chat.safetensors
if command -v g++ >/dev/null; then
  echo '#include "chat.h"
int main() { chat_next_end(nullptr); return chat_next_cache_bytes() ? 0 : CHAT_NEXT_CONTEXT; }' >call.cpp
  # shellcheck disable=SC2086
  passes "C++" g++ -Wall -Wextra -Werror -I. -o callpp call.cpp chat.o $libraries
  passes "called from C++" ./callpp
fi

# ---- a net that carries values, and a result in 16 bits ----------------------------------------------------
cat >lstm.amp <<'AMP'
dim S(max=40)
module Net {
  embed = Embedding(9, 8)
  lstm = LSTM(8, 8, batch_first=true)
  def forward(x) { y, state = lstm(embed(x)); return y }
}
model net = Net()
infer open(ids: u8[1, S]) -> bf16[1, S, 8] { return net(ids) }
AMP
build lstm "$warnings" --decode open
grep -q 'LSTM_OPEN__VOCABULARY = 8, ' lstm.h && grep -q 'token   i64\[n\], from 0 to 8$' lstm.h &&
  grep -q 'bf16\[LSTM_OPEN__VOCABULARY\]' lstm.h && grep -q 'so n is 0' lstm.h || failed "lstm: the header"
cat >carries.c <<'C'
#include <stdio.h>
#include <string.h>
#include "ampc_rt.h"
#include "lstm.h"
int main(void)
{
  struct ampc_runtime *rt;
  struct ampc_sequence *s;
  const int64_t token[] = {1, 2, 3, 4};
  uint16_t first[LSTM_OPEN__VOCABULARY], again[LSTM_OPEN__VOCABULARY], last[LSTM_OPEN__VOCABULARY];
  if (ampc_create(lstm_program(), "cpu", &rt) || ampc_init_params(rt, 1) || lstm_open__begin(rt, &s)) return 1;
  if (lstm_open__next(s, token, 1, first) || lstm_open__next(s, token + 1, 3, last)) return 2;
  if (lstm_open__rewind(s, 1) != 2 || !strstr(lstm_error(), "to its beginning, not to token 1")) return 3;
  if (lstm_open__rewind(s, 4) || lstm_open__rewind(s, 0) || lstm_open__next(s, token, 1, again)) return 4;
  if (memcmp(first, again, sizeof first) || !memcmp(first, last, sizeof first)) return 5;
  lstm_open__end(s);
  lstm_close(rt);
  return 0;
}
C
# shellcheck disable=SC2086
passes "lstm: C" cc -std=c11 -Wall -Wextra -Werror $include -o carries carries.c lstm.o $libraries
passes "lstm: called from C" ./carries

# ---- options -------------------------------------------------------------------------------------
refuses "a program" 2 'no main\(\): add --library' "$ampc" --decode next -o x.c chat.amp
refuses "Fortran" 2 'write interfaces with bind\(c\)' "$ampc" --decode next -o x.f90 chat.amp
refuses "another name" 1 'E207.*--decode nxt: no such infer block' "$ampc" --check --decode nxt chat.amp
grep -q 'help: there is `next`' err || failed "another name: the list"
passes "a GPU" "$ampc" --library --decode next --target=sm_90 -o chat.cu chat.amp
passes "the same header for a GPU" "$ampc" --decode next --target=sm_90 -o gpu.h chat.amp
same "the same header for a GPU" chat.h gpu.h
passes "a shorter context" "$ampc" --decode next --dim S=32,48 -o short.h chat.amp
grep -q 'NEXT_CONTEXT = 48 ' short.h || failed "a shorter context"
passes "memory" "$ampc" --decode next --target=cpu --emit=memory chat.amp
grep -q ' 98,304  cache of a text' out || failed "memory"

wrong() { # wrong NAME BLOCK PATTERN: a block that has no decoder
  printf 'dim S(max=64)\ndim N(min=2, max=4)\ndim O(max=1)\nmodel e = Embedding(10, 8)\n%s\n' "$2" >wrong.amp
  refuses "$1" 1 "E614.*infer \`f\` $3" "$ampc" --check --decode f wrong.amp
  grep -q 'write `infer f(ids: i64\[1, S\]) -> float\[1, S, V\] { ... }`, with `dim S(max=1024)`' err || failed "$1: no cure"
}
wrong "no argument" 'infer f() -> f32[2] { return zeros(2) }' 'has 0 arguments; expected one'
wrong "two arguments" 'infer f(a: i64[1, S], b: i64[1, S]) { return e(a) + e(b) }' 'has 2 arguments'
wrong "floats" 'infer f(ids: f32[1, S]) { return ids.unsqueeze(2) }' 'takes f32\[1, 64\]; expected the tokens'
wrong "two texts" 'infer f(ids: i64[2, S]) { return e(ids) }' 'takes i64\[2, 64\]'
wrong "N texts" 'infer f(ids: i64[N, S]) { return e(ids) }' 'takes i64\[2, 64\]'
wrong "a number" 'infer f(ids: i64[1, 64]) { return e(ids) }' 'takes a number of tokens that is not a .dim.'
wrong "two results" 'infer f(ids: i64[1, S]) { return e(ids), e(ids) }' 'has several results'
wrong "integers" 'infer f(ids: i64[1, S]) { return ids.unsqueeze(2) }' 'returns i64\[1, 64, 1\] for 64 tokens'
wrong "a score" 'infer f(ids: i64[1, S]) { return e(ids).sum(2) }' 'returns f32\[1, 64\] for 64 tokens; expected the logits'
printf 'dim O(max=1)\nmodel e = Embedding(10, 8)\ninfer f(ids: i64[1, O]) { return e(ids) }\n' >wrong.amp
refuses "one length" 1 'E614.*dim `O` has only the size 1' "$ampc" --check --decode f wrong.amp
echo 'const A = 1' >wrong.amp
refuses "no block" 1 'E207.*--decode f' "$ampc" --check --decode f wrong.amp
grep -q 'help: the job has none: `infer f(ids' err || failed "no block: help"

# ---- the example ---------------------------------------------------------------------------------
passes "cmake" cmake -S "$source_dir/examples/chat" -B example -Dampc_DIR="$(dirname "$ampc")"
passes "builds" cmake --build example
printf 'The type of \n\nA layer\n' >prompts
passes "runs" sh -c './example/chat chat.safetensors 0.5 <prompts'
[ "$(grep -c '^0: \(The type of \|A layer\).' out)" = 2 ] && [ "$(grep -c '^0\.5: ' out)" = 2 ] || failed "two texts for each prompt"
said=$(sed -n 's/^0: The type of //p' out)
passes "amp infer" "$amp" infer -q --device cpu --weights chat.safetensors --generate 60 --prompt 'The type of ' --temperature 0 chat.amp
[ "$(head -1 out)" = "The type of $said" ] || failed "amp infer continues with '$(head -1 out)'"
[ "$(wc -l <"$source_dir/examples/chat/main.c")" -lt 80 ] || failed "the example is no longer short"
finish
