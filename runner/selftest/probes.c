/* Suite: the probes of pass probe and the norms of options.norms, on known weights, gradients and
 * updates. Op ranges, which counts the values of a probe, has its own cases in ops/reductions.c. */
#include "ampc_metrics.h"
#include "graph.h"
#include "runner/probe/probe.h"
#include <string.h>

enum { N = 33, SQUARES = N * (N + 1) * (2 * N + 1) / 6 /* 1 + 4 + 9 + .. */ };

static const char job[] =
    "data d() { return synthetic(8, [1]) }\n"
    "module Net { w = Parameter([33]); def forward(x) { return (w * w).sum() } }\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=0.25)\n"
    "train x in d() with batch=4 { minimize net(x) with opt }\n";

/* Writes the weights 1/4, 2/4, .. Each gradient is twice its weight; an update subtracts half of
 * the gradient, exactly. */
static ampc_status write_weights(Built *b)
{
  float w[N];
  for (int i = 0; i < N; i++) w[i] = (float)(i + 1) / 4;
  return ampc_write(b->rt, (ampc_ref){AMPC_MASTER, 0}, w, sizeof w);
}

static bool is_range(const Watch *w, ProbeKind kind, double greatest)
{
  for (uint32_t i = 0; i < w->n; i++) {
    const Range *r = &w->at[i].range;
    if (w->at[i].probe->kind == kind)
      return r->n == N && !r->zeros && r->greatest == greatest && r->least == greatest / N;
  }
  return false;
}

static ampc_status run_step(Arena *a, TestRun *run, Built *b)
{
  (void)a;
  Watch w;
  bool found = false;
  watch_init(&w, b->c);
  ampc_status status = write_weights(b);
  if (!status) status = built_step(b);
  if (!status) status = watch_read(&w, b->rt, 0, &found);
  if (status) return status;
  test_check(run, OP_probed, AMPC_F32, found, "the step has probes");
  test_check(run, OP_probed, AMPC_F32, is_range(&w, PROBE_weight, N / 4.0), "weights");
  test_check(run, OP_probed, AMPC_F32, is_range(&w, PROBE_gradient, N / 2.0), "gradients");
  test_check(run, OP_probed, AMPC_F32, is_range(&w, PROBE_update, N / 8.0), "updates");
  return AMPC_OK;
}

static ampc_status run_with_norms(Arena *a, TestRun *run, Built *b)
{
  (void)a;
  static const struct {
    const char *name;
    double sum;
  } want[AMPC_UPDATES_COUNT] = {[AMPC_UPDATES_GRAD] = {"gradient", SQUARES / 4.0},
                                [AMPC_UPDATES_WEIGHT] = {"weights", SQUARES / 64.0},
                                [AMPC_UPDATES_CHANGE] = {"update", SQUARES / 64.0},
                                [AMPC_UPDATES_RATE] = {"learning rate", 0.25}};
  const ampc_program *p = b->c->program;
  ampc_metric m[AMPC_UPDATES_COUNT] = {{0}};
  uint32_t i = 0;
  while (i < p->n_metrics && p->metrics[i].kind != AMPC_METRIC_UPDATES) i++;
  ampc_ref at = {AMPC_STATE, ampc_state_metric(p->n_optimizers, ampc_metric_slots(p->metrics, i))};
  ampc_status status = write_weights(b);
  if (!status) status = built_step(b);
  if (!status && i < p->n_metrics) status = ampc_read(b->rt, at, m, sizeof m);
  for (int k = 0; k < AMPC_UPDATES_COUNT && !status; k++)
    test_check(run, OP_update_norms, AMPC_F32, m[k].sum == want[k].sum && m[k].count == 1,
               want[k].name);
  return status;
}

static ampc_status test_norms(Arena *a, TestRun *run)
{
  const BuiltJob normed = {
      .name = "the job of norms", .text = job, .test = run_with_norms, .norms = true};
  return test_wanted(run, OP_update_norms) ? built_job_twice(a, run, &normed) : AMPC_OK;
}

ampc_status suite_probes(Arena *a, TestRun *run)
{
  ampc_status status = test_norms(a, run);
  if (status || !test_wanted(run, OP_probed)) return status;
  const BuiltJob probed = {
      .name = "the job of probes", .text = job, .test = run_step, .probe_every = 1};
  return built_job_twice(a, run, &probed);
}
