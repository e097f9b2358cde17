/* A convolutional LSTM over videos, written with `scan`, compared with PyTorch's. Compared are the
 * states of all steps and the last cells; all gradients of the first training step, through time to
 * the first state and to the layers before the loop; losses and weights of twenty steps. The test
 * runs without and with fusion.
 *
 *   test_conv_lstm conv_lstm.safetensors
 *
 * Bound: 1e-12 of a tensor's largest number. Both sides compute in double (options.real64) and all
 * settings are powers of two, so only the order of sums differs. A missing step, a state that is
 * read too early, or a gradient that misses a step causes errors of 1e-3 or more. */
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, BATCH = 4, CLASSES = 3 };
static const double bound = 1e-12;

static const char text[] = /* as in make_conv_lstm.py */
    "module Net {\n"
    "  stem = Conv2d(2, 2, 1); gates = Conv2d(5, 12, 3, padding=1)\n"
    "  begin = Parameter([3, 6, 5]); out = Linear(3, 3)\n"
    "  def forward(x) {\n"
    "    x = stem(x.flatten(0, 1)).view(x.shape)\n"
    "    h = begin.expand(x.size(0), 3, 6, 5)\n"
    "    c = zeros_like(h)\n"
    "    scan t in range(x.size(1)) carry h, c {\n"
    "      i, f, o, g = gates(cat([x[:, t], h], 1)).chunk(4, 1)\n"
    "      c = sigmoid(f) * c + sigmoid(i) * tanh(g)\n"
    "      h = sigmoid(o) * tanh(c)\n"
    "      emit states = h\n"
    "    }\n"
    "    return states, c\n"
    "  }\n"
    "}\n"
    "data films() { return synthetic(64, [5, 2, 6, 5]),\n"
    "                      synthetic(64, [], dtype=i64, low=0, high=3) }\n"
    "model net = Net()\n"
    "optimizer opt = SGD(net, lr=0.25, momentum=0.875)\n"
    "infer run(film: f32[4, 5, 2, 6, 5]) { return net(film) }\n"
    "train film, label in films() with batch=4 {\n"
    "  states, c = net(film)\n"
    "  minimize cross_entropy(net.out(c.mean([2, 3])), label) + mean(states ** 2) with opt\n"
    "}\n";

/* ---- numbers, as in make_models.py ---- */

static double signed_mix(uint64_t seed, int64_t i)
{
  return 2 * mix(seed, (uint64_t)i) - 1;
}

static void set_weights(Job *job)
{
  for (uint32_t k = 0; k < job->program->n_params; k++) {
    const ampc_param *p = &job->program->params[k];
    double *w = test_alloc((size_t)p->elements * sizeof *w);
    double size = p->rank > 1 ? sqrt(6.0 / (double)(p->elements / p->dim[0])) : 0.125;
    for (int64_t i = 0; i < p->elements; i++)
      w[i] = (double)(float)(size * signed_mix(seed_of(p->path), i));
    job_write_param(job, p, w);
    free(w);
  }
}

static void set_batch(Job *job, uint32_t block, uint64_t step)
{
  const ampc_source *s = &job->program->sources[job->program->blocks[block].first_source];
  int64_t n = BATCH * 5 * 2 * 6 * 5;
  double *film = test_alloc((size_t)n * sizeof *film), label[BATCH];
  for (int64_t i = 0; i < n; i++) film[i] = signed_mix(1000 + step % 2, i);
  for (int64_t i = 0; i < BATCH; i++) label[i] = floor(mix(2000 + step % 2, (uint64_t)i) * CLASSES);
  job_write_floats(job, (ampc_ref){AMPC_INPUT, s[0].offset}, film, n);
  if (job->program->blocks[block].kind == AMPC_TRAIN)
    job_write_integers(job, (ampc_ref){AMPC_INPUT, s[1].offset}, label, BATCH);
  free(film);
}

/* ---- comparing ---- */

static double distance(const double *got, const Tensor *truth)
{
  double most = 0, worst = 0;
  for (int64_t i = 0; i < truth->n; i++) most = fmax(most, fabs(truth->at[i]));
  for (int64_t i = 0; i < truth->n; i++)
    worst = number_worse(worst, fabs(got[i] - truth->at[i]) / most);
  return worst;
}

static double output_error(Job *job, const Fixture *f)
{
  static const char *const names[] = {"states", "cells"};
  double worst = 0;
  if (job->program->n_outputs != 2) test_fail("%u outputs", job->program->n_outputs);
  for (uint32_t i = 0; i < 2; i++) {
    const Tensor *truth = fixture_get(f, "%s", names[i]);
    double *got = test_alloc((size_t)truth->n * sizeof *got);
    test_must(
        ampc_read(job->rt, job->program->outputs[i].place, got, truth->n * (int64_t)sizeof *got),
        "read");
    worst = number_worse(worst, distance(got, truth));
    free(got);
  }
  return worst;
}

/* Returns the error of the weights, or of the moments after the first step: its gradients. */
static double params_error(Job *job, const Fixture *f, const char *kind, ampc_space space)
{
  double worst = 0;
  for (uint32_t k = 0; k < job->program->n_params; k++) {
    const ampc_param *p = &job->program->params[k];
    const Tensor *truth = fixture_get(f, "%s/%s", kind, p->path);
    double *got = test_alloc((size_t)p->elements * sizeof *got);
    if (p->elements != truth->n) test_fail("%s has %lld numbers", p->path, (long long)truth->n);
    job_read_param(job, p, space, got);
    double off = distance(got, truth);
    if (!(off <= bound)) printf("  %s/%s is off by %.1e\n", kind, p->path, off);
    worst = number_worse(worst, off);
    free(got);
  }
  return worst;
}

static double run_step(Job *job, uint32_t block, uint64_t step, const Tensor *losses)
{
  ampc_metric m;
  set_batch(job, block, step);
  job_run(job, block);
  test_must(ampc_get_metric(job->rt, job->program->blocks[block].first_metric, &m), "loss");
  test_must(ampc_clear_metrics(job->rt, block), "clear");
  return fabs(m.sum / m.count - losses->at[step]); /* `last` is f32 */
}

static bool check(const Fixture *f, int level)
{
  Options options = {
      .input = "conv_lstm", .target = "cpu", .optimize = level, .error_limit = 20, .real64 = true};
  Job job = job_open_with(&options, text);
  uint32_t train = job_block(&job, AMPC_TRAIN), infer = job_block(&job, AMPC_INFER);
  const Tensor *losses = fixture_get(f, "losses");
  set_weights(&job);
  set_batch(&job, infer, 0);
  job_run(&job, infer);
  double values = output_error(&job, f), loss = run_step(&job, train, 0, losses);
  double gradients = params_error(&job, f, "grad", AMPC_MOMENT1);
  for (uint64_t step = 1; step < STEPS; step++)
    loss = number_worse(loss, run_step(&job, train, step, losses));
  double weights = params_error(&job, f, "weights", AMPC_MASTER);
  bool good = values <= bound && gradients <= bound && loss <= bound && weights <= bound;
  printf("-O%d: values within %.1e, gradients %.1e, losses of %d steps %.1e, weights %.1e (bound "
         "%.0e): %s\n",
         level, values, gradients, STEPS, loss, weights, bound, good ? "ok" : "FAILED");
  job_close(&job);
  return good;
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_conv_lstm conv_lstm.safetensors");
  Fixture *f = fixture_open(argv[1]);
  int bad = !check(f, 0);
  bad += !check(f, 2);
  fixture_close(f);
  return bad != 0;
}
