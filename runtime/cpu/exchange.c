/* What exchanges consist of: DeviceOps.add, swap, gather. */
#include <string.h>
#include "cpu.h"
#include "runtime/ranks/ranks.h"

/* EACH: elements that are added at once. LEVELS: sums wait at most on this many levels of a tree.
 */
enum { EACH = 1024, LEVELS = 13 };

typedef struct Sum {
  float *to;
  const char *from;
  int64_t apart, count;
  uint32_t n;
} Sum;

/* Adds elements [first, first + EACH) of all pieces. A sum waits on its level of the tree until its
 * neighbour is done: piece i completes as many levels as i has ones at its end. */
static void add_part(void *context, unsigned part, unsigned n_parts)
{
  const Sum *s = context;
  float waiting[LEVELS][EACH];
  bool waits[LEVELS] = {false};
  int64_t first = (int64_t)part * EACH, left = s->count - first;
  size_t n = (size_t)(left < EACH ? left : EACH);
  (void)n_parts;
  for (uint32_t i = 0; i < s->n; i++) {
    const float *own = (const float *)(const void *)(s->from + i * s->apart) + first;
    uint32_t level = 0;
    float sum[EACH];
    memcpy(sum, own, n * sizeof *sum);
    for (; i >> level & 1 || (i + 1 == s->n && level < LEVELS - 1); level++) {
      for (size_t k = 0; waits[level] && k < n; k++) sum[k] = waiting[level][k] + sum[k];
      waits[level] = false;
    }
    memcpy(waiting[level], sum, n * sizeof *sum);
    waits[level] = true;
  }
  memcpy(s->to + first, waiting[LEVELS - 1], n * sizeof *s->to);
}

ampc_status cpu_add(Pool *pool, void *to, const void *from, int64_t apart, uint32_t n,
                    int64_t count)
{
  Sum s = {to, from, apart, count, n};
  if (count) pool_run(pool, add_part, &s, (unsigned)((count + EACH - 1) / EACH));
  return AMPC_OK;
}

ampc_status cpu_swap(Device *d, const void *out, void *in, int64_t bytes)
{
  return ranks_swap(d->ranks, out, in, bytes);
}

ampc_status cpu_gather(Device *d, void *all, int64_t bytes)
{
  return ranks_gather(d->ranks, all, bytes);
}
