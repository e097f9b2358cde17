/* --log-dir: writes the numbers of a run as TensorBoard events. log.c writes the table. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "log.h"

static ampc_status open_events(Session *s, void **out)
{
  const char *folder = s->options->log_dir;
  if (!folder) return AMPC_OK;
  Events *e = *out = calloc(1, sizeof *e);
  if (!e) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  e->fd = -1;
  if (s->log_failed || events_open(e, folder, s->steps)) return AMPC_OK;
  return log_unwritable(s);
}

/* Writes one number if `good`, which says that all earlier writes succeeded. Returns false if any
 * write has failed. */
__attribute__((format(printf, 5, 6))) static bool put_scalar(Events *e, int64_t step, double value,
                                                             bool good, const char *fmt, ...)
{
  char *tag = NULL;
  va_list args;
  va_start(args, fmt);
  int size = vasprintf(&tag, fmt, args);
  va_end(args);
  if (size < 0) return false; /* no fixed buffer: a truncated name could equal another one */
  good = good && events_scalar(e, step, tag, value);
  free(tag);
  return good;
}

static bool put_metrics(const Session *s, Events *e, uint32_t block, int64_t step)
{
  const ampc_block *b = &s->program->blocks[block];
  bool good = true;
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++)
    if (s->known[i] && metric_is_number(&s->program->metrics[i])) /* only the table has matrices */
      good = put_scalar(e, step, s->values[i], good, "%s/%s", b->name, s->program->metrics[i].name);
  return good;
}

static void tell_step(Session *s, void *own, const Record *r)
{
  const ampc_program *p = s->program;
  if (s->log_failed) return;
  bool good = put_metrics(s, own, r->block, r->step);
  for (uint32_t i = 0; i < p->n_optimizers; i++)
    good = put_scalar(own, r->step, s->rates[i], good, "lr/%s", p->optimizers[i].name);
  for (uint32_t i = 0; i < p->n_optimizers && p->scaler.per_optimizer; i++)
    good = put_scalar(own, r->step, s->scales[i], good, "scaler/scale/%s", p->optimizers[i].name);
  good = put_scalar(own, r->step, (double)r->state.scale, good, "scaler/scale");
  good = put_scalar(own, r->step, (double)r->state.skipped, good, "scaler/skipped");
  if (p->scaler.replay)
    good = put_scalar(own, r->step, (double)r->state.replayed, good, "scaler/replayed");
  good = put_scalar(own, r->step, r->rate, good, "speed/samples_per_second");
  if (!good) log_give_up(s);
}

static void tell_evaluated(Session *s, void *own, uint32_t block)
{
  if (s->log_failed || log_has(s, block)) return;
  if (!put_metrics(s, own, block, s->steps)) log_give_up(s);
}

/* Returns no error if the log is incomplete: the table's sink (log.c) reports it for both. */
static ampc_status end_events(Session *s, void *own, ampc_status status)
{
  (void)s;
  (void)status;
  if (own) events_close(own);
  free(own);
  return AMPC_OK;
}

const Sink events_sink = {open_events, log_due, tell_step, tell_evaluated, end_events};
