/* Random numbers: element e of the source is number e of a random sequence, so a sample is the same
 * in any order of access. `low` and `high` 0: standard normal. */
#include <math.h>
#include <stdlib.h>
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include "runtime/plan/formats.h"
#include "runtime/plan/types.h"

struct ampc_reader {
  const ampc_source *desc;
  uint64_t seed;
  bool real64;
  int64_t elements, sample_bytes; /* elements and bytes of one sample */
};

/* Returns element e. Integers are the floor of a real in [low, high), so all are equally likely. */
static double value(const ampc_reader *r, int64_t e)
{
  const ampc_source *d = r->desc;
  if (d->low == 0 && d->high == 0) return philox_normal(r->seed, d->stream, (uint64_t)e);
  double v = d->low + (d->high - d->low) * philox_uniform(r->seed, d->stream, (uint64_t)e);
  return ampc_is_float(d->dtype) ? v : floor(v);
}

/* Writes a sample. If rounding to the type gives `high`, which is out of range, writes `low`. */
static void make_sample(const ampc_reader *r, int64_t sample, char *to)
{
  const ampc_source *d = r->desc;
  for (int64_t i = 0; i < r->elements; i++) {
    number_store(d->dtype, r->real64, to, i, value(r, sample * r->elements + i));
    bool reached = d->high > d->low && number_load(d->dtype, r->real64, to, i) >= d->high;
    if (reached) number_store(d->dtype, r->real64, to, i, d->low);
  }
}

static ampc_status synthetic_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch,
                                  void *to)
{
  (void)epoch;
  for (int64_t i = 0; i < n; i++) make_sample(r, first + i, (char *)to + i * r->sample_bytes);
  return AMPC_OK;
}

/* Opens the source. Its bounds are known, so the limit is checked without computing numbers. */
static ampc_status synthetic_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples)
{
  const ampc_source *desc = o->desc;
  *out = NULL;
  if (desc->limit && (desc->low < 0 || desc->high > (double)desc->limit))
    return ampc_fail(AMPC_BAD_FILE, "synthetic values from %g to %g, expected 0 to %lld (%s)",
                     desc->low, desc->high, (long long)desc->limit,
                     desc->limit_why ? desc->limit_why : "limit");
  ampc_reader *r = malloc(sizeof *r);
  if (!r) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  *r = (ampc_reader){.desc = desc, .seed = o->seed, .real64 = o->program->real64, .elements = 1};
  for (uint32_t i = 0; i < desc->rank; i++) r->elements *= desc->dim[i];
  r->sample_bytes = r->elements * ampc_element_size(o->program, desc->dtype);
  *out_samples = desc->samples;
  *out = r;
  return AMPC_OK;
}

static void synthetic_close(ampc_reader *r)
{
  free(r);
}

const ampc_format ampc_format_synthetic = {
    .kind = AMPC_SOURCE_SYNTHETIC,
    .name = "synthetic",
    .open = synthetic_open,
    .copy = synthetic_copy,
    .close = synthetic_close,
};
