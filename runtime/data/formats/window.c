/* Windows of rows. */
#include "window.h"
#include <string.h>
#include "args.h"
#include "common/number.h"

ampc_status window_read(const char *args, Window *out)
{
  *out = (Window){args_integer(args, "window"), args_integer(args, "stride")};
  int n;
  if (!args_next(args, "window", NULL, &n)) return AMPC_OK;
  if (out->rows >= 1 && out->rows <= AMPC_MOST_SAMPLES && out->stride >= 1 &&
      out->stride <= AMPC_MOST_SAMPLES)
    return AMPC_OK;
  return ampc_fail(AMPC_BAD_USAGE, "`window` is %lld and `stride` %lld; both are at least 1 row",
                   (long long)out->rows, (long long)out->stride);
}

int64_t window_count(Window w, int64_t n)
{
  return n < w.rows ? 0 : (n - w.rows) / w.stride + 1;
}

ampc_status window_apply(Window w, const char *path, ampc_header *out)
{
  if (!w.rows) return AMPC_OK;
  if (out->rank >= AMPC_MAX_RANK - 1)
    return ampc_fail(AMPC_BAD_USAGE, "windows of rows with %u axes have too many axes", out->rank);
  int64_t rows = out->samples;
  memmove(out->dim + 1, out->dim, out->rank++ * sizeof *out->dim);
  out->dim[0] = w.rows;
  out->samples = window_count(w, rows);
  if (!path || out->samples) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s has %lld rows, less than one window of %lld", path,
                   (long long)rows, (long long)w.rows);
}

/* Windows that begin before the end of the part, but reach into the next one, belong to neither: no
 * row is in the windows of two parts. */
void ampc_source_part(const ampc_source *s, int64_t samples, int64_t *out_first, int64_t *out_count)
{
  const Window w = {args_integer(s->args, "window"), args_integer(s->args, "stride")};
  ampc_part(samples, s->part_begin, s->part_end, out_first, out_count);
  if (w.rows < 1 || w.stride < 1 || *out_first + *out_count == samples) return;
  *out_count -= (w.rows - 1) / w.stride;
  if (*out_count < 0) *out_count = 0;
}
