/* Gradients through own ops with several outputs, in double. The gradients of the op's backward are
 * compared with central differences of the loss, and with those of a job that computes the same
 * function in the language. The op has two float outputs and one integer output, which is the
 * first. Some outputs are read, some are not, one is read twice.
 *
 *   test_own
 *
 * Bounds, relative to the largest gradient: 1e-12 for the job in the language, because only the
 * order of sums differs; 1e-8 for differences, whose step h = 2^-12 leaves errors of h^4 times the
 * fifth derivative and 1e-16 / h times the loss. A gradient that lacks an output causes errors of
 * 1e-2 or more. */
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>

enum { MOST = 16 };

#define FRONT                                                                                      \
  "data d() { return synthetic(8, [3, 4]) }\n"                                                     \
  "module Net {\n"                                                                                 \
  "  a = Parameter([3, 4])\n  b = Parameter([4])\n"                                                \
  "  def forward(x) {\n    v = x[0] + a\n    "
#define BACK                                                                                       \
  "  }\n}\nmodel net = Net()\n"                                                                    \
  "optimizer opt = SGD(net, lr=1.0)\n"                                                             \
  "train x in d() with batch=1 { minimize net(x) with opt }\n"                                     \
  "eval x in d() with batch=1 { metric loss = net(x) }\n"
#define OP                                                                                         \
  "op split(v: float[N, D], b: float[D]) -> (most: i32[N], y: float[N, D], s: float[N]) {\n"       \
  "  host = \"\"\"\n"                                                                              \
  "    for (int64_t n = 0; n < N; n++) {\n"                                                        \
  "      int at = 0;\n"                                                                            \
  "      s[n] = 0;\n"                                                                              \
  "      for (int64_t d = 0; d < D; d++) {\n"                                                      \
  "        s[n] += sin(v[n * D + d]);\n"                                                           \
  "        y[n * D + d] = v[n * D + d] * b[d];\n"                                                  \
  "        if (v[n * D + d] > v[n * D + at]) at = (int)d;\n"                                       \
  "      }\n      most[n] = at;\n    }\n  \"\"\"\n"                                                \
  "  def backward(dmost, dy, ds) {\n"                                                              \
  "    return dy * b + ds.unsqueeze(1) * cos(v) + dmost.to(f32).unsqueeze(1), (dy * v).sum(0)\n"   \
  "  }\n}\n"
#define SAID "y = v * b\n    s = sin(v).sum(1)\n    "

typedef struct Case {
  const char *name, *own, *said;
} Case;
static const Case cases[] = {
    {"all outputs",
     OP FRONT "most, y, s = split(v, b)\n    return (y * y).sum() + exp(s).sum()\n" BACK,
     FRONT SAID "return (y * y).sum() + exp(s).sum()\n" BACK},
    {"the one that the node is", OP FRONT "return (split(v, b)[1] ** 3).sum()\n" BACK,
     FRONT SAID "return (y ** 3).sum()\n" BACK},
    {"another one", OP FRONT "return (split(v, b)[2] ** 2).sum() + (b * b).sum()\n" BACK,
     FRONT SAID "return (s ** 2).sum() + (b * b).sum()\n" BACK},
    {"two calls",
     OP FRONT
     "most, y, s = split(v, b)\n    i, z, t = split(tanh(y), s.sum() * b)\n"
     "    return (s * exp(s)).sum() + (t * s).sum() + (z * most.to(f32).unsqueeze(1)).sum()\n" BACK,
     FRONT SAID
     "most = v.argmax(1)\n    w = tanh(y)\n    z = w * (s.sum() * b)\n    t = sin(w).sum(1)\n"
     "    return (s * exp(s)).sum() + (t * s).sum() + (z * "
     "most.to(f32).unsqueeze(1)).sum()\n" BACK},
    {"recomputed",
     OP FRONT "return checkpoint(inner, v).sum()\n  }\n  def inner(v) {\n"
              "    most, y, s = split(tanh(v), b)\n    return y * exp(s).unsqueeze(1)\n" BACK,
     FRONT "v = tanh(v)\n    " SAID "return (y * exp(s).unsqueeze(1)).sum()\n" BACK},
    {"in a loop",
     OP FRONT
     "h = zeros(3, 4)\n    rows = stack([v, 2.0 * v, v * v])\n    scan t in range(3) carry h {\n"
     "      most, y, s = split(rows[t] + h, b)\n      h = y * 0.5 + s.unsqueeze(1)\n      "
     "emit sums = s\n"
     "    }\n    return (h * h).sum() + sums[1].sum()\n" BACK,
     FRONT
     "h = zeros(3, 4)\n    rows = stack([v, 2.0 * v, v * v])\n    scan t in range(3) carry h {\n"
     "      w = rows[t] + h\n      s = sin(w).sum(1)\n      h = w * b * 0.5 + s.unsqueeze(1)\n   "
     "   emit sums = s\n"
     "    }\n    return (h * h).sum() + sums[1].sum()\n" BACK},
};

static Job open_case(const char *text)
{
  Options options = {
      .input = "own", .target = "cpu", .optimize = 2, .error_limit = 20, .real64 = true};
  return job_open_with(&options, text);
}

/* Writes the same numbers in every job. */
static void write_numbers(Job *job, double at[2][MOST])
{
  double x[MOST];
  for (uint32_t i = 0; i < 2; i++) job_write_param(job, &job->program->params[i], at[i]);
  for (uint64_t k = 0; k < 12; k++) x[k] = mix(7, k);
  job_write_floats(job, (ampc_ref){AMPC_INPUT, 0}, x, 12);
}

/* Computes the gradients. With SGD and a learning rate of 1, a step subtracts them. */
static void gradients(Job *job, double at[2][MOST], double out[2][MOST])
{
  write_numbers(job, at);
  job_run(job, job_block(job, AMPC_TRAIN));
  for (uint32_t i = 0; i < 2; i++) {
    const ampc_param *p = &job->program->params[i];
    job_read_param(job, p, AMPC_MASTER, out[i]);
    for (int64_t k = 0; k < p->elements; k++) out[i][k] = at[i][k] - out[i][k];
  }
}

static double loss(Job *job, double at[2][MOST])
{
  uint32_t eval = job_block(job, AMPC_EVAL);
  ampc_metric m;
  write_numbers(job, at);
  test_must(ampc_clear_metrics(job->rt, eval), "clear");
  job_run(job, eval);
  test_must(ampc_get_metric(job->rt, job->program->blocks[eval].first_metric, &m), "loss");
  return m.sum / m.count;
}

static double quotient(Job *job, double at[2][MOST], uint32_t i, int64_t k, double h)
{
  const double was = at[i][k];
  at[i][k] = was + h;
  double above = loss(job, at);
  at[i][k] = was - h;
  double below = loss(job, at);
  at[i][k] = was;
  return (above - below) / (2 * h);
}

/* Returns a difference of fourth order. With half the step, the error of second order is a quarter;
 * this combination cancels it. */
static double difference(Job *job, double at[2][MOST], uint32_t i, int64_t k)
{
  const double h = 0x1p-12;
  return (4 * quotient(job, at, i, k, h / 2) - quotient(job, at, i, k, h)) / 3;
}

static bool run(const Case *test)
{
  Job own = open_case(test->own), said = open_case(test->said);
  double at[2][MOST], got[2][MOST], want[2][MOST], most = 0, to_said = 0, to_difference = 0;
  for (uint32_t i = 0; i < 2; i++)
    for (uint64_t k = 0; k < MOST; k++) at[i][k] = 1.6 * mix(i + 1, k) - 0.5;
  gradients(&own, at, got);
  gradients(&said, at, want);
  for (uint32_t i = 0; i < 2; i++)
    for (int64_t k = 0; k < own.program->params[i].elements; k++) {
      most = number_worse(most, fabs(want[i][k]));
      to_said = number_worse(to_said, fabs(got[i][k] - want[i][k]));
      to_difference = number_worse(to_difference, fabs(got[i][k] - difference(&own, at, i, k)));
    }
  bool good = to_said <= 1e-12 * most && to_difference <= 1e-8 * most && most > 0.1;
  printf("%-24s gradients to %.3g, off the language's by %.1e, off differences by %.1e: %s\n",
         test->name, most, to_said, to_difference, good ? "ok" : "FAILED");
  job_close(&own);
  job_close(&said);
  return good;
}

int main(void)
{
  int bad = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) bad += !run(&cases[i]);
  return bad != 0;
}
