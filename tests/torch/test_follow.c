/* Twenty steps with models that follow another one, compared with PyTorch loops: a target that is
 * copied every four steps, moving averages before and after the update, an assignment to one
 * weight, batch norm in both models, a teacher that is the optimizer's average, and a net whose
 * weights another net makes.
 *
 *   test_follow follow.safetensors
 *
 * Bound: 1e-12. Both sides compute in double and all settings are powers of two, so only the order
 * of sums differs. One update too many, too few or in a wrong step causes errors of 1e-3 or more.
 */
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, BATCH = 8, WIDTH = 6 };

#define DATA "data d() { return synthetic(640, [6]), synthetic(640, [6]) }\n"
#define NET                                                                                        \
  "module Net { fc1 = Linear(6, 16); fc2 = Linear(16, 3)\n"                                        \
  "  def forward(x) { return fc2(tanh(fc1(x))) } }\n"
#define ENCODER                                                                                    \
  "module Encoder { fc1 = Linear(6, 16); bn = BatchNorm1d(16); fc2 = Linear(16, 4)\n"              \
  "  def forward(x) { return fc2(tanh(bn(fc1(x)))) } }\n"
#define HYPER                                                                                      \
  "module Hyper { gen = Linear(6, 99); main = Net()\n"                                             \
  "  def forward(x, z) {\n"                                                                        \
  "    made = tanh(gen(mean(z, 0)))\n"                                                             \
  "    given = [[\"fc1.weight\", made[:96].view(16, 6)], [\"fc2.bias\", made[96:]]]\n"             \
  "    return functional_call(main, given, x) } }\n"
#define OPTIMIZER(more) "optimizer opt = SGD(net, lr=0.125, momentum=0.5" more ")\n"
#define TRAIN(body)     "train x, z in d() with batch=8 {\n" body "}\n"
#define PAIR            DATA NET "model net = Net()\nmodel target = copy(net)\n"
#define MINIMIZE        "  minimize mse_loss(net(x), target(z)) with opt\n"
#define FOLLOW          "  follow(target, net, decay=0.875)\n"
#define TEACHER(more)                                                                              \
  DATA NET "model net = Net()\n" OPTIMIZER(", ema=0.875" more)                                     \
      TRAIN("  minimize mse_loss(net(x), z[:, :3]) + mse_loss(net(z), net.ema()(z)) with opt\n")

typedef struct Run { /* as in make_follow.py */
  const char *name, *text;
} Run;
static const Run runs[] = {
    {"dqn", PAIR OPTIMIZER("") TRAIN("  goal = 0.5 * amax(target(z), 1) + mean(x, 1)\n"
                                     "  minimize mse_loss(net(x)[:, 0], goal) with opt\n"
                                     "  every 4 { follow(target, net) }\n")},
    {"moving", PAIR OPTIMIZER("") TRAIN(MINIMIZE FOLLOW)},
    {"bodies", PAIR OPTIMIZER(", accumulate=2") TRAIN(MINIMIZE FOLLOW)},
    {"early", PAIR OPTIMIZER(", accumulate=2") TRAIN(FOLLOW MINIMIZE)},
    {"rising",
     PAIR OPTIMIZER("") TRAIN(MINIMIZE "  follow(target, net, decay=1.0 - 0.5 / (step + 1))\n")},
    {"part",
     PAIR OPTIMIZER("") TRAIN(
         "  target.fc1.weight = 0.75 * target.fc1.weight + 0.25 * net.fc1.weight\n" MINIMIZE)},
    {"moco", DATA ENCODER "model net = Encoder()\nmodel target = copy(net)\n" OPTIMIZER("")
                 TRAIN(FOLLOW "  logits = net(x) @ target(z).transpose(0, 1) / 0.5\n"
                              "  minimize cross_entropy(logits, arange(8)) with opt\n")},
    {"synced", DATA ENCODER "model net = Encoder()\nmodel target = copy(net).eval()\n" OPTIMIZER("")
                   TRAIN(MINIMIZE "  follow(target, net, decay=0.875, buffers=true)\n")},
    {"teacher", TEACHER("")},
    {"teacher2", TEACHER(", accumulate=2")},
    {"hyper", DATA NET HYPER "model net = Hyper()\n" OPTIMIZER("")
                  TRAIN("  minimize mse_loss(net(x, z), z[:, :3]) with opt\n")},
};

/* Returns numbers in [-1, 1) times `factor`, as in make_follow.py. */
static double *numbers(uint64_t seed, int64_t n, double factor)
{
  double *at = test_alloc((size_t)n * sizeof *at);
  for (int64_t i = 0; i < n; i++) at[i] = (2 * mix(seed, (uint64_t)i) - 1) * factor;
  return at;
}

/* Checks that a run begins with equal originals and copies. */
static void check_copies(Job *job)
{
  const ampc_program *p = job->program;
  test_must(ampc_init_params(job->rt, 1), "init");
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_param *q = &p->params[i], *from = &p->params[(uint32_t)q->init.a];
    if (q->init.kind != AMPC_INIT_COPY) continue;
    size_t bytes = (size_t)q->elements * sizeof(double);
    void *a = test_alloc(bytes), *b = test_alloc(bytes);
    test_must(ampc_read_param(job->rt, q, AMPC_BUFFER, a), "read");
    test_must(ampc_read_param(job->rt, from, from->buffer ? AMPC_BUFFER : AMPC_MASTER, b), "read");
    if (memcmp(a, b, bytes) != 0) test_fail("%s does not begin as %s", q->path, from->path);
    free(a);
    free(b);
  }
}

/* Buffers of batch norm keep their initial values. The averages begin as the weights. */
static void write_parameters(Job *job)
{
  const ampc_program *p = job->program;
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_param *q = &p->params[i], *from = q;
    if (q->init.kind == AMPC_INIT_COPY) from = &p->params[(uint32_t)q->init.a];
    if (from->buffer) continue;
    double *at = numbers((uint64_t)(from - p->params) + 1, q->elements, 0.5);
    job_write_param(job, q, at);
    if (p->space_bytes[AMPC_EMA])
      test_must(ampc_write_param(job->rt, q, AMPC_EMA, at), "write an average");
    free(at);
  }
}

static double run_body(Job *job, uint32_t block, int64_t step, int64_t body)
{
  const ampc_block *b = &job->program->blocks[block];
  const ampc_source *s = &job->program->sources[b->first_source];
  ampc_metric m;
  for (int i = 0; i < 2; i++) {
    uint64_t seed = 1000 * ((uint64_t)i + 1) + (uint64_t)((step - 1) * b->accumulate + body);
    double *at = numbers(seed, BATCH * WIDTH, 1);
    job_write_floats(job, (ampc_ref){AMPC_INPUT, s[i].offset}, at, BATCH * WIDTH);
    free(at);
  }
  test_must(ampc_set_group(job->rt, body == 0, body == b->accumulate - 1), "group");
  test_must(ampc_run_step(job->rt, block, ampc_variant_at(b, BATCH, step)), "step");
  test_must(ampc_wait(job->rt), "step");
  test_must(ampc_get_metric(job->rt, b->first_metric, &m), "loss");
  test_must(ampc_clear_metrics(job->rt, block), "clear");
  return m.sum / m.count;
}

static double values_error(Job *job, const Tensor *truth)
{
  double worst = 0;
  int64_t at = 0;
  for (uint32_t i = 0; i < job->program->n_params; i++) {
    const ampc_param *p = &job->program->params[i];
    void *values = test_alloc((size_t)p->elements * sizeof(double));
    test_must(ampc_read_param(job->rt, p, p->buffer ? AMPC_BUFFER : AMPC_MASTER, values), "read");
    for (int64_t k = 0; k < p->elements && at < truth->n; k++) {
      double v = p->dtype == AMPC_I64 ? (double)((int64_t *)values)[k] : ((double *)values)[k];
      worst = number_worse(worst, fabs(v - truth->at[at++]));
    }
    free(values);
  }
  if (at != truth->n) test_fail("the fixture has %lld values", (long long)truth->n);
  return worst;
}

static bool run(const Fixture *f, const Run *r)
{
  Options options = {
      .input = r->name, .target = "cpu", .optimize = 2, .error_limit = 20, .real64 = true};
  Job job = job_open_with(&options, r->text);
  uint32_t block = job_block(&job, AMPC_TRAIN);
  int64_t bodies = job.program->blocks[block].accumulate;
  const Tensor *losses = fixture_get(f, "%s/losses", r->name);
  double worst = 0, bound = 1e-12;
  check_copies(&job);
  write_parameters(&job);
  if (losses->n != STEPS * bodies) test_fail("%s has other bodies than its fixture", r->name);
  for (int64_t i = 0; i < losses->n; i++) {
    double loss = run_body(&job, block, i / bodies + 1, i % bodies);
    worst = number_worse(worst, fabs(loss - losses->at[i]));
  }
  double values = values_error(&job, fixture_get(f, "%s/values", r->name));
  bool good = worst <= bound && values <= bound;
  printf("%-8s losses within %.1e, values %.1e: %s\n", r->name, worst, values,
         good ? "ok" : "FAILED");
  job_close(&job);
  return good;
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_follow follow.safetensors");
  Fixture *f = fixture_open(argv[1]);
  int bad = 0;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) bad += !run(f, &runs[i]);
  fixture_close(f);
  return bad != 0;
}
