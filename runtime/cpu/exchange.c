/* What exchanges consist of: DeviceOps.add, round, swap, gather. */
#include <string.h>
#include "cpu.h"
#include "runtime/base/convert.h"
#include "runtime/ranks/ranks.h"

/* EACH: elements that are added at once. LEVELS: sums wait at most on this many levels of a tree.
 */
enum { EACH = 1024, LEVELS = 13 };

typedef struct Sum {
  float *to;
  const char *from;
  int64_t apart, count;
  uint32_t n;
  ampc_dtype type;
} Sum;

/* Copies EACH or fewer numbers of a piece, from number `first` on. */
static void load(const Sum *s, uint32_t piece, int64_t first, float *to, size_t n)
{
  const char *from = s->from + piece * s->apart + first * ampc_dtype_size(s->type);
  if (s->type == AMPC_F32)
    memcpy(to, from, n * sizeof *to);
  else
    convert_widen(s->type, from, to, (int64_t)n);
}

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
    uint32_t level = 0;
    float sum[EACH];
    load(s, i, first, sum, n);
    for (; i >> level & 1 || (i + 1 == s->n && level < LEVELS - 1); level++) {
      for (size_t k = 0; waits[level] && k < n; k++) sum[k] = waiting[level][k] + sum[k];
      waits[level] = false;
    }
    memcpy(waiting[level], sum, n * sizeof *sum);
    waits[level] = true;
  }
  memcpy(s->to + first, waiting[LEVELS - 1], n * sizeof *s->to);
}

ampc_status cpu_add(Pool *pool, ampc_dtype type, void *to, const void *from, int64_t apart,
                    uint32_t n, int64_t count)
{
  Sum s = {to, from, apart, count, n, type};
  if (count) pool_run(pool, add_part, &s, (unsigned)((count + EACH - 1) / EACH));
  return AMPC_OK;
}

ampc_status cpu_round(Device *d, void *to, const void *from, int64_t count)
{
  (void)d;
  convert_narrow(AMPC_BF16, from, to, count);
  return AMPC_OK;
}

ampc_status cpu_swap(Device *d, const void *out, void *in, int64_t bytes)
{
  return ranks_swap(d->ranks, out, in, bytes);
}

ampc_status cpu_gather(Device *d, void *all, int64_t bytes, bool more)
{
  (void)more;
  return ranks_gather(d->ranks, all, bytes);
}
