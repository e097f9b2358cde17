/* Generates text with a language model. An infer block computes the logits after each position. One
 * token is drawn and appended, then the block runs again. The loop runs on the host, so the block
 * stays a function of its arguments. If the length of the text is a dim, the block is compiled for
 * a few lengths, each twice the previous one. Each step uses the smallest length that the text fits
 * in. */
#include "generate.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include "common/clock.h"
#include "runtime/plan/types.h"
#include "sample.h"
#include "text_out.h"

enum { BYTES = 256 };
static const uint64_t stream = 0x74657874; /* stream of random numbers: "text" in ASCII */

/* ---- checks of the blocks ---- */

typedef struct Generation {
  ampc_runtime *rt;
  const ampc_program *program;
  const InferCommand *cmd;
  const ampc_output_desc *result; /* result of the last block; the blocks differ only in length */
  int64_t n, most;                /* n: tokens so far; most: longest input of a block */
  int64_t *token;
  int64_t vocabulary;
  void *in, *out; /* buffers for the argument and the result of a block */
  double *logits, *order;
  int64_t first, done; /* decoder: tokens [first, done) are computed */
  bool checked; /* check_causal has run */
} Generation;

static const ampc_output_desc *result_of(const ampc_program *p, uint32_t block, uint32_t *count)
{
  const ampc_output_desc *found = NULL;
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    if (p->outputs[i].block != block) continue;
    found = &p->outputs[i];
    ++*count;
  }
  return found;
}

static const ampc_source *argument_of(const ampc_program *p, uint32_t block)
{
  return &p->sources[p->blocks[block].first_source];
}

/* Checks that the argument is the tokens of one text, and the result the logits after each token or
 * after the last one. */
static ampc_status check_block(const ampc_program *p, uint32_t block)
{
  char in_text[AMPC_TYPE_ROOM], out_text[AMPC_TYPE_ROOM];
  uint32_t count = 0;
  const ampc_source *in = argument_of(p, block);
  const ampc_output_desc *out = result_of(p, block, &count);
  const char *name = p->blocks[block].call;
  ampc_type_text(in_text, in->dtype, in->rank, in->dim);
  if (in->rank != 2 || in->dim[0] != 1 || ampc_is_float(in->dtype) || in->dtype == AMPC_BOOL)
    return ampc_fail(
        AMPC_BAD_USAGE,
        "--generate: the argument of infer `%s` is %s; expected the tokens of one text: "
        "i64[1, S], i32 or u8",
        name, in_text);
  if (count != 1)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--generate: infer `%s` has %u results; expected one, the logits", name,
                     count);
  ampc_type_text(out_text, out->dtype, out->rank, out->dim);
  bool all = out->rank == 3 && out->dim[0] == 1 && out->dim[1] == in->dim[1];
  bool last = out->rank == 2 && out->dim[0] == 1;
  if (!ampc_is_float(out->dtype) || (!all && !last))
    return ampc_fail(
        AMPC_BAD_USAGE,
        "--generate: infer `%s` returns %s for %s; expected the logits after each token, "
        "float[1, %lld, V], or after the last one, float[1, V]",
        name, out_text, in_text, (long long)in->dim[1]);
  if (all || !p->blocks[block].n_sizes) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "--generate: infer `%s` returns %s, the logits after the last token only, so a text "
      "cannot be padded to the size of the block: write a number for that size, or return "
      "the logits after all tokens, float[1, S, V]",
      name, out_text);
}

static bool is_decoder(const ampc_program *p)
{
  return p->blocks[0].context > 0;
}

static ampc_status check_prompt(const Generation *t)
{
  const PromptText *prompt = &t->cmd->text;
  const char *name = t->program->blocks[0].call;
  if (!prompt->numbers && !prompt->tokenizer && t->vocabulary > BYTES)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--generate: infer `%s` has a vocabulary of %lld tokens, so a prompt cannot "
                     "be bytes of text: --tokenizer FILE makes tokens of it; or give token numbers "
                     "in a file, --prompt-file FILE.bin",
                     name, (long long)t->vocabulary);
  for (int64_t i = 0; i < prompt->n; i++)
    if (prompt->at[i] >= t->vocabulary)
      return ampc_fail(
          AMPC_BAD_USAGE,
          "--generate: %s %lld of the prompt is %lld; infer `%s` takes numbers below %lld",
          prompt->numbers || prompt->tokenizer ? "token" : "byte", (long long)i,
          (long long)prompt->at[i], name, (long long)t->vocabulary);
  if (t->result->rank == 3 || prompt->n >= t->most || is_decoder(t->program)) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "--generate: the prompt has %lld tokens; infer `%s` reads %lld and returns the logits "
      "after the last one: give a prompt at least as long, or return the logits after all "
      "tokens, float[1, %lld, %lld]",
      (long long)prompt->n, name, (long long)t->most, (long long)t->most, (long long)t->vocabulary);
}

static ampc_status text_open(Generation *t)
{
  const ampc_program *p = t->program;
  int64_t most_out = 0;
  uint32_t count = 0;
  for (uint32_t b = 0; b < (is_decoder(p) ? 1 : p->n_blocks); b++) {
    ampc_status status = check_block(p, b);
    if (status) return status;
    t->result = result_of(p, b, &count);
    int64_t context = p->blocks[b].context;
    int64_t length = context ? context : argument_of(p, b)->dim[1], elements = ampc_output_elements(t->result);
    if (length > t->most) t->most = length;
    if (elements > most_out) most_out = elements;
  }
  t->vocabulary = t->result->dim[t->result->rank - 1];
  ampc_status status = check_prompt(t);
  if (status) return status;
  size_t tokens = (size_t)t->cmd->text.n + t->cmd->generate, v = (size_t)t->vocabulary;
  t->token = malloc(tokens * sizeof *t->token);
  t->in = malloc((size_t)t->most * sizeof(int64_t));
  t->out = malloc((size_t)(most_out * ampc_element_size(p, t->result->dtype)));
  t->logits = malloc(v * sizeof *t->logits);
  t->order = malloc(v * sizeof *t->order);
  if (!t->token || !t->in || !t->out || !t->logits || !t->order)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for text");
  memcpy(t->token, t->cmd->text.at, (size_t)t->cmd->text.n * sizeof *t->token);
  t->n = t->cmd->text.n;
  return AMPC_OK;
}

static void text_close(Generation *t)
{
  free(t->token);
  free(t->in);
  free(t->out);
  free(t->logits);
  free(t->order);
}

/* ---- a token ---- */

/* Returns the shortest block whose length is at least n. */
static uint32_t block_for(const ampc_program *p, int64_t n)
{
  uint32_t best = 0;
  for (uint32_t b = 1; b < p->n_blocks; b++) {
    int64_t length = argument_of(p, b)->dim[1], other = argument_of(p, best)->dim[1];
    if (length >= n && (length < other || other < n)) best = b;
  }
  return best;
}

/* Runs the block on the last `n` tokens and pads them with token `pad`. Stores the logits after
 * token n in t->logits. */
static ampc_status ask(Generation *t, uint32_t block, int64_t n, int64_t pad)
{
  uint32_t count = 0;
  const ampc_source *in = argument_of(t->program, block);
  const ampc_output_desc *out = result_of(t->program, block, &count);
  for (int64_t i = 0; i < in->dim[1]; i++)
    number_store(in->dtype, false, t->in, i, (double)(i < n ? t->token[t->n - n + i] : pad));
  ampc_status status =
      ampc_infer(t->rt, block, (const void *const[]){t->in}, (void *const[]){t->out});
  int64_t first = out->rank == 3 ? (n - 1) * t->vocabulary : 0;
  for (int64_t i = 0; i < t->vocabulary && !status; i++)
    t->logits[i] = number_load(out->dtype, t->program->real64, t->out, first + i);
  return status;
}

/* Refuses a model that is not causal, because padding would change its logits. The model must
 * compute the same bits for the same text with another padding token. */
static ampc_status check_causal(Generation *t, uint32_t block, int64_t n)
{
  size_t bytes = (size_t)t->vocabulary * sizeof *t->logits;
  t->checked = true;
  memcpy(t->order, t->logits, bytes);
  ampc_status status = ask(t, block, n, t->vocabulary - 1);
  if (status || memcmp(t->order, t->logits, bytes) == 0) return status;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "--generate: infer `%s` is not causal: its logits for token %lld depend on the tokens "
      "after it",
      t->program->blocks[block].call, (long long)(n - 1));
}

/* Computes the logits after the last token from all tokens of the longest block that fits. */
static ampc_status ask_all(Generation *t)
{
  int64_t n = t->n < t->most ? t->n : t->most;
  uint32_t block = block_for(t->program, n);
  ampc_status status = ask(t, block, n, 0);
  if (!status && !t->checked && n < argument_of(t->program, block)->dim[1])
    status = check_causal(t, block, n);
  return status;
}

/* Continues the text with its new tokens. If it is longer than the decoder's context, the last
 * tokens are a text that begins anew. */
static ampc_status ask_decoder(Generation *t)
{
  int64_t first = t->n > t->most ? t->n - t->most : 0;
  if (first != t->first) t->done = t->first = first;
  ampc_status status =
      ampc_decode(t->rt, t->token + first, t->done - first, t->n - first, t->out);
  t->done = t->n;
  for (int64_t i = 0; i < t->vocabulary && !status; i++)
    t->logits[i] = number_load(t->result->dtype, t->program->real64, t->out, i);
  return status;
}

/* Appends one token. If the text is longer than the longest block, the block reads only the last
 * tokens. */
static ampc_status next_token(Generation *t)
{
  ampc_status status = is_decoder(t->program) ? ask_decoder(t) : ask_all(t);
  if (status) return status;
  uint64_t drawn = (uint64_t)(t->n - t->cmd->text.n);
  double u = philox_uniform(t->program->seed, stream, drawn);
  t->token[t->n] =
      sample_token(&t->cmd->sampling, t->logits, t->vocabulary, t->token, t->n, u, t->order);
  if (t->token[t->n] < 0)
    return ampc_fail(AMPC_RUN_FAILED,
                     "the logits after token %lld are not finite, so no token can be drawn",
                     (long long)(t->n - 1));
  t->n++;
  return AMPC_OK;
}

/* ---- the text ---- */

ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd)
{
  Generation t = {.rt = rt, .program = ampc_program_of(rt), .cmd = cmd};
  const PromptText *prompt = &cmd->text;
  TextOut w = {.to = stdout,
               .tokenizer = prompt->tokenizer,
               .numbers = prompt->numbers,
               .terminal = isatty(STDOUT_FILENO),
               .first = prompt->chat ? prompt->n : 0,
               .stop = cmd->stop,
               .n_stops = cmd->n_stops};
  w.line = w.terminal || prompt->numbers || prompt->chat;
  double begun = seconds_now();
  ampc_status status = text_open(&t);
  if (!status) status = text_out_put(&w, t.token, t.n, false);
  uint32_t i = 0;
  for (bool end = false; !end && !w.stopped && !status; i++) {
    status = next_token(&t);
    bool stop = !status && t.token[t.n - 1] == cmd->text.stop;
    end = stop || i + 1 == cmd->generate;
    if (!status) status = text_out_put(&w, t.token, t.n, end);
  }
  double taken = seconds_now() - begun;
  if (!status && !cmd->quiet)
    fprintf(stderr, "%u tokens in %.2f s (%.1f a second)\n", i, taken,
            i / (taken > 0 ? taken : 1e-9));
  text_close(&t);
  return status;
}
