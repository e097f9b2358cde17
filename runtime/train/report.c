/* Who is told about a step, and with which averages.
 *
 * Note [windows]
 * A metric is summed on the device until somebody asks. Asking costs a copy of STATE, which comes
 * later (glance.c), and a few writes; so it is done only at steps where a line, a line of JSON or
 * the log is due. What comes is added up for each of them apart, so that each averages over the
 * steps since it was last told, however often the others ask. */
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

/* What the device had summed goes to every sink's own sums. */
static void add_metrics(Session *s, uint32_t block)
{
  const ampc_block *b = &s->program->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    ampc_metric m;
    memcpy(&m, s->state + ampc_state_metric(s->program->n_optimizers, i), sizeof m);
    for (int k = 0; k < SINK_COUNT; k++) {
      s->gone[k][i].sum += m.sum;
      s->gone[k][i].count += m.count;
    }
  }
}

static Record record_of(Session *s, const Glance *g)
{
  const ampc_program *p = s->program;
  Record r = {.step = g->step, .samples = g->samples};
  memcpy(&r.state, s->state, sizeof r.state);
  for (uint32_t i = 0; i < p->n_optimizers; i++) {
    ampc_optimizer o;
    memcpy(&o, s->state + ampc_state_optimizer(i), sizeof o);
    s->rates[i] = (double)o.lr;
  }
  r.seconds = progress_clock() - s->progress.started - s->progress.paused;
  r.rate = r.seconds > 0 ? (double)r.samples / r.seconds : 0;
  return r;
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

ampc_status report_step(Session *s, uint32_t block, bool must, bool look)
{
  Glance g = {.block = block,
              .step = s->steps,
              .samples = s->progress.samples,
              .keep = must,
              .told = false};
  for (int i = 0; i < SINK_COUNT; i++) g.told |= g.due[i] = is_due(s, block, (Sink)i, must);
  if (!g.told && !look) return AMPC_OK;
  if (g.due[SINK_line]) s->progress.printed = progress_clock();
  ampc_status status = glance_begin(s, g);
  return !status && g.told ? ampc_clear_metrics(s->rt, block) : status;
}

void report_tell(Session *s, const Glance *g)
{
  if (!g->told) return;
  Record r = record_of(s, g);
  add_metrics(s, g->block);
  for (int i = 0; i < SINK_COUNT; i++) {
    if (!g->due[i]) continue;
    set_values(s, g->block, (Sink)i);
    if (i == SINK_line) progress_step(s, g->block, &r, g->keep);
    if (i == SINK_json) json_step(s, g->block, &r);
    if (i == SINK_log) log_step(s, g->block, &r);
  }
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
