/* Suite: a loop (Note [loops] in compiler/graph/ir.h) in a job that trains in doubles. One step of
 * SGD subtracts the gradients from the weights. They must equal central differences of the same
 * function written in C. */
#include "graph.h"
#include <math.h>
#include <string.h>

enum { N = 4, T = 5, W = 3, WEIGHTS = W + W * W + W };

/* The loop swaps its carried values, so one of them must be copied. u multiplies a carried
 * value. */
static const char job[] = "data numbers() { return synthetic(64, [5, 3]) }\n"
                          "module Net {\n"
                          "  h0 = Parameter([3]); u = Parameter([3, 3]); w = Parameter([3])\n"
                          "  def forward(x) {\n"
                          "    h = h0 + zeros([4, 3]); k = zeros([4, 3])\n"
                          "    scan t in range(5) carry h, k {\n"
                          "      y = tanh(x[:, t] * w + h @ u)\n"
                          "      emit all = y * (t + 1)\n"
                          "      h, k = k, h * w + y\n"
                          "    }\n"
                          "    return sum(all * all) + sum(h) * 0.5\n"
                          "  }\n"
                          "}\n"
                          "model net = Net()\n"
                          "optimizer opt = SGD(net, lr=1.0)\n"
                          "train x in numbers() with batch=4 { minimize net(x) with opt }\n";

static const OpKind ops[] = {OP_carry, OP_next, OP_turn, OP_stack, OP_copy, OP_scan, OP_scan_end};
enum { N_OPS = sizeof ops / sizeof *ops };

typedef struct Weights {
  double h0[W], u[W][W], w[W];
} Weights;

/* Returns the loss of one sample. */
static double loss_of(const Weights *p, double x[T][W])
{
  double h[W], k[W] = {0}, sum = 0;
  memcpy(h, p->h0, sizeof h);
  for (int t = 0; t < T; t++) {
    double next[W];
    for (int i = 0; i < W; i++) {
      double y = x[t][i] * p->w[i];
      for (int j = 0; j < W; j++) y += h[j] * p->u[j][i];
      y = tanh(y);
      sum += y * (t + 1) * y * (t + 1);
      next[i] = h[i] * p->w[i] + y;
    }
    memcpy(h, k, sizeof h);
    memcpy(k, next, sizeof k);
  }
  for (int i = 0; i < W; i++) sum += h[i] * 0.5;
  return sum;
}

static double slope(const Weights *p, size_t weight, double x[N][T][W])
{
  const double step = 1e-4;
  double sum = 0;
  for (int n = 0; n < N; n++)
    for (int side = -1; side <= 1; side += 2) {
      Weights moved = *p;
      ((double *)&moved)[weight] += side * step;
      sum += side * loss_of(&moved, x[n]);
    }
  return sum / (2 * step);
}

static ampc_status move_weights(Built *b, Weights *w, bool write)
{
  const ampc_program *p = b->c->program;
  double *at[] = {w->h0, w->u[0], w->w};
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; !status && i < p->n_params; i++) {
    const ampc_param *q = &p->params[i];
    ampc_ref place = {AMPC_MASTER, q->offset * (int64_t)sizeof(double)};
    int64_t bytes = q->elements * (int64_t)sizeof(double);
    status = write ? ampc_write(b->rt, place, at[i], bytes) : ampc_read(b->rt, place, at[i], bytes);
  }
  return status;
}

/* Compares gradients of about 10 with differences, whose error is about 1e-7. */
static void check(TestRun *run, const Weights *before, const Weights *after, double x[N][T][W])
{
  double worst = 0;
  for (size_t i = 0; i < WEIGHTS; i++) {
    double got = ((const double *)before)[i] - ((const double *)after)[i];
    worst = number_worse(worst, fabs(got - slope(before, i, x)) / 1e-5);
  }
  for (size_t i = 0; i < N_OPS; i++) {
    test_report(run, ops[i], PROOF_forward, AMPC_F32, worst, "a step of a job with a loop");
    if (op_row(ops[i])->gradient != op_row(OP_scan)->gradient)
      test_report(run, ops[i], PROOF_backward, AMPC_F32, worst, "its gradients");
  }
}

static ampc_status run_step(Arena *a, TestRun *run, Built *b)
{
  (void)a;
  double x[N][T][W];
  Weights before, after;
  uint64_t random = 5;
  for (size_t i = 0; i < N * T * W; i++) ((double *)x)[i] = number_uniform(&random) * 2 - 1;
  for (size_t i = 0; i < WEIGHTS; i++) ((double *)&before)[i] = number_uniform(&random) * 2 - 1;
  ampc_status status = move_weights(b, &before, true);
  if (!status) status = built_put(b, 0, x, sizeof x);
  if (!status) status = built_step(b);
  if (!status) status = move_weights(b, &after, false);
  if (!status) check(run, &before, &after, x);
  return status;
}

ampc_status suite_scan(Arena *a, TestRun *run)
{
  if (!test_wants_any(run, ops, N_OPS)) return AMPC_OK;
  return built_job_twice(
      a, run,
      &(BuiltJob){.name = "the job with a loop", .text = job, .test = run_step, .real64 = true});
}
