/* Facts about a plan that compiler and runtime must agree on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_metrics.h"
#include "ampc_plan.h"
#include "ampc_state.h"

const ampc_optimizer_desc *ampc_average_of(const ampc_program *p, const ampc_param *q)
{
  if (!p || !q) return NULL;
  if (q->buffer || q->optimizer < 0) return NULL;
  if (p->optimizers[q->optimizer].uses_ema) return &p->optimizers[q->optimizer];
  for (uint32_t i = 0; i < p->n_shares; i++) {
    const ampc_param *share = &p->shares[i];
    if (strcmp(share->path, q->path) == 0 && p->optimizers[share->optimizer].uses_ema)
      return &p->optimizers[share->optimizer];
  }
  return NULL;
}

int64_t ampc_state_optimizer(uint32_t i)
{
  return (int64_t)(sizeof(ampc_state) + i * sizeof(ampc_optimizer));
}

int64_t ampc_state_metric(uint32_t n_optimizers, uint32_t i)
{
  return ampc_state_optimizer(n_optimizers) + (int64_t)(i * sizeof(ampc_metric));
}

int64_t ampc_state_setting(uint32_t n_optimizers, uint32_t n_metrics, uint32_t i)
{
  return ampc_state_metric(n_optimizers, n_metrics) + (int64_t)(i * sizeof(float));
}

uint32_t ampc_metric_slots(const ampc_metric_desc *metrics, uint32_t n)
{
  if (!metrics) return 0;
  uint32_t slots = 0;
  for (uint32_t i = 0; i < n; i++) slots += metrics[i].statistics ? metrics[i].statistics : 1;
  return slots;
}

ampc_mode ampc_mode_of(const ampc_metric_desc *metric)
{
  static const ampc_mode modes[AMPC_METRIC_KIND_COUNT] = {
#define ROW(KIND, name, mode) AMPC_MODE_##mode,
      AMPC_METRICS(ROW)
#undef ROW
  };
  if (metric->mode) return metric->mode;
  return metric->is_loss ? AMPC_MODE_MIN : modes[metric->kind];
}

int ampc_target_capability(const char *target)
{
  if (!target) return 0;
  return strncmp(target, "sm_", 3) == 0 ? atoi(target + 3) : 0;
}

int64_t ampc_round_up(int64_t n, int64_t multiple)
{
  return (n + multiple - 1) / multiple * multiple;
}

void ampc_part(int64_t n, double begin, double end, int64_t *out_first, int64_t *out_count)
{
  if (!out_first || !out_count) return;
  int64_t first = llround((double)n * begin), last = llround((double)n * end);
  *out_first = first;
  *out_count = last > first ? last - first : 0;
}

int64_t ampc_share_bytes(const ampc_program *p, uint32_t block, int64_t shares)
{
  enum { ALIGN = 64 };
  const ampc_block *b = &p->blocks[block];
  int64_t first = INT64_MAX, end = 0, samples = (b->batch + shares - 1) / shares;
  for (uint32_t i = 0; i < b->n_sources; i++) {
    const ampc_source *s = &p->sources[b->first_source + i];
    int64_t bytes = samples * ampc_element_size(p, s->dtype);
    for (uint32_t k = 0; k < s->rank; k++) bytes *= s->dim[k];
    if (s->offset < first) first = s->offset;
    if (s->offset + bytes > end) end = s->offset + bytes;
  }
  return end > first ? ampc_round_up(end - first, ALIGN) : ALIGN;
}

bool ampc_space_is_shared(ampc_space s)
{
  return s == AMPC_MASTER || s == AMPC_RESIDUE || s == AMPC_COPY16 || s == AMPC_COPYBF ||
         s == AMPC_EMA;
}

int64_t ampc_process_members(const ampc_program *p)
{
  int64_t members = p->members ? p->members : 1, ranks = p->ranks ? p->ranks : 1;
  return members < ranks ? 1 : members / ranks;
}

int64_t ampc_process_bytes(const ampc_program *p, ampc_space s)
{
  return p->space_bytes[s] * (ampc_space_is_shared(s) ? 1 : ampc_process_members(p));
}
