/* Continues a text with a program that pass decode has derived: Note [decode] in
 * compiler/passes/decode/decode.c. Block 0 computes one token, block 1 a chunk of a prompt. */
#include <stdlib.h>
#include "common/needs.h"
#include "runtime/base/convert.h"
#include "runtime/runtime.h"

enum { STEP, PREFILL };

/* Runs a block on the tokens from `at` on; those from n on are token 0. */
static ampc_status run(ampc_runtime *rt, uint32_t block, const int64_t *token, int64_t at, int64_t n,
                       void *logits)
{
  const ampc_program *p = ampc_program_of(rt);
  const ampc_source *s = &p->sources[p->blocks[block].first_source];
  void *in = malloc((size_t)(s->dim[1] * ampc_element_size(p, s->dtype)));
  if (!in) return ampc_fail(AMPC_RUN_FAILED, "out of memory for tokens");
  for (int64_t i = 0; i < s->dim[1]; i++)
    number_store(s->dtype, false, in, i, at + i < n ? (double)token[at + i] : 0);
  ampc_status status =
      ampc_infer(rt, block, (const void *const[]){in, &at}, (void *const[]){logits});
  free(in);
  return status;
}

/* A chunk that is not full computes rows that later calls overwrite. If the program also carries
 * values from position to position, single steps compute what is left of a prompt. */
ampc_status ampc_decode(ampc_runtime *rt, const int64_t *token, int64_t done, int64_t n,
                        void *logits)
{
  NEEDS(rt && token && logits && done >= 0 && done < n);
  const ampc_program *p = ampc_program_of(rt);
  ampc_status status = AMPC_OK;
  if (!p->n_blocks || !p->blocks[STEP].context)
    return ampc_fail(AMPC_BAD_USAGE, "%s has no block that continues a text", p->name);
  if (n > p->blocks[STEP].context)
    return ampc_fail(AMPC_BAD_USAGE, "a text of %lld tokens; %s is compiled for %lld", (long long)n,
                     p->name, (long long)p->blocks[STEP].context);
  int64_t chunk = p->sources[p->blocks[PREFILL].first_source].dim[1];
  int64_t least = p->blocks[PREFILL].carries ? chunk : 2; /* tokens that are worth a chunk */
  while (n - 1 - done >= least && !status) {
    status = run(rt, PREFILL, token, done, n - 1, logits);
    done = done + chunk < n ? done + chunk : n - 1;
  }
  for (; done < n && !status; done++) status = run(rt, STEP, token, done, n, logits);
  return status;
}
