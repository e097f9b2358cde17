/* Who is told about a step, and with which averages.
 *
 * Note [windows]
 * A metric is summed on the device until somebody asks. Asking makes the host wait, so it is done
 * only at steps where a line, a line of JSON or the log is due; and what is read is added up for
 * each of them apart, so that each averages over the steps since it was last told, however often
 * the others ask. */
#include <stdlib.h>
#include <string.h>
#include "train.h"

enum { DEFAULT_LOG = 100 };

ampc_status report_open(Session *s)
{
  const ampc_program *p = s->program;
  s->rates = calloc(p->n_optimizers + 1, sizeof *s->rates);
  bool good = s->rates != NULL;
  for (int i = 0; i < SINK_COUNT; i++) {
    s->gone[i] = calloc(p->n_metrics + 1, sizeof **s->gone);
    good = good && s->gone[i];
  }
  if (!good) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  return s->options->log_dir ? log_open(s) : AMPC_OK;
}

void report_begin_block(Session *s, uint32_t block)
{
  const ampc_block *b = &s->program->blocks[block];
  for (int i = 0; i < SINK_COUNT; i++)
    memset(s->gone[i] + b->first_metric, 0, b->n_metrics * sizeof **s->gone);
}

int64_t report_every(const Session *s, uint32_t block)
{
  int64_t of_block = s->program->blocks[block].log;
  return s->options->log ? s->options->log : of_block ? of_block : DEFAULT_LOG;
}

static bool is_due(const Session *s, uint32_t block, Sink sink, bool must)
{
  const ampc_train_options *o = s->options;
  switch (sink) {
  case SINK_line:
    return progress_due(s, block, must);
  case SINK_json:
    return o->json && (must || s->steps % (o->log ? o->log : 1) == 0);
  default:
    return s->log && (must || s->steps % report_every(s, block) == 0);
  }
}

/* What the device has summed goes to every sink's own sums. */
static ampc_status take_metrics(Session *s, uint32_t block)
{
  const ampc_block *b = &s->program->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    ampc_metric m;
    ampc_status status = ampc_get_metric(s->rt, i, &m);
    if (status) return status;
    for (int k = 0; k < SINK_COUNT; k++) {
      s->gone[k][i].sum += m.sum;
      s->gone[k][i].count += m.count;
    }
  }
  return ampc_clear_metrics(s->rt, block);
}

static ampc_status take_record(Session *s, Record *r)
{
  const ampc_program *p = s->program;
  ampc_status status = ampc_get_state(s->rt, &r->state);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++) {
    ampc_optimizer o;
    status = ampc_read(s->rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(p, i)}, &o, sizeof o);
    s->rates[i] = (double)o.lr;
  }
  r->seconds = progress_clock() - s->progress.started - s->progress.paused;
  r->rate = r->seconds > 0 ? (double)s->progress.samples / r->seconds : 0;
  return status;
}

/* The averages of this sink's steps, for it to tell. */
static void set_values(Session *s, uint32_t block, Sink sink)
{
  const ampc_block *b = &s->program->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    ampc_metric *m = &s->gone[sink][i];
    if (m->count > 0) s->values[i] = m->sum / m->count;
    *m = (ampc_metric){0};
  }
}

ampc_status report_step(Session *s, uint32_t block, bool must)
{
  bool due[SINK_COUNT], any = false;
  for (int i = 0; i < SINK_COUNT; i++) any |= due[i] = is_due(s, block, (Sink)i, must);
  if (!any) return AMPC_OK;
  Record r = {.seconds = 0};
  ampc_status status = take_metrics(s, block);
  if (!status) status = take_record(s, &r);
  for (int i = 0; i < SINK_COUNT && !status; i++) {
    if (!due[i]) continue;
    set_values(s, block, (Sink)i);
    if (i == SINK_line) progress_step(s, block, &r, must);
    if (i == SINK_json) json_step(s, block, &r);
    if (i == SINK_log) log_step(s, block, &r);
  }
  return status;
}

void report_evaluated(Session *s, uint32_t block)
{
  progress_evaluated(s, block);
  if (s->options->json) json_evaluated(s, block);
  if (s->log) log_evaluated(s, block);
}

ampc_status report_end(Session *s, ampc_status status)
{
  if (s->options->json) json_end(s, status);
  const char *trouble = s->log ? log_trouble(s->log) : NULL;
  log_close(s->log);
  s->log = NULL;
  free(s->rates);
  for (int i = 0; i < SINK_COUNT; i++) free(s->gone[i]);
  if (status) return status;
  if (trouble)
    return ampc_fail(AMPC_BAD_FILE, "the log in %s is not complete", s->options->log_dir);
  if (s->json_failed)
    return ampc_fail(AMPC_BAD_FILE, "the lines of JSON on stdout are not complete");
  return AMPC_OK;
}
