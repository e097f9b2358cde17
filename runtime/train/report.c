/* Passes steps to the sinks, each with averages over its own steps.
 *
 * Note [windows]
 * The device sums each metric until a sink is due. Reading the sums costs a copy of STATE, which
 * arrives later (glance.c), and a few writes that clear the sums. So they are read only at steps
 * that some sink reports. The sums are then added to separate sums for each sink. So each sink
 * averages over the steps since its own last report, however often other sinks report. */
#include <stdlib.h>
#include <string.h>
#include "fields.h"
#include "common/clock.h"

enum { DEFAULT_LOG = 100 };

#define SINK_ROW(name) [SINK_##name] = &name##_sink,
static const Sink *const sinks[SINK_COUNT] = {SINKS(SINK_ROW)};

ampc_status report_open(Session *s)
{
  const ampc_program *p = s->run.program;
  uint32_t slots = ampc_metric_slots(p->metrics, p->n_metrics);
  s->rates = calloc(p->n_optimizers + 1, sizeof *s->rates);
  s->scales = calloc(p->n_optimizers + 1, sizeof *s->scales);
  bool good = s->rates && s->scales;
  for (int i = 0; i < SINK_COUNT; i++) {
    s->telling[i].sums = calloc(slots + 1, sizeof(ampc_metric));
    good = good && s->telling[i].sums;
  }
  ampc_status status = good ? fields_list(s) : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  for (int i = 0; i < SINK_COUNT && !status; i++) status = sinks[i]->open(s, &s->telling[i].own);
  return status;
}

typedef struct Slots { /* the ampc_metrics of a block's metrics */
  uint32_t first, n;
} Slots;

static Slots slots_of_block(const Session *s, uint32_t block)
{
  const ampc_program *p = s->run.program;
  const ampc_block *b = &p->blocks[block];
  return (Slots){ampc_metric_slots(p->metrics, b->first_metric),
                 ampc_metric_slots(p->metrics + b->first_metric, b->n_metrics)};
}

void report_begin_block(Session *s, uint32_t block)
{
  Slots at = slots_of_block(s, block);
  for (int i = 0; i < SINK_COUNT; i++)
    memset(s->telling[i].sums + at.first, 0, at.n * sizeof(ampc_metric));
}

int64_t report_every(const Session *s, uint32_t block)
{
  int64_t of_block = s->run.program->blocks[block].log;
  return s->run.options->log ? s->run.options->log : of_block ? of_block : DEFAULT_LOG;
}

/* Adds the sums of the device to the sums of every sink. */
static void add_metrics(Session *s, uint32_t block)
{
  Slots at = slots_of_block(s, block);
  for (uint32_t i = at.first; i < at.first + at.n; i++) {
    ampc_metric m;
    memcpy(&m, s->state + ampc_state_metric(s->run.program->n_optimizers, i), sizeof m);
    for (int k = 0; k < SINK_COUNT; k++) {
      s->telling[k].sums[i].sum += m.sum;
      s->telling[k].sums[i].count += m.count;
      s->telling[k].sums[i].last = m.count > 0 ? m.last : s->telling[k].sums[i].last;
    }
  }
}

static Record record_of(Session *s, const Glance *g)
{
  const ampc_program *p = s->run.program;
  Record r = {.block = g->block, .step = g->step, .samples = g->samples, .must = g->must};
  memcpy(&r.state, s->state, sizeof r.state);
  for (uint32_t i = 0; i < p->n_optimizers; i++) {
    ampc_optimizer o;
    memcpy(&o, s->state + ampc_state_optimizer(i), sizeof o);
    s->rates[i] = (double)o.lr;
    s->scales[i] = (double)o.scale;
  }
  r.seconds = seconds_now() - s->progress.started - s->progress.paused - s->run.evaluating;
  r.rate = r.seconds > 0 ? (double)r.samples / r.seconds : 0;
  return r;
}

/* Computes the averages over this sink's steps, and clears its sums. */
static void set_values(Session *s, Record *r, Telling *t)
{
  Slots at = slots_of_block(s, r->block);
  size_t bytes = at.n * sizeof(ampc_metric);
  memcpy(s->run.sums + at.first, t->sums + at.first, bytes);
  memset(t->sums + at.first, 0, bytes);
  run_set_values(&s->run, r->block);
  double seconds = r->seconds - t->seconds, waited = s->run.rt->waited - t->waited;
  r->data_wait = seconds > 0 ? waited / seconds : 0;
  t->seconds = r->seconds;
  t->waited = s->run.rt->waited;
  fields_set(s, r);
}

ampc_status report_step(Session *s, uint32_t block, bool must, bool look)
{
  Glance g = {.block = block, .step = s->run.steps, .samples = s->progress.samples, .must = must};
  for (int i = 0; i < SINK_COUNT; i++) {
    void *own = s->telling[i].own;
    g.due[i] = own && sinks[i]->due(s, own, block, must);
    g.told = g.told || g.due[i];
  }
  if (!g.told && !look) return AMPC_OK;
  ampc_status status = glance_begin(s, g);
  return !status && g.told ? ampc_clear_metrics(s->run.rt, block) : status;
}

void report_tell(Session *s, const Glance *g)
{
  if (!g->told) return;
  Record r = record_of(s, g);
  add_metrics(s, g->block);
  for (int i = 0; i < SINK_COUNT; i++) {
    if (!g->due[i]) continue;
    set_values(s, &r, &s->telling[i]);
    sinks[i]->step(s, s->telling[i].own, &r);
  }
}

void report_evaluated(Session *s, uint32_t block)
{
  for (int i = 0; i < SINK_COUNT; i++)
    if (s->telling[i].own) sinks[i]->evaluated(s, s->telling[i].own, block);
}

ampc_status report_end(Session *s, ampc_status status)
{
  ampc_status lost = AMPC_OK;
  for (int i = 0; i < SINK_COUNT; i++) {
    ampc_status one = sinks[i]->end ? sinks[i]->end(s, s->telling[i].own, status) : AMPC_OK;
    if (one) lost = one;
    free(s->telling[i].sums);
  }
  free(s->rates);
  free(s->scales);
  fields_free(s);
  return status ? status : lost;
}
