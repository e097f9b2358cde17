/* Continues texts with a program that pass decode has derived: Note [decode] in
 * compiler/passes/decode/decode.c. Block 0 computes one token, the others chunks of a
 * prompt, each a larger one.
 *
 * What later calls read of a text is in the space CACHE. The runtime has one, for the first
 * sequence; each further sequence has its own. */
#include <stdio.h>
#include <stdlib.h>
#include "common/needs.h"
#include "runtime/base/convert.h"
#include "rows.h"
#include "runtime/members.h"
#include "runtime/outside.h"

enum { STEP };

struct ampc_sequence {
  ampc_runtime *rt;
  void *cache;  /* NULL: that of the runtime */
  int64_t done; /* tokens so far */
  void *in;     /* room for the tokens of a call */
};

static const ampc_source *tokens_of(const ampc_program *p, uint32_t block)
{
  return &p->sources[p->blocks[block].first_source];
}

static ampc_status open_cache(ampc_sequence *s)
{
  ampc_runtime *rt = s->rt;
  int64_t bytes = rt->program->space_bytes[AMPC_CACHE];
  if (!rt->cache_taken) {
    rt->cache_taken = true;
    return AMPC_OK;
  }
  ampc_status status = rt->device->ops->alloc(rt->device, bytes ? bytes : 1, &s->cache);
  return status ? ampc_fail(status, "cache of a text: %s", ampc_last_error()) : AMPC_OK;
}

ampc_status ampc_sequence_begin(ampc_runtime *rt, ampc_sequence **out)
{
  NEEDS(rt && out);
  const ampc_program *p = rt->program;
  *out = NULL;
  if (!p->n_blocks || !p->blocks[STEP].context)
    return ampc_fail(AMPC_BAD_USAGE, "%s has no block that continues a text", p->name);
  const ampc_source *tokens = tokens_of(p, p->n_blocks - 1);
  ampc_sequence *s = calloc(1, sizeof *s);
  if (s) s->in = malloc((size_t)(tokens->dim[1] * ampc_element_size(p, tokens->dtype)));
  if (!s || !s->in) {
    free(s);
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for a text");
  }
  s->rt = rt;
  ampc_status status = open_cache(s);
  if (status) {
    free(s->in);
    free(s);
    return status;
  }
  *out = s;
  return AMPC_OK;
}

void ampc_sequence_end(ampc_sequence *s)
{
  if (!s) return;
  if (s->cache)
    s->rt->device->ops->release(s->rt->device, s->cache);
  else
    s->rt->cache_taken = false;
  free(s->in);
  free(s);
}

ampc_status ampc_sequence_rewind(ampc_sequence *s, int64_t n)
{
  NEEDS(s && n >= 0 && n <= s->done);
  if (n && s->rt->program->blocks[STEP].carries && n < s->done)
    return ampc_fail(AMPC_BAD_USAGE,
                     "the net carries values from token to token, so a text can only be rewound to "
                     "its beginning, not to token %lld",
                     (long long)n);
  s->done = n;
  if (n) return AMPC_OK;
  char *cache = s->cache ? s->cache : s->rt->base[AMPC_CACHE]; /* NaNs would stay: 0 NaN is NaN */
  int64_t bytes = s->rt->program->space_bytes[AMPC_CACHE];
  return bytes ? s->rt->device->ops->fill(s->rt->device, cache, 0, bytes) : AMPC_OK;
}

/* Makes calls use this cache; NULL: that of the runtime. */
static void set_cache(ampc_runtime *rt, void *cache)
{
  rt->instead[AMPC_CACHE] = cache;
  rt->moved_spaces = cache != NULL;
  members_turn(rt, rt->member);
}

/* Runs a block on the next tokens, of which n are given; the others are token 0. */
static ampc_status run(ampc_sequence *s, uint32_t block, const int64_t *token, int64_t n,
                       void *logits)
{
  ampc_runtime *rt = s->rt;
  const ampc_source *tokens = tokens_of(rt->program, block);
  int64_t position = s->done;
  for (int64_t i = 0; i < tokens->dim[1]; i++)
    number_store(tokens->dtype, false, s->in, i, i < n ? (double)token[i] : 0);
  set_cache(rt, s->cache);
  ampc_status status =
      ampc_infer(rt, block, (const void *const[]){s->in, &position}, (void *const[]){logits});
  set_cache(rt, NULL);
  s->done += n < tokens->dim[1] ? n : tokens->dim[1];
  return status;
}

/* Returns the block that computes the next tokens of a prompt, of which `left` are before the last
 * one: the largest chunk that is full. Chunks that are not full compute rows that later calls
 * overwrite. Where that costs less than smaller ones, they are taken, too; not if the program also
 * carries values from position to position. */
static uint32_t block_for(const ampc_program *p, int64_t left)
{
  enum { WORTH = 3 }; /* a chunk takes as long as a few of the next smaller size */
  for (uint32_t b = p->n_blocks - 1; b > STEP; b--) {
    int64_t chunk = tokens_of(p, b)->dim[1];
    if (left >= chunk || (!p->blocks[b].carries && left > 1 && left * WORTH > chunk)) return b;
  }
  return STEP;
}

/* Checks that the vocabulary has the tokens, before any of them changes the text. */
static ampc_status check_tokens(const ampc_source *in, const int64_t *token, int64_t n)
{
  int64_t end = in->dtype == AMPC_U8    ? UINT8_MAX + 1
                : in->dtype == AMPC_I32 ? INT32_MAX
                                        : INT64_MAX;
  if (in->limit && in->limit < end) end = in->limit;
  for (int64_t i = 0; i < n; i++)
    if (token[i] < 0 || token[i] >= end)
      return ampc_fail(AMPC_BAD_USAGE, "token %lld of %lld is %lld, expected 0 to %lld",
                       (long long)i, (long long)n, (long long)token[i], (long long)end - 1);
  return AMPC_OK;
}

static ampc_status check_room(const ampc_sequence *s, int64_t n)
{
  const ampc_program *p = s->rt->program;
  if (n <= p->blocks[STEP].context - s->done) return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "%lld tokens after %lld; %s is compiled for texts of %lld",
                   (long long)n, (long long)s->done, p->name, (long long)p->blocks[STEP].context);
}

ampc_status ampc_sequence_next(ampc_sequence *s, const int64_t *token, int64_t n, void *logits)
{
  NEEDS(s && token && n > 0 && logits);
  const ampc_program *p = s->rt->program;
  ampc_status status = check_room(s, n);
  if (!status) status = check_tokens(tokens_of(p, STEP), token, n);
  if (status) return status;
  int64_t end = s->done + n;
  while (s->done < end && !status) {
    int64_t left = end - 1 - s->done;
    uint32_t block = block_for(p, left);
    status = run(s, block, token + n - (end - s->done), block == STEP ? 1 : left, logits);
  }
  if (status) s->done = end - n;
  return status;
}

/* ---- several texts ---- */

static ampc_status check_texts(ampc_sequence *const *s, uint32_t n, const int64_t *token,
                               void *const *logits)
{
  char why[ERROR_TEXT];
  const ampc_runtime *rt = s[0] ? s[0]->rt : NULL;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i++) {
    NEEDS(s[i] && s[i]->rt == rt && logits[i]);
    for (uint32_t k = 0; k < i; k++)
      if (s[k] == s[i])
        return ampc_fail(AMPC_BAD_USAGE, "texts %u and %u of %u are the same one", k, i, n);
    status = check_room(s[i], 1);
    if (!status) status = check_tokens(tokens_of(rt->program, STEP), &token[i], 1);
    if (!status || n == 1) continue;
    snprintf(why, sizeof why, "%s", ampc_last_error());
    return ampc_fail(status, "text %u of %u: %s", i, n, why);
  }
  return status;
}

/* Writes the token and its position, the arguments of a step. */
static ampc_status write_row(const ampc_sequence *s, uint32_t row, int64_t token)
{
  const ampc_source *at = tokens_of(s->rt->program, STEP);
  number_store(at->dtype, false, s->in, 0, (double)token);
  ampc_status status = rows_write(s->rt, row, (ampc_ref){AMPC_INPUT, at[0].offset}, s->in,
                                  ampc_element_size(s->rt->program, at->dtype));
  if (status) return status;
  return rows_write(s->rt, row, (ampc_ref){AMPC_INPUT, at[1].offset}, &s->done, sizeof s->done);
}

static const ampc_output_desc *logits_of(const ampc_program *p)
{
  const ampc_output_desc *o = p->outputs;
  while (o->block != STEP) o++;
  return o;
}

static ampc_status run_rows(ampc_sequence *const *s, uint32_t n, const int64_t *token, char **cache)
{
  ampc_runtime *rt = s[0]->rt;
  ampc_status status = rows_reserve(rt, n);
  for (uint32_t i = 0; i < n && !status; i++) {
    cache[i] = s[i]->cache ? s[i]->cache : rt->base[AMPC_CACHE];
    status = write_row(s[i], i, token[i]);
  }
  if (!status) status = runtime_set_call(rt, rt->calls++);
  if (!status) status = rows_run(rt, STEP, n, cache);
  if (!status) status = ampc_wait(rt);
  return status ? status : outside_take(rt);
}

ampc_status ampc_sequences_next(ampc_sequence *const *s, uint32_t n, const int64_t *token,
                                void *const *logits)
{
  NEEDS(s && n && token && logits);
  ampc_status status = check_texts(s, n, token, logits);
  if (status) return status;
  if (n == 1) return ampc_sequence_next(s[0], token, 1, logits[0]);
  ampc_runtime *rt = s[0]->rt;
  char **cache = malloc(n * sizeof *cache);
  status = cache ? run_rows(s, n, token, cache) : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  free(cache);
  const ampc_output_desc *o = logits_of(rt->program);
  int64_t bytes = ampc_output_elements(o) * ampc_element_size(rt->program, o->dtype);
  for (uint32_t i = 0; i < n && !status; i++) status = rows_read(rt, i, o->place, logits[i], bytes);
  for (uint32_t i = 0; i < n && !status; i++) s[i]->done++;
  return status;
}
