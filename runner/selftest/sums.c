/* Suite: sums in f64 (`accumulate`) along rows, along columns, over several axes, and of a
 * gradient. The terms are integers. Large terms cancel and leave the sum of the small ones. A sum
 * in f32 loses the small terms, which is tested too. A sum in f64 is exact, and its result is
 * rounded once. */
#include "graph.h"
#include <math.h>
#include <string.h>

enum { N = 2, L = 4101, C = 24, ALL = N * L * C };

/* Sums over the last axis (rows), another (columns), two that are not adjacent, and all axes. */
static const char forward_job[] =
    "precision f32 { accumulate(%s, sum, mean) }\n"
    "infer f(x: f32[2, 4101, 24]) {\n"
    "  return x.sum(2), x.sum(1), x.sum([0, 2], keepdim=true), x.sum(), x.mean(1)\n"
    "}\n";
enum { ROWS, COLUMNS, APART, WHOLE, MEANS, RESULTS };

/* A job in which the gradient of w is the sum of x over two axes. */
static const char backward_job[] =
    "precision f32 { accumulate(%s, mul) }\n"
    "data numbers() { return synthetic(2, [4101, 24]) }\n"
    "module Net { w = Parameter([24], init=zeros_()); def forward(x) { return x * w } }\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=1.0)\n"
    "train x in numbers() with batch=2 { minimize net(x).sum() with opt }\n";

/* Returns an element. Of 3 neighbours along l or c, two are large and cancel. */
static double element(int n, int l, int c)
{
  static const double great[] = {0x1p30, 0, -0x1p30};
  int which = (l + c) % 3;
  return great[which] + (which == 1 ? (n + 3 * l + 7 * c) % 5 - 1 : 0);
}

/* Returns the sum over all axes whose index is below 0. */
static double sum_of(int n, int l, int c)
{
  double sum = 0;
  for (int i = n < 0 ? 0 : n; i < (n < 0 ? N : n + 1); i++)
    for (int j = l < 0 ? 0 : l; j < (l < 0 ? L : l + 1); j++)
      for (int k = c < 0 ? 0 : c; k < (c < 0 ? C : c + 1); k++) sum += element(i, j, k);
  return sum;
}

static double wanted(uint32_t output, int64_t i)
{
  int at = (int)i;
  switch (output) {
  case ROWS:
    return sum_of(at / L, at % L, -1);
  case COLUMNS:
    return sum_of(at / C, -1, at % C);
  case APART:
    return sum_of(-1, at, -1);
  case WHOLE:
    return sum_of(-1, -1, -1);
  case MEANS:
    return (float)((float)sum_of(at / C, -1, at % C) / (float)L);
  default:
    return NAN;
  }
}

static ampc_status start(Built *b, Arena *a, const TestRun *run, int optimize, const char *text)
{
  ampc_status status =
      built_job(b, run, optimize, &(BuiltJob){.name = "the job of sums", .text = text});
  float *x = arena_array(a, float, ALL);
  for (int i = 0; i < ALL; i++) x[i] = (float)element(i / C / L, i / C % L, i % C);
  return status ? status : built_put(b, 0, x, ALL * sizeof *x);
}

/* Counts the wrong elements of each result. */
static ampc_status wrong_sums(Arena *a, const TestRun *run, int optimize, const char *type,
                              int64_t *out)
{
  Built b;
  ampc_status status = start(&b, a, run, optimize, arena_printf(a, forward_job, type));
  if (!status) status = built_step(&b);
  for (uint32_t k = 0; !status && k < b.c->program->n_outputs; k++) {
    Tensor got;
    status = built_read(&b, a, k, &got);
    out[k] = 0;
    for (int64_t i = 0; !status && i < got.n; i++) out[k] += got.at[i] != wanted(k, i);
  }
  built_close(&b);
  return status;
}

static ampc_status wrong_gradients(Arena *a, const TestRun *run, int optimize, const char *type,
                                   int64_t *out)
{
  Built b;
  float w[C];
  ampc_status status = start(&b, a, run, optimize, arena_printf(a, backward_job, type));
  if (!status) status = built_step(&b);
  if (!status) status = ampc_read(b.rt, (ampc_ref){AMPC_MASTER, 0}, w, sizeof w);
  *out = 0;
  for (int i = 0; !status && i < C; i++) *out += w[i] != -sum_of(-1, -1, i);
  built_close(&b);
  return status;
}

static ampc_status run_sums(Arena *a, TestRun *run, int optimize)
{
  static const OpKind ops[] = {OP_sum, OP_sum, OP_sum, OP_sum, OP_mean};
  static const char *const names[] = {"along rows", "along columns", "over two axes apart",
                                      "over all", "means"};
  int64_t exact[RESULTS], rounded[RESULTS], gradients, rounded_gradients;
  ampc_status status = wrong_sums(a, run, optimize, "f64", exact);
  if (!status) status = wrong_sums(a, run, optimize, "f32", rounded);
  if (!status) status = wrong_gradients(a, run, optimize, "f64", &gradients);
  if (!status) status = wrong_gradients(a, run, optimize, "f32", &rounded_gradients);
  for (int k = 0; !status && k < RESULTS; k++) {
    test_check(run, ops[k], AMPC_F32, !exact[k],
               arena_printf(a, "sums in f64 %s: %lld are wrong", names[k], (long long)exact[k]));
    test_check(run, ops[k], AMPC_F32, rounded[k] != 0,
               arena_printf(a, "sums in f32 %s are not exact", names[k]));
  }
  if (status) return status;
  test_check(run, OP_mul, AMPC_F32, !gradients, "gradients summed in f64 are exact");
  test_check(run, OP_mul, AMPC_F32, rounded_gradients, "gradients summed in f32 are not exact");
  return AMPC_OK;
}

ampc_status suite_sums(Arena *a, TestRun *run)
{
  ampc_status status = AMPC_OK;
  if (!test_wanted(run, OP_sum) && !test_wanted(run, OP_mean)) return status;
  for (int optimize = 0; !status && optimize <= 2; optimize += 2)
    status = run_sums(a, run, optimize);
  return status;
}
