/* The sources of a block: opened together, in one order; and the statistics of a source. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "order.h"
#include "runtime/base/convert.h"
#include "runtime/data/formats/args.h"
#include "source.h"

const char *source_path(const DataSource *s)
{
  return s->path ? s->path : "a synthetic source";
}

/* ---- the order ---- */

ampc_status source_read_labels(const DataSource *s, int64_t **out)
{
  char sample[sizeof(int64_t)];
  *out = malloc((size_t)s->count * sizeof **out);
  if (!*out)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for the labels of %s", source_path(s));
  for (int64_t i = 0; i < s->count; i++) {
    ampc_status status = source_copy(s, i, 1, AMPC_AS_STORED, sample);
    if (status) return status;
    (*out)[i] = (int64_t)number_load(s->desc->dtype, false, sample, 0);
  }
  return AMPC_OK;
}

static int by_number(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* Reads the labels of all samples in the file: `part` has selected none yet. */
static ampc_status read_all_labels(const DataSource *s, int64_t **out)
{
  DataSource all = *s;
  all.first = 0;
  all.count = s->samples;
  return source_read_labels(&all, out);
}

/* Draws the order from which `part` selects, which the first source owns. The selected samples then
 * return to the order of the file, so results of an infer block are in that order. */
static ampc_status draw_order(DataSource *s, uint32_t n)
{
  int64_t *label = NULL;
  int64_t samples = s->samples;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i++)
    if (s[i].desc->stratify) status = read_all_labels(&s[i], &label);
  int64_t *order = status ? NULL : malloc((size_t)samples * sizeof *order);
  if (!status && !(order && order_part(order, samples, s->desc->part_seed, label)))
    status = ampc_fail(AMPC_RUN_FAILED, "out of memory for the order of samples");
  if (!status) qsort(order + s->first, (size_t)s->count, sizeof *order, by_number);
  for (uint32_t i = 0; i < n; i++) s[i].order = order;
  free(label);
  return status;
}

/* Parts of sources that differ in length may have equal lengths, but not the same samples. */
static ampc_status check_lengths(const DataSource *s, uint32_t n)
{
  for (uint32_t i = 1; i < n; i++) {
    bool same = s[i].count == s->count && (!s->desc->drawn || s[i].samples == s->samples);
    if (!same)
      return ampc_fail(AMPC_BAD_FILE, "%s has %lld samples, but %s has %lld", source_path(s),
                       (long long)(s->desc->drawn ? s->samples : s->count), source_path(&s[i]),
                       (long long)(s->desc->drawn ? s[i].samples : s[i].count));
  }
  return AMPC_OK;
}

ampc_status sources_open(const ampc_program *p, const ampc_source *desc, uint32_t n,
                         const char *data_dir, uint64_t seed, DataSource **out)
{
  DataSource *s = *out = calloc(n + 1, sizeof *s);
  if (!s) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < n && !status; i++)
    status = source_open(p, &desc[i], data_dir, seed, &s[i]);
  if (!status) status = check_lengths(s, n);
  return !status && n && desc->drawn ? draw_order(s, n) : status;
}

void sources_close(DataSource *s, uint32_t n)
{
  if (!s) return;
  free(s->order);
  for (uint32_t i = 0; i < n; i++) source_close(&s[i]);
  free(s);
}

/* ---- statistics ---- */

/* Adds to total[channel] the distances of a sample's values from `center`, or their squares. */
static void add_sample(const DataSource *s, const char *sample, const double *center, bool squares,
                       double *total)
{
  int64_t inner = s->elements / (s->desc->rank ? s->desc->dim[0] : 1);
  for (int64_t e = 0; e < s->elements; e++) {
    double v = number_load(s->desc->dtype, s->program->real64, sample, e) - center[e / inner];
    total[e / inner] += squares ? v * v : v;
  }
}

static ampc_status add_samples(const DataSource *s, char *sample, const double *center,
                               bool squares, double *total)
{
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < s->count && !status; i++) {
    status = source_copy(s, i, 1, AMPC_AS_STORED, sample);
    if (!status) add_sample(s, sample, center, squares, total);
  }
  return status;
}

/* Returns the name or number of a column of a csv source, or else the number of the channel. */
static const char *channel_text(const DataSource *s, int64_t channel, char *to, size_t size)
{
  int n = 0;
  const char *at = NULL, *args = s->desc->kind == AMPC_SOURCE_CSV ? s->desc->args : NULL;
  for (int64_t i = 0; args && i <= channel && (!i || at); i++)
    at = args_next(args, "column", at, &n);
  if (at)
    snprintf(to, size, "column %.*s", n, at);
  else
    snprintf(to, size, "channel %lld", (long long)channel);
  return to;
}

/* Reads the samples twice: first the distances from the first value of each channel, then those
 * from the mean. So a constant channel has its value as mean, and the deviation 0, exactly. */
ampc_status source_measure(const DataSource *s, double *mean, double *deviation)
{
  int64_t channels = s->desc->rank ? s->desc->dim[0] : 1, each = s->elements / channels;
  double n = (double)s->count * (double)each;
  char *sample = malloc((size_t)s->sample_bytes);
  if (!sample) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", source_path(s));
  ampc_status status = source_copy(s, 0, 1, AMPC_AS_STORED, sample);
  for (int64_t c = 0; c < channels && !status; c++) {
    deviation[c] = number_load(s->desc->dtype, s->program->real64, sample, c * each);
    mean[c] = 0;
  }
  if (!status) status = add_samples(s, sample, deviation, false, mean);
  for (int64_t c = 0; c < channels && !status; c++) {
    mean[c] = deviation[c] + mean[c] / n;
    deviation[c] = 0;
  }
  if (!status) status = add_samples(s, sample, mean, true, deviation);
  free(sample);
  char where[80];
  for (int64_t c = 0; c < channels && !status; c++) {
    deviation[c] = sqrt(deviation[c] / n);
    if (!isfinite(deviation[c]))
      status =
          ampc_fail(AMPC_BAD_FILE, "%s of %s has numbers that are not finite, so it has no mean",
                    channel_text(s, c, where, sizeof where), source_path(s));
  }
  return status;
}
