/* Sources: a format's reader, the range of its samples that a job uses, and checks of values. */
#include "source.h"
#include <math.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runtime/base/convert.h"
#include "common/file.h"
#include "runtime/plan/types.h"

enum { MOST_LABELS = 1000000 /* that source_labels reads */ };
enum { CHECKED_AT_ONCE = 1 << 16 /* bytes of samples, at least one sample */ };

/* Returns the sample in the file of number i of the used samples. */
static int64_t place_of(const DataSource *s, int64_t i)
{
  return s->order ? s->order[s->first + i] : s->first + i;
}

/* ---- checks of values ---- */

/* Whether a value is invalid for the job. */
typedef bool IsBad(const DataSource *s, double value, double limit);

/* Whether the value is outside the range of the op that reads it, such as the classes of a loss. */
static bool is_out_of_range(const DataSource *s, double value, double limit)
{
  (void)limit;
  const ampc_source *d = s->desc;
  return (value < 0 || value >= (double)d->limit) && (!d->ignored || value != (double)d->ignored);
}

static bool is_beyond(const DataSource *s, double value, double limit)
{
  (void)s;
  return !(fabs(value) < limit);
}

typedef struct Found {
  int64_t sample, element; /* numbers of the sample in the whole source, -1: nothing found, and of
                              the element in the sample */
  double value;
} Found;

/* Finds the first bad value in n samples. Returns false if all values are good. */
static bool find_in_piece(const DataSource *s, const char *bytes, int64_t n, IsBad *is_bad,
                          double limit, Found *out)
{
  for (int64_t i = 0; i < n * s->elements; i++) {
    double value = number_load(s->desc->dtype, s->program->real64, bytes, i);
    if (!is_bad(s, value, limit)) continue;
    *out = (Found){i / s->elements, i % s->elements, value};
    return true;
  }
  return false;
}

/* Finds the first bad value in the samples that are used. */
static ampc_status find_value(const DataSource *s, IsBad *is_bad, double limit, Found *out)
{
  int64_t piece = CHECKED_AT_ONCE / s->sample_bytes;
  if (piece < 1) piece = 1;
  char *bytes = malloc((size_t)(piece * s->sample_bytes));
  if (!bytes) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
  bool found = false;
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < s->count && !found && !status; i += piece) {
    int64_t n = s->count - i < piece ? s->count - i : piece;
    status = source_copy(s, i, n, AMPC_AS_STORED, bytes);
    found = !status && find_in_piece(s, bytes, n, is_bad, limit, out);
    out->sample = place_of(s, out->sample + i);
  }
  if (!found) out->sample = -1;
  free(bytes);
  return status;
}

/* Checks all values of the used samples against the limit, once, so that no kernel has to. A format
 * without a file knows the bounds of its values, and its `open` has checked them. */
static ampc_status check_limit(const DataSource *s)
{
  const ampc_source *d = s->desc;
  Found at = {.sample = -1};
  char besides[40] = "", within[40] = "";
  if (d->limit == 0 || !s->path) return AMPC_OK;
  ampc_status status = find_value(s, is_out_of_range, 0, &at);
  if (status || at.sample < 0) return status;
  if (d->ignored) snprintf(besides, sizeof besides, " or %lld", (long long)d->ignored);
  if (s->elements > 1) snprintf(within, sizeof within, ", element %lld,", (long long)at.element);
  return ampc_fail(AMPC_BAD_FILE, "%s: sample %lld%s is %.17g, expected 0 to %lld%s (%s)", s->path,
                   (long long)at.sample, within, at.value, (long long)(d->limit - 1), besides,
                   d->limit_why ? d->limit_why : "limit");
}

static bool same_text(const char *a, const char *b)
{
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if a loss of the program reads classes from this file, perhaps in another block: the
 * compiler limits them to its "classes of cross_entropy". */
static bool is_label(const DataSource *s)
{
  for (uint32_t i = 0; s->path && s->elements == 1 && i < s->program->n_sources; i++) {
    const ampc_source *d = &s->program->sources[i];
    bool classes = d->limit_why && strncmp(d->limit_why, "classes", strlen("classes")) == 0;
    if (classes && d->kind == s->desc->kind && d->dtype == s->desc->dtype &&
        same_text(d->path, s->desc->path) && same_text(d->args, s->desc->args))
      return true;
  }
  return false;
}

bool source_labels(const DataSource *s, Labels *out)
{
  if (!is_label(s)) return false;
  *out = (Labels){.count = s->count < MOST_LABELS ? s->count : MOST_LABELS, .ascending = true};
  for (int64_t i = 0; i < out->count; i++) {
    char bytes[8];
    if (source_copy(s, i, 1, AMPC_AS_STORED, bytes)) return false;
    double value = number_load(s->desc->dtype, s->program->real64, bytes, 0);
    if (i == 0) out->first = out->last = value;
    out->changes += value != out->last;
    out->ascending = out->ascending && value >= out->last;
    out->last = value;
  }
  return true;
}

bool source_find_lost(const DataSource *s, double limit, int64_t *sample, double *value)
{
  ampc_dtype t = s->desc->dtype;
  if (!ampc_is_float(t) || !s->path) return false;
  Found at = {.sample = -1};
  bool found = !find_value(s, is_beyond, limit, &at) && at.sample >= 0;
  *sample = at.sample;
  *value = at.value;
  return found;
}

/* Counts for each element of a sample in how many samples it is beyond the limit; `most` becomes
 * its largest absolute value. Returns false if the samples cannot be read. */
static bool count_beyond(const DataSource *s, double limit, int64_t *count, double *most)
{
  char *bytes = malloc((size_t)s->sample_bytes);
  bool good = bytes != NULL;
  for (int64_t i = 0; i < s->count && good; i++) {
    good = source_copy(s, i, 1, AMPC_AS_STORED, bytes) == AMPC_OK;
    for (int64_t k = 0; k < s->elements && good; k++) {
      double value = fabs(number_load(s->desc->dtype, s->program->real64, bytes, k));
      count[k] += !(value < limit);
      most[k] = fmax(most[k], value);
    }
  }
  free(bytes);
  return good;
}

bool source_find_column(const DataSource *s, double limit, int64_t *column, int64_t *samples,
                        double *most)
{
  if (!ampc_is_float(s->desc->dtype) || !s->path || s->desc->rank != 1) return false;
  int64_t *count = calloc((size_t)s->elements, sizeof *count), best = 0;
  double *largest = calloc((size_t)s->elements, sizeof *largest);
  bool good = count && largest && count_beyond(s, limit, count, largest);
  for (int64_t k = 0; k < s->elements && good; k++)
    if (count[k] > count[best] || (count[k] == count[best] && largest[k] > largest[best])) best = k;
  if (good) *samples = count[*column = best];
  if (good) *most = largest[best];
  free(count);
  free(largest);
  return good && 2 * *samples >= s->count && s->count > 1;
}

/* ---- opening, reading ---- */

/* Names the data folder in the message, because a file is mostly missing if the folder is wrong. */
static ampc_status explain_missing(const DataSource *s, const char *folder, ampc_status status)
{
  if (access(s->path, F_OK) == 0) return status;
  const char *reason = strerror(errno);
  if (s->desc->path[0] == '/')
    return ampc_fail(status, "cannot open %s: %s; the program contains this path", s->path, reason);
  return ampc_fail(
      status, "cannot open %s: %s; data is searched in %s; --data-dir DIR names another folder",
      s->path, reason, folder && *folder ? folder : ".");
}

/* Opens the whole source; then `part` selects samples. So train and eval blocks that use different
 * parts of one file agree on its length. */
ampc_status source_open(const ampc_program *p, const ampc_source *desc, const char *data_dir,
                        uint64_t seed, DataSource *out)
{
  *out =
      (DataSource){.desc = desc, .program = p, .format = ampc_format_of(desc->kind), .elements = 1};
  if (!out->format)
    return ampc_fail(AMPC_BAD_USAGE, "an infer block is fed by its caller, not by a data source");
  for (uint32_t i = 0; i < desc->rank; i++) out->elements *= desc->dim[i];
  out->sample_bytes = out->elements * ampc_element_size(p, desc->dtype);
  if (out->format->probe) {
    out->path = file_join(data_dir, desc->path);
    if (!out->path) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  }
  bool found;
  const ampc_opening opening = {out->format, p, desc, out->path, seed};
  ampc_status status = ampc_shards_open(&opening, &found, &out->reader, &out->samples);
  if (status) return found ? status : explain_missing(out, data_dir, status);
  out->count = out->samples;
  /* The order of `drawn` samples is not known yet, so all samples are checked. */
  if (desc->drawn) status = check_limit(out);
  ampc_source_part(desc, out->samples, &out->first, &out->count);
  if (desc->drawn) return status;
  ampc_shards_use(out->reader, out->first, out->count);
  return check_limit(out);
}

void source_close(DataSource *s)
{
  ampc_shards_close(s->reader);
  free(s->path);
  *s = (DataSource){0};
}

ampc_status source_copy(const DataSource *s, int64_t first, int64_t n, int64_t epoch, void *to)
{
  if (!s->order) return ampc_shards_copy(s->reader, s->first + first, n, epoch, to);
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < n && !status; i++)
    status = ampc_shards_copy(s->reader, place_of(s, first + i), 1, epoch,
                              (char *)to + i * s->sample_bytes);
  return status;
}

bool source_sample_name(const DataSource *s, int64_t sample, char *text, size_t size)
{
  return ampc_shards_name(s->reader, place_of(s, sample), text, size);
}
