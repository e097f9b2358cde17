/* Sources: files held in memory, and numbers made on the fly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/convert.h"
#include "runtime/base/philox.h"
#include "source.h"

static char *join_path(const char *folder, const char *path)
{
  bool plain = path[0] == '/' || !folder || !*folder || strcmp(folder, ".") == 0;
  size_t size = strlen(path) + (plain ? 0 : strlen(folder) + 1) + 1;
  char *out = malloc(size);
  if (out) snprintf(out, size, "%s%s%s", plain ? "" : folder, plain ? "" : "/", path);
  return out;
}

/* ---- synthetic: element e of the source is number e of a random sequence ----------------------
 */

static double synthetic_value(const Source *s, int64_t e)
{
  const ampc_source *d = s->desc;
  if (d->low == 0 && d->high == 0) return philox_normal(s->seed, d->stream, (uint64_t)e);
  double v = d->low + (d->high - d->low) * philox_uniform(s->seed, d->stream, (uint64_t)e);
  return d->dtype == AMPC_F32 || d->dtype == AMPC_F16 || d->dtype == AMPC_BF16 ? v : floor(v);
}

static void synthetic_copy(const Source *s, int64_t sample, char *to)
{
  const ampc_source *d = s->desc;
  bool real64 = s->program->real64;
  for (int64_t i = 0; i < s->elements; i++) {
    number_store(d->dtype, real64, to, i, synthetic_value(s, sample * s->elements + i));
    bool reached = d->high > d->low && number_load(d->dtype, real64, to, i) >= d->high;
    if (reached) number_store(d->dtype, real64, to, i, d->low); /* rounded up to the open end */
  }
}

static ampc_status synthetic_check(const Source *s)
{
  const ampc_source *d = s->desc;
  bool outside = d->limit && (d->low < 0 || d->high > (double)d->limit);
  if (!outside) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "synthetic values from %g to %g, expected 0 to %lld (%s)", d->low,
                   d->high, (long long)d->limit, d->limit_why ? d->limit_why : "limit");
}

/* ---- all kinds ----------------------------------------------------------------------------------
 */

/* Integers that index something must do so within bounds; looked at once, so that no kernel has to.
 */
static ampc_status check_limit(const Source *s)
{
  const ampc_source *d = s->desc;
  if (d->limit == 0) return AMPC_OK;
  if (!s->bytes) return synthetic_check(s);
  for (int64_t i = 0; i < s->count * s->elements; i++) {
    int64_t at = s->first * s->elements + i;
    double v = number_load(d->dtype, s->program->real64, s->bytes, at);
    if (v < 0 || v >= (double)d->limit)
      return ampc_fail(AMPC_BAD_FILE, "%s: sample %lld is %g, expected 0 to %lld (%s)", s->path,
                       (long long)(at / s->elements), v, (long long)(d->limit - 1),
                       d->limit_why ? d->limit_why : "limit");
  }
  return AMPC_OK;
}

static ampc_status load(Source *s, const char *data_dir)
{
  switch (s->desc->kind) {
  case AMPC_SOURCE_SYNTHETIC:
    s->samples = s->desc->samples;
    return AMPC_OK;
  case AMPC_SOURCE_IDX:
    s->path = join_path(data_dir, s->desc->path);
    if (!s->path) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
    return idx_read(s);
  case AMPC_SOURCE_ARGUMENT:
    break;
  }
  return ampc_fail(AMPC_BAD_USAGE, "an infer block is fed by its caller, not by a data source");
}

ampc_status source_open(const ampc_program *p, const ampc_source *desc, const char *data_dir,
                        uint64_t seed, Source *out)
{
  *out = (Source){.desc = desc, .program = p, .seed = seed, .elements = 1};
  for (uint32_t i = 0; i < desc->rank; i++) out->elements *= desc->dim[i];
  out->sample_bytes = out->elements * ampc_element_size(p, desc->dtype);
  ampc_status status = load(out, data_dir);
  if (status) return status;
  ampc_part(out->samples, desc->part_begin, desc->part_end, &out->first, &out->count);
  return check_limit(out);
}

void source_close(Source *s)
{
  free(s->path);
  free(s->bytes);
  *s = (Source){0};
}

void source_copy(const Source *s, int64_t i, void *to)
{
  if (s->bytes) {
    memcpy(to, s->bytes + (s->first + i) * s->sample_bytes, (size_t)s->sample_bytes);
  } else {
    synthetic_copy(s, s->first + i, to);
  }
}
