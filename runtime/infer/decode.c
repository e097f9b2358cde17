/* Continues texts with a program that pass decode has derived: Note [decode] in
 * compiler/passes/decode/decode.c. Block 0 computes one token, the others chunks of a
 * prompt, each a larger one.
 *
 * What later calls read of a text is in the space CACHE. The runtime has one, for the first
 * sequence; each further sequence has its own. */
#include <stdlib.h>
#include "common/needs.h"
#include "runtime/base/convert.h"
#include "runtime/members.h"
#include "runtime/runtime.h"

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
  rt->cache = cache;
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

ampc_status ampc_sequence_next(ampc_sequence *s, const int64_t *token, int64_t n, void *logits)
{
  NEEDS(s && token && n > 0 && logits);
  const ampc_program *p = s->rt->program;
  if (n > p->blocks[STEP].context - s->done)
    return ampc_fail(AMPC_BAD_USAGE, "%lld tokens after %lld; %s is compiled for texts of %lld",
                     (long long)n, (long long)s->done, p->name, (long long)p->blocks[STEP].context);
  ampc_status status = check_tokens(tokens_of(p, STEP), token, n);
  int64_t end = s->done + n;
  while (s->done < end && !status) {
    int64_t left = end - 1 - s->done;
    uint32_t block = block_for(p, left);
    status = run(s, block, token + n - (end - s->done), block == STEP ? 1 : left, logits);
  }
  if (status) s->done = end - n;
  return status;
}

ampc_status ampc_sequences_next(ampc_sequence *const *s, uint32_t n, const int64_t *token,
                                void *const *logits)
{
  NEEDS(s && n && token && logits);
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i++)
    status = ampc_sequence_next(s[i], &token[i], 1, logits[i]);
  return status;
}
