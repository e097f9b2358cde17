/* Twenty steps of a generator and its critic with `every` statements, compared with a PyTorch loop
 * that uses `if`. The runs are: five updates of the critic for one of the generator (WGAN); the
 * same with steps of two bodies; optimizers with two or three updates in a step; two optimizers for
 * one loss; optimizers that share parameters; a gradient penalty (WGAN-GP).
 *
 *   test_every every.safetensors
 *
 * Bound: 1e-12. Both sides compute in double and all settings are powers of two, so only the order
 * of sums differs. With clipped gradients the bound is 1e-7, because the state has the factor in
 * f32. An update too many, too few or in a wrong step causes errors of 1e-3 or more. */
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 20, BATCH = 8 };

#define NETS                                                                                       \
  "module Gen { fc1 = Linear(4, 16); fc2 = Linear(16, 6)\n"                                        \
  "  def forward(z) { return fc2(tanh(fc1(z))) } }\n"                                              \
  "module Disc { fc1 = Linear(6, 16); fc2 = Linear(16, 1, bias=false)\n"                           \
  "  def forward(x) { return fc2(tanh(fc1(x))) } }\n"                                              \
  "data d() { return synthetic(640, [6]), synthetic(640, [4]) }\n"                                 \
  "model gen = Gen()\nmodel disc = Disc()\n"
#define WGAN(bodies, interval)                                                                     \
  "optimizer opt_d = RMSprop(disc, lr=0.00390625, alpha=0.875, eps=0.0009765625, "                 \
  "accumulate=" bodies ", clamp=[-0.125, 0.125])\n"                                                \
  "optimizer opt_g = RMSprop(gen, lr=0.00390625, alpha=0.875, eps=0.0009765625, "                  \
  "accumulate=" bodies ")\n"                                                                       \
  "train real, z in d() with batch=8 {\n"                                                          \
  "  fake = gen(z)\n"                                                                              \
  "  minimize mean(disc(fake.detach())) - mean(disc(real)) with opt_d\n"                           \
  "  every " interval " { minimize -mean(disc(fake)) with opt_g }\n}\n"

#define TOGETHER(bodies, more)                                                                     \
  "optimizer opt_d = Adam(disc, lr=0.015625, betas=[0.5, 0.875], eps=0.0009765625, "               \
  "clip_norm=0.125, accumulate=" bodies ")\n"                                                      \
  "optimizer opt_g = SGD(gen, lr=0.0625, momentum=0.5, clip_norm=0.25, accumulate=" bodies ")\n"   \
  "train real, z in d() with batch=8 {\n"                                                          \
  "  minimize mean((disc(gen(z)) - 1) ** 2) + mean(disc(real) ** 2) with opt_g, opt_d\n" more      \
  "}\n"

#define SHARED(bodies)                                                                             \
  "optimizer opt_a = SGD([gen.fc1, disc.fc2], lr=0.0625, momentum=0.5, clip_norm=0.125, "          \
  "accumulate=" bodies ")\n"                                                                       \
  "optimizer opt_b = Adam([disc, gen], lr=0.015625, betas=[0.5, 0.875], eps=0.0009765625, "        \
  "clip_norm=0.25, accumulate=" bodies ") { group(\"gen.*.bias\", lr=0.00390625) }\n"              \
  "optimizer opt_c = RMSprop([disc.fc1, gen.fc2.weight, gen.fc1.bias], lr=0.00390625, "            \
  "alpha=0.875, eps=0.0009765625, accumulate=" bodies ")\n"                                        \
  "train real, z in d() with batch=8 {\n"                                                          \
  "  minimize mean((disc(gen(z)) - 1) ** 2) + mean(disc(real) ** 2) with opt_c, opt_a, opt_b\n"    \
  "}\n"

typedef struct Run { /* as in make_fixtures.py */
  const char *name, *text;
  double bound;
} Run;
static const Run runs[] = {
    {"wgan", NETS WGAN("1", "5"), 1e-12},
    {"bodies", NETS WGAN("2", "3"), 1e-12},
    {"uneven",
     NETS "optimizer opt_d = Adam(disc, lr=step_schedule(0.015625, every=4, gamma=0.5), "
          "betas=[0.5, 0.875], eps=0.0009765625)\n"
          "optimizer opt_g = SGD(gen, lr=0.0625, momentum=0.5)\n"
          "train real, z in d() with batch=8 {\n"
          "  fake = gen(z)\n"
          "  minimize mean((disc(fake.detach()) - 1) ** 2) with opt_d\n"
          "  minimize mean(disc(real) ** 2) with opt_d\n"
          "  every 2 {\n"
          "    minimize mean((disc(fake) - 1) ** 2) with opt_g\n"
          "    every 3 { minimize mean(disc(real)) with opt_d }\n  }\n}\n",
     1e-12},
    {"together",
     NETS TOGETHER("1", "  every 3 { minimize mean((disc(real) - 1) ** 2) with opt_d }\n"), 1e-7},
    {"summed", NETS TOGETHER("2", ""), 1e-7},
    {"shared",
     NETS "optimizer opt_b = Adam([disc, gen], lr=0.015625, betas=[0.5, 0.875], eps=0.0009765625)\n"
          "optimizer opt_g = SGD(gen, lr=0.0625, momentum=0.5)\n"
          "train real, z in d() with batch=8 {\n"
          "  minimize mean((disc(gen(z)) - 1) ** 2) with opt_g\n"
          "  fake = gen(z)\n"
          "  minimize mean(fake ** 2) + mean((disc(real) + disc(fake)) ** 2) with opt_b\n}\n",
     1e-12},
    {"three", NETS SHARED("1"), 1e-7},
    {"twofold", NETS SHARED("2"), 1e-7},
    {"penalty",
     NETS "optimizer opt_d = Adam(disc, lr=0.015625, betas=[0.5, 0.875], eps=0.0009765625)\n"
          "optimizer opt_g = Adam(gen, lr=0.015625, betas=[0.5, 0.875], eps=0.0009765625)\n"
          "train real, z in d() with batch=8 {\n"
          "  fake = gen(z)\n"
          "  between = real * 0.25 + fake.detach() * 0.75\n"
          "  slope = grad(disc(between).sum(), between)\n"
          "  minimize mean(disc(fake.detach())) - mean(disc(real)) + 8 * mean((norm(slope, dim=1) "
          "- 1) ** 2) "
          "with opt_d\n"
          "  minimize -mean(disc(fake)) with opt_g\n}\n",
     1e-12},
};

/* Returns numbers in [-1, 1) times `factor`, as in make_fixtures.py. */
static double *numbers(uint64_t seed, int64_t n, double factor)
{
  double *at = test_alloc((size_t)n * sizeof *at);
  for (int64_t i = 0; i < n; i++) at[i] = (2 * mix(seed, (uint64_t)i) - 1) * factor;
  return at;
}

static void write_parameters(Job *job)
{
  for (uint32_t i = 0; i < job->program->n_params; i++) {
    const ampc_param *p = &job->program->params[i];
    double *at = numbers(i + 1, p->elements, 0.5);
    job_write_param(job, p, at);
    free(at);
  }
}

static void write_batch(Job *job, uint32_t block, int64_t body)
{
  const ampc_source *s = &job->program->sources[job->program->blocks[block].first_source];
  for (int i = 0; i < 2; i++) {
    double *at = numbers(1000 * ((uint64_t)i + 1) + (uint64_t)body, BATCH * s[i].dim[0], 1);
    job_write_floats(job, (ampc_ref){AMPC_INPUT, s[i].offset}, at, BATCH * s[i].dim[0]);
    free(at);
  }
}

static void run_step(Job *job, uint32_t block, int64_t step)
{
  const ampc_block *b = &job->program->blocks[block];
  for (int64_t i = 0; i < b->accumulate; i++) {
    write_batch(job, block, (step - 1) * b->accumulate + i);
    test_must(ampc_set_group(job->rt, i == 0, i == b->accumulate - 1), "group");
    test_must(ampc_run_step(job->rt, block, ampc_variant_at(b, BATCH, step)), "step");
  }
  test_must(ampc_wait(job->rt), "step");
}

/* Returns the largest error of a loss; infinity if only one side has the loss. `losses` has one row
 * for each step, with NaN for a loss that does not run in it. */
static double loss_error(Job *job, uint32_t block, const Tensor *losses, int64_t step)
{
  const ampc_block *b = &job->program->blocks[block];
  double worst = 0;
  if (losses->dim[1] != b->n_metrics)
    test_fail("the fixture has %lld losses", (long long)losses->dim[1]);
  for (uint32_t i = 0; i < b->n_metrics; i++) {
    ampc_metric m;
    double truth = losses->at[(step - 1) * losses->dim[1] + i];
    test_must(ampc_get_metric(job->rt, b->first_metric + i, &m), "loss");
    if ((m.count > 0) == isnan(truth)) return INFINITY;
    /* `last` is f32; in a step of one body, the average is its one value */
    if (m.count > 0 && b->accumulate == 1)
      worst = number_worse(worst, fabs(m.sum / m.count - truth));
  }
  test_must(ampc_clear_metrics(job->rt, block), "clear");
  return worst;
}

static double weight_error(Job *job, const Tensor *truth)
{
  double worst = 0;
  int64_t at = 0;
  for (uint32_t i = 0; i < job->program->n_params; i++) {
    const ampc_param *p = &job->program->params[i];
    double *w = test_alloc((size_t)p->elements * sizeof *w);
    job_read_param(job, p, AMPC_MASTER, w);
    for (int64_t k = 0; k < p->elements; k++)
      worst = number_worse(worst, fabs(w[k] - truth->at[at++]));
    free(w);
  }
  if (at != truth->n) test_fail("the fixture has %lld weights", (long long)truth->n);
  return worst;
}

static bool run(const Fixture *f, const Run *r)
{
  Options options = {
      .input = r->name, .target = "cpu", .optimize = 2, .error_limit = 20, .real64 = true};
  Job job = job_open_with(&options, r->text);
  uint32_t block = job_block(&job, AMPC_TRAIN);
  const Tensor *losses = fixture_get(f, "%s/losses", r->name);
  double worst = 0;
  write_parameters(&job);
  for (int64_t step = 1; step <= STEPS; step++) {
    run_step(&job, block, step);
    worst = number_worse(worst, loss_error(&job, block, losses, step));
  }
  double weights = weight_error(&job, fixture_get(f, "%s/weights", r->name));
  bool good = worst <= r->bound && weights <= r->bound;
  printf("%-8s losses within %.1e, weights %.1e (bound %.0e): %s\n", r->name, worst, weights,
         r->bound, good ? "ok" : "FAILED");
  job_close(&job);
  return good;
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_every every.safetensors");
  Fixture *f = fixture_open(argv[1]);
  int bad = 0;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) bad += !run(f, &runs[i]);
  fixture_close(f);
  return bad != 0;
}
