/* Suite: a step of several bodies whose mean squared errors have weights. Note [bodies] in
 * compiler/passes/counted.c: each body counts by the sum of its weights, and one without weight
 * changes nothing. The expected weights are computed in double from all samples at once. */
#include "graph.h"
#include <math.h>

enum { BODIES = 4, ROWS = 2, N = 5, STEPS = 2 };

static const char job[] =
    "data numbers() { return synthetic(64, [5]), synthetic(64, [5]) }\n"
    "module Net { w = Parameter([5]); def forward(x) { return w.expand(2, 5) } }\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=0.25, accumulate=4)\n"
    "train x, m in numbers() with batch=2 { minimize mse_loss(net(x), x, weight=m) with opt }\n";

typedef struct Batch {
  float x[ROWS * N], weight[ROWS * N];
} Batch;

static ampc_status run_body(Built *b, int k, const Batch *batch)
{
  ampc_status status = ampc_set_group(b->rt, k == 0, k == BODIES - 1);
  if (!status) status = built_put(b, 0, batch->x, sizeof batch->x);
  if (!status) status = built_put(b, 1, batch->weight, sizeof batch->weight);
  return status ? status : built_step(b);
}

/* Adds a body to the sums: the gradient of w is 2 (w sum(weight) - sum(weight x)) / all weights. */
static void add(const Batch *batch, double *products, double *columns, double *all)
{
  for (int i = 0; i < ROWS * N; i++) {
    products[i % N] += (double)batch->weight[i] * (double)batch->x[i];
    columns[i % N] += (double)batch->weight[i];
    *all += (double)batch->weight[i];
  }
}

static ampc_status run_steps(Arena *a, TestRun *run, Built *b)
{
  uint64_t random = 5;
  float w[N] = {0.5f, -1, 2, 0.25f, -3};
  double want[N], worst = 0;
  for (int i = 0; i < N; i++) want[i] = (double)w[i];
  ampc_status status = ampc_write(b->rt, (ampc_ref){AMPC_MASTER, 0}, w, sizeof w);
  for (int step = 0; step < STEPS && !status; step++) {
    double products[N] = {0}, columns[N] = {0}, all = 0;
    for (int k = 0; k < BODIES && !status; k++) {
      Batch batch;
      bool empty = k == (step ? 0 : 2); /* also the first body of a step */
      for (int i = 0; i < ROWS * N; i++) {
        batch.x[i] = (float)(number_uniform(&random) * 4 - 2);
        batch.weight[i] = empty ? 0 : (float)number_uniform(&random) * (float)(k + 1);
      }
      add(&batch, products, columns, &all);
      status = run_body(b, k, &batch);
    }
    for (int i = 0; i < N; i++) want[i] -= 0.25 * 2 * (want[i] * columns[i] - products[i]) / all;
  }
  if (!status) status = ampc_read(b->rt, (ampc_ref){AMPC_MASTER, 0}, w, sizeof w);
  /* 4 ulps: each body rounds a sum of two products, a factor and the slot */
  for (int i = 0; i < N; i++)
    worst = number_worse(worst, fabs((double)w[i] - want[i]) /
                                    (4 * number_ulp(AMPC_F32, fmax(fabs(want[i]), 1))));
  const char *how = arena_printf(a, "%d steps of %d bodies with weights", STEPS, BODIES);
  test_report(run, OP_body_sum, PROOF_forward, AMPC_F32, worst, how);
  test_report(run, OP_grad_rescale, PROOF_forward, AMPC_F32, worst, how);
  return status;
}

ampc_status suite_counted(Arena *a, TestRun *run)
{
  static const OpKind ops[] = {OP_body_sum, OP_grad_rescale};
  if (!test_wants_any(run, ops, 2)) return AMPC_OK;
  return built_job_twice(a, run,
                         &(BuiltJob){.name = "the job of bodies", .text = job, .test = run_steps});
}
