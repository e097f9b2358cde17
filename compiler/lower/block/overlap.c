/* Warns about eval blocks that read the samples of a train block: W608. Their metrics say nothing
 * about other data. */
#include "block.h"
#include "runtime/plan/formats.h"
#include <string.h>

static bool same_text(const char *a, const char *b)
{
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if both sources read some samples of the same files. Parts of different orders share some,
 * too, whatever their ranges are. */
static bool overlap(const ampc_source *a, const ampc_source *b)
{
  const ampc_format *format = ampc_format_of(a->kind);
  bool same_order = a->drawn == b->drawn && a->part_seed == b->part_seed;
  return format && format->probe && a->kind == b->kind && same_text(a->path, b->path) &&
         same_text(a->args, b->args) &&
         (!same_order || (a->part_begin < b->part_end && b->part_begin < a->part_end));
}

/* True if each source of the eval block overlaps with one of the train block. */
static bool same_samples(const Lower *l, const BlockInfo *eval, const BlockInfo *train)
{
  for (uint32_t i = 0; i < eval->n_sources; i++) {
    bool any = false;
    for (uint32_t k = 0; k < train->n_sources && !any; k++)
      any = overlap(&l->g->sources.at[eval->first_source + i],
                    &l->g->sources.at[train->first_source + k]);
    if (!any) return false;
  }
  return eval->n_sources > 0;
}

void check_overlap(Lower *l)
{
  for (uint32_t i = 0; i < l->g->blocks.n; i++) {
    const BlockInfo *eval = &l->g->blocks.at[i];
    for (uint32_t k = 0; k < l->g->blocks.n; k++) {
      const BlockInfo *train = &l->g->blocks.at[k];
      if (eval->kind != AMPC_EVAL || train->kind != AMPC_TRAIN || eval->variant_of >= 0 ||
          train->variant_of >= 0 || !same_samples(l, eval, train))
        continue;
      diag_warning(l->c, W608, eval->span, "`%s` evaluates on samples of %s that `%s` trains on",
                   eval->name, l->g->sources.at[eval->first_source].path, train->name);
      diag_note(l->c, train->span, "the train block");
      diag_help(l->c, "read another file, or divide one: `part=[0.0, 0.9]` and `part=[0.9, 1.0]`, "
                      "with the same `part_seed`");
    }
  }
}
