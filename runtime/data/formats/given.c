/* Samples that the calling program gives, batch by batch: ampc_loop_run. There is nothing to read,
 * so a loader cannot open this source. */
#include "runtime/plan/formats.h"

static ampc_status given_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples)
{
  *out = NULL;
  *out_samples = 0;
  return ampc_fail(AMPC_BAD_USAGE,
                   "%s reads no data: your own program gives the samples of `%s`. Compile the job "
                   "with `ampc --library`, and call the functions that --emit=header declares",
                   o->program->source, o->desc->path);
}

static ampc_status given_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch,
                              void *to)
{
  (void)r, (void)first, (void)n, (void)epoch, (void)to;
  return AMPC_BAD_USAGE;
}

static void given_close(ampc_reader *r)
{
  (void)r;
}

const ampc_format ampc_format_given = {
    .kind = AMPC_SOURCE_GIVEN,
    .name = "given",
    .open = given_open,
    .copy = given_copy,
    .close = given_close,
};
