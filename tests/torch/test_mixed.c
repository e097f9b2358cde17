/* Twenty steps in bf16 of an f32 value that three products read, compared with PyTorch under
 * autocast. The value is cast once here and three times there; the gradients must be the same.
 *
 *   test_mixed mixed.safetensors
 *
 * Bound: 2e-6. Both sides round to bf16 at the same places, so only the order of f32 sums differs.
 * Gradients that are added in bf16 cause errors of 5e-3 in these steps. */
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 20, INPUTS = 8, OUTPUTS = 4, BATCH = 4 };
static const double bound = 2e-6;

static const char text[] =
    "module Net {\n"
    "  p = Parameter([8])\n"
    "  a = Linear(8, 4, bias=false); b = Linear(8, 4, bias=false); c = Linear(8, 4, bias=false)\n"
    "  def forward(x) { h = p * x; return (a(h) + b(h) + c(h)).to(f32) }\n"
    "}\n"
    "data d() { return synthetic(64, [8]), synthetic(64, [4]) }\n"
    "model net = Net() { freeze(\"*.weight\") }\n"
    "optimizer opt = SGD(net, lr=0.05)\n"
    "precision bf16\n"
    "train x, t in d() with batch=4 { minimize mse_loss(net(x), t) with opt }\n";

/* Writes the numbers of `numbers` in make_fixtures.py. */
static void write_numbers(Job *job, ampc_ref to, uint64_t seed, int64_t n)
{
  double at[INPUTS * OUTPUTS];
  for (int64_t i = 0; i < n; i++) at[i] = 2 * mix(seed, (uint64_t)i) - 1;
  job_write_floats(job, to, at, n);
}

static const ampc_param *param_of(const Job *job, const char *path)
{
  for (uint32_t i = 0; i < job->program->n_params; i++)
    if (!strcmp(job->program->params[i].path, path)) return &job->program->params[i];
  test_fail("no parameter %s", path);
}

static void write_parameters(Job *job)
{
  static const char *const weights[] = {"a.weight", "b.weight", "c.weight"};
  write_numbers(job, (ampc_ref){AMPC_MASTER, param_of(job, "p")->offset * 4}, 1, INPUTS);
  for (int i = 0; i < 3; i++)
    write_numbers(job, (ampc_ref){AMPC_MASTER, param_of(job, weights[i])->offset * 4},
                  2 + (uint64_t)i, INPUTS * OUTPUTS);
  test_must(ampc_refresh_copies(job->rt), "copies");
}

/* Returns the largest error of the loss or of an element of p after one step. */
static double step_error(Job *job, uint32_t block, const Fixture *f, int step)
{
  const ampc_source *s = &job->program->sources[job->program->blocks[block].first_source];
  double p[INPUTS];
  ampc_metric m;
  write_numbers(job, (ampc_ref){AMPC_INPUT, s[0].offset}, 1000 + (uint64_t)step, BATCH * INPUTS);
  write_numbers(job, (ampc_ref){AMPC_INPUT, s[1].offset}, 2000 + (uint64_t)step, BATCH * OUTPUTS);
  job_run(job, block);
  test_must(ampc_get_metric(job->rt, 0, &m), "loss");
  job_read_param(job, param_of(job, "p"), AMPC_MASTER, p);
  double worst = fabs((double)m.last - fixture_get(f, "losses")->at[step]);
  for (int i = 0; i < INPUTS; i++) {
    double d = fabs(p[i] - fixture_get(f, "p")->at[step * INPUTS + i]);
    worst = number_worse(worst, d);
  }
  return worst;
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_mixed mixed.safetensors");
  Fixture *f = fixture_open(argv[1]);
  Job job = job_open("mixed", text);
  uint32_t block = job_block(&job, AMPC_TRAIN);
  double worst = 0;
  write_parameters(&job);
  for (int step = 0; step < STEPS; step++) {
    worst = number_worse(worst, step_error(&job, block, f, step));
  }
  printf("losses and weights within %.1e (bound %.0e)\n", worst, bound);
  job_close(&job);
  fixture_close(f);
  return !(worst <= bound);
}
