/* A language model and a text that grows.
 *
 * A decoder (ampc_decode) computes each token once. For a block without one, the whole text goes
 * through the block for each token. If its length is a dim, the block is compiled for a few
 * lengths, each twice the previous one; the shortest one that the text fits in is used. */
#include "text_model.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include "runtime/plan/types.h"

static const uint64_t stream = 0x74657874; /* stream of random numbers: "text" in ASCII */

/* ---- checks of the blocks ---- */

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
static ampc_status check_block(const TextModel *m, uint32_t block)
{
  const ampc_program *p = m->program;
  char in_text[AMPC_TYPE_ROOM], out_text[AMPC_TYPE_ROOM];
  uint32_t count = 0;
  const ampc_source *in = argument_of(p, block);
  const ampc_output_desc *out = result_of(p, block, &count);
  const char *name = p->blocks[block].call;
  ampc_type_text(in_text, in->dtype, in->rank, in->dim);
  if (in->rank != 2 || in->dim[0] != 1 || ampc_is_float(in->dtype) || in->dtype == AMPC_BOOL)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s: the argument of infer `%s` is %s; expected the tokens of one text: "
                     "i64[1, S], i32 or u8",
                     m->what, name, in_text);
  if (count != 1)
    return ampc_fail(AMPC_BAD_USAGE, "%s: infer `%s` has %u results; expected one, the logits",
                     m->what, name, count);
  ampc_type_text(out_text, out->dtype, out->rank, out->dim);
  bool all = out->rank == 3 && out->dim[0] == 1 && out->dim[1] == in->dim[1];
  bool last = out->rank == 2 && out->dim[0] == 1;
  if (!ampc_is_float(out->dtype) || (!all && !last))
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s: infer `%s` returns %s for %s; expected the logits after each token, "
                     "float[1, %lld, V], or after the last one, float[1, V]",
                     m->what, name, out_text, in_text, (long long)in->dim[1]);
  if (all || !p->blocks[block].n_sizes) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "%s: infer `%s` returns %s, the logits after the last token only, so a text "
      "cannot be padded to the size of the block: write a number for that size, or return "
      "the logits after all tokens, float[1, S, V]",
      m->what, name, out_text);
}

bool text_model_is_decoder(const TextModel *m)
{
  return m->program->blocks[0].context > 0;
}

/* ---- beginning and end ---- */

static ampc_status take_blocks(TextModel *m, int64_t *most_out)
{
  const ampc_program *p = m->program;
  uint32_t count = 0;
  for (uint32_t b = 0; b < (text_model_is_decoder(m) ? 1 : p->n_blocks); b++) {
    ampc_status status = check_block(m, b);
    if (status) return status;
    m->result = result_of(p, b, &count);
    int64_t context = p->blocks[b].context, elements = ampc_output_elements(m->result);
    int64_t length = context ? context : argument_of(p, b)->dim[1];
    if (length > m->most) m->most = length;
    if (elements > *most_out) *most_out = elements;
  }
  m->vocabulary = m->result->dim[m->result->rank - 1];
  return AMPC_OK;
}

ampc_status text_model_open(TextModel *m, const char *what, ampc_runtime *rt)
{
  int64_t most_out = 0;
  *m = (TextModel){.what = what, .rt = rt, .program = ampc_program_of(rt)};
  ampc_status status = take_blocks(m, &most_out);
  if (status) return status;
  size_t v = (size_t)m->vocabulary;
  m->in = malloc((size_t)m->most * sizeof(int64_t));
  m->out = malloc((size_t)(most_out * ampc_element_size(m->program, m->result->dtype)));
  m->logits = malloc(v * sizeof *m->logits);
  m->order = malloc(v * sizeof *m->order);
  if (!m->in || !m->out || !m->logits || !m->order)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for text");
  return text_model_is_decoder(m) ? ampc_sequence_begin(rt, &m->sequence) : AMPC_OK;
}

void text_model_close(TextModel *m)
{
  ampc_sequence_end(m->sequence);
  free(m->token);
  free(m->in);
  free(m->out);
  free(m->logits);
  free(m->order);
}

ampc_status text_model_add(TextModel *m, const int64_t *token, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    if (token[i] >= m->vocabulary)
      return ampc_fail(AMPC_BAD_USAGE,
                       "%s: token %lld of the text is %lld; infer `%s` takes numbers below %lld",
                       m->what, (long long)(m->n + i), (long long)token[i],
                       m->program->blocks[0].call, (long long)m->vocabulary);
  if (m->n + n > m->room) {
    int64_t room = 2 * (m->n + n);
    int64_t *more = realloc(m->token, (size_t)room * sizeof *more);
    if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for text");
    m->token = more;
    m->room = room;
  }
  memcpy(m->token + m->n, token, (size_t)n * sizeof *token);
  m->n += n;
  return AMPC_OK;
}

ampc_status text_model_clear(TextModel *m)
{
  m->n = m->done = m->first = 0;
  return m->sequence ? ampc_sequence_rewind(m->sequence, 0) : AMPC_OK;
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
 * token n in m->logits. */
static ampc_status ask(TextModel *m, uint32_t block, int64_t n, int64_t pad)
{
  uint32_t count = 0;
  const ampc_source *in = argument_of(m->program, block);
  const ampc_output_desc *out = result_of(m->program, block, &count);
  for (int64_t i = 0; i < in->dim[1]; i++)
    number_store(in->dtype, false, m->in, i, (double)(i < n ? m->token[m->n - n + i] : pad));
  ampc_status status =
      ampc_infer(m->rt, block, (const void *const[]){m->in}, (void *const[]){m->out});
  int64_t first = out->rank == 3 ? (n - 1) * m->vocabulary : 0;
  for (int64_t i = 0; i < m->vocabulary && !status; i++)
    m->logits[i] = number_load(out->dtype, m->program->real64, m->out, first + i);
  return status;
}

/* Refuses a model that is not causal, because padding would change its logits. The model must
 * compute the same bits for the same text with another padding token. */
static ampc_status check_causal(TextModel *m, uint32_t block, int64_t n)
{
  size_t bytes = (size_t)m->vocabulary * sizeof *m->logits;
  m->checked = true;
  memcpy(m->order, m->logits, bytes);
  ampc_status status = ask(m, block, n, m->vocabulary - 1);
  if (status || memcmp(m->order, m->logits, bytes) == 0) return status;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "%s: infer `%s` is not causal: its logits for token %lld depend on the tokens after it",
      m->what, m->program->blocks[block].call, (long long)(n - 1));
}

/* Computes the logits after the last token from all tokens of the longest block that fits. */
static ampc_status ask_all(TextModel *m)
{
  int64_t n = m->n < m->most ? m->n : m->most;
  uint32_t block = block_for(m->program, n);
  ampc_status status = ask(m, block, n, 0);
  if (!status && !m->checked && n < argument_of(m->program, block)->dim[1])
    status = check_causal(m, block, n);
  return status;
}

/* If the text is longer than the decoder's context, the last tokens are a text that begins anew. */
static ampc_status keep_context(TextModel *m)
{
  int64_t first = m->n > m->most ? m->n - m->most : 0;
  if (first == m->first) return AMPC_OK;
  m->done = m->first = first;
  return ampc_sequence_rewind(m->sequence, 0);
}

ampc_status text_models_read(TextModel *const *m, uint32_t n)
{
  ampc_sequence *text[TEXTS_MOST];
  int64_t token[TEXTS_MOST];
  void *out[TEXTS_MOST];
  uint32_t together = 0;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i++) {
    status = keep_context(m[i]);
    const int64_t *next = m[i]->token + m[i]->done, count = m[i]->n - m[i]->done;
    if (!status && count > 1) status = ampc_sequence_next(m[i]->sequence, next, count, m[i]->out);
    if (count > 1) continue;
    text[together] = m[i]->sequence;
    token[together] = *next;
    out[together++] = m[i]->out;
  }
  if (together && !status) status = ampc_sequences_next(text, together, token, out);
  for (uint32_t k = 0; k < n && !status; k++) {
    m[k]->done = m[k]->n;
    for (int64_t i = 0; i < m[k]->vocabulary; i++)
      m[k]->logits[i] = number_load(m[k]->result->dtype, m[k]->program->real64, m[k]->out, i);
  }
  return status;
}

ampc_status text_model_read(TextModel *m)
{
  return text_model_is_decoder(m) ? text_models_read(&m, 1) : ask_all(m);
}

ampc_status text_model_next(TextModel *m, const Sampling *how, uint64_t seed, uint64_t drawn)
{
  double u = philox_uniform(seed, stream, drawn);
  int64_t token = sample_token(how, m->logits, m->vocabulary, m->token, m->n, u, m->order);
  if (token < 0)
    return ampc_fail(AMPC_RUN_FAILED,
                     "the logits after token %lld are not finite, so no token can be drawn",
                     (long long)(m->n - 1));
  return text_model_add(m, &token, 1);
}
