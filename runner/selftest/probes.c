/* Suite: the probes of pass probe, on known weights, gradients and updates. Op ranges, which counts
 * the values, has its own cases in ops/reductions.c. */
#include "graph.h"
#include "runner/probe/probe.h"
#include <string.h>

enum { N = 33 };

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

ampc_status suite_probes(Arena *a, TestRun *run)
{
  if (!test_wanted(run, OP_probed)) return AMPC_OK;
  const BuiltJob probed = {
      .name = "the job of probes", .text = job, .test = run_step, .probe_every = 1};
  return built_job_twice(a, run, &probed);
}
