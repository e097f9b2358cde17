/* --log-dir: writes the numbers of a run as TensorBoard events. log.c writes the table. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "fields.h"
#include "log.h"

static ampc_status open_events(Session *s, void **out)
{
  const char *folder = s->run.options->log_dir;
  if (!folder) return AMPC_OK;
  Events *e = *out = calloc(1, sizeof *e);
  if (!e) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  e->fd = -1;
  if (s->log_failed || events_open(e, folder, s->run.steps)) return AMPC_OK;
  return log_unwritable(s);
}

/* Writes the metrics of a block; matrices are in the table only. Returns false if a write has
 * failed. */
static bool put_metrics(const Session *s, Events *e, uint32_t block, int64_t step)
{
  const ampc_block *b = &s->run.program->blocks[block];
  bool good = true;
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics && good; i++) {
    if (!s->run.known[i] || !metric_is_number(&s->run.program->metrics[i])) continue;
    char *tag = NULL; /* no fixed buffer: a truncated name could equal another one */
    good = asprintf(&tag, "%s/%s", b->name, s->run.program->metrics[i].name) >= 0;
    if (!good) break;
    good = events_scalar(e, step, tag, s->run.values[i]);
    free(tag);
  }
  return good;
}

static void tell_step(Session *s, void *own, const Record *r)
{
  if (s->log_failed) return;
  bool good = put_metrics(s, own, r->block, r->step);
  for (uint32_t i = 0; i < s->n_fields && good; i++)
    if (!isnan(s->fields[i].value))
      good = events_scalar(own, r->step, s->fields[i].tag, s->fields[i].value);
  if (!good) log_give_up(s);
}

static void tell_evaluated(Session *s, void *own, uint32_t block)
{
  if (s->log_failed || log_has(s, block)) return;
  if (!put_metrics(s, own, block, s->run.steps)) log_give_up(s);
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
