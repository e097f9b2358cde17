/* Twenty steps of an MLP, of a CNN with batch norm and of LSTMs, in f32 with each optimizer,
 * compared with PyTorch's in f64.
 *
 *   test_trajectory trajectory.safetensors
 *
 * Bounds: PyTorch's own f32 runs differ from its f64 runs by at most 3.0e-7 in a loss (relative)
 * and 1.5e-6 in a weight; for the MLP, f32 runs in a hundred orders of summation were measured. The
 * fixture's metadata has both numbers for each run. ampc may differ by three to five times as much.
 * Batches are chosen so that rounding changes neither the sign of a relu's input nor that of a
 * gradient that Adam divides by its magnitude. A wrong bias correction, decay, momentum or schedule
 * causes errors of 1e-3 or more from the first steps on. */
#include "ampc_metrics.h"
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 10, STEPS = 20 };
static const double loss_bound = 1e-6, weight_bound = 7e-6;

typedef struct Net { /* as in the classes of make_fixtures.py */
  const char *text;
  int64_t inputs, batch, batches, sample;
  const char *order[16]; /* parameters, then running statistics */
} Net;

static const Net mlp = {
    "module Net {\n"
    "  fc1 = Linear(784, 64)\n"
    "  fc2 = Linear(64, 10)\n"
    "  def forward(x) { return fc2(relu(fc1(x))) }\n"
    "}\n",
    784,
    32,
    20,
    101,
    {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"},
};

static const Net cnn = {
    "module Net {\n"
    "  conv1 = Conv2d(1, 4, 3, padding=1, bias=false); bn1 = BatchNorm2d(4)\n"
    "  conv2 = Conv2d(4, 8, 3, padding=1, bias=false); bn2 = BatchNorm2d(8)\n"
    "  fc = Linear(8, 10)\n"
    "  def forward(x) {\n"
    "    x = avg_pool2d(relu(bn1(conv1(x.view(-1, 1, 12, 12)))), 2)\n"
    "    return fc(avg_pool2d(relu(bn2(conv2(x))), 2).mean([2, 3]))\n"
    "  }\n"
    "}\n",
    144,
    8,
    2,
    1,
    {"conv1.weight", "bn1.weight", "bn1.bias", "conv2.weight", "bn2.weight", "bn2.bias",
     "fc.weight", "fc.bias", "bn1.running_mean", "bn1.running_var", "bn2.running_mean",
     "bn2.running_var"},
};

static const Net lstm = {
    "module Net {\n"
    "  rnn = LSTM(12, 16, num_layers=2, batch_first=true); fc = Linear(16, 10)\n"
    "  def forward(x) { return fc(rnn(x.view(-1, 12, 12))[0][:, -1]) }\n"
    "}\n",
    144,
    8,
    2,
    1,
    {"rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_ih_l0", "rnn.bias_hh_l0", "rnn.weight_ih_l1",
     "rnn.weight_hh_l1", "rnn.bias_ih_l1", "rnn.bias_hh_l1", "fc.weight", "fc.bias"},
};

static const Net projected = {
    "module Net {\n"
    "  rnn = LSTM(12, 16, batch_first=true, bidirectional=true, proj_size=6); fc = Linear(12, 10)\n"
    "  def forward(x) { return fc(rnn(x.view(-1, 12, 12))[0][:, -1]) }\n"
    "}\n",
    144,
    8,
    2,
    1,
    {"rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_ih_l0", "rnn.bias_hh_l0", "rnn.weight_hr_l0",
     "rnn.weight_ih_l0_reverse", "rnn.weight_hh_l0_reverse", "rnn.bias_ih_l0_reverse",
     "rnn.bias_hh_l0_reverse", "rnn.weight_hr_l0_reverse", "fc.weight", "fc.bias"},
};

/* Nets by the prefix of a run's name; without a match, the MLP. */
static const struct {
  const char *prefix;
  const Net *net;
} nets[] = {{"cnn", &cnn}, {"lstm", &lstm}, {"proj", &projected}};

static const Net *net_of(const char *run)
{
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
    if (!strncmp(run, nets[i].prefix, strlen(nets[i].prefix))) return nets[i].net;
  return &mlp;
}

typedef struct Run {
  const char *name, *optimizer;
} Run;
static const Run runs[] = {
    /* as in RUNS of make_fixtures.py */
    {"sgd", "SGD(net, lr=0.05)"},
    {"nesterov", "SGD(net, lr=0.02, momentum=0.9, nesterov=true, weight_decay=5e-4)"},
    {"adam", "Adam(net, lr=1e-3, weight_decay=1e-2)"},
    {"adamw_linear", "AdamW(net, lr=linear_schedule(2e-3, 2e-4, steps=15), betas=[0.9, 0.95], "
                     "weight_decay=0.1, clip_norm=0.5)"},
    {"adamw_warmup", "AdamW(net, lr=linear_schedule(2e-3, 0.0, steps=20, warmup=4), "
                     "weight_decay=0.1, clip_norm=1.0)"},
    {"adamw_cosine", "AdamW(net, lr=cosine_schedule(2e-3, steps=20, floor=2e-4), "
                     "weight_decay=0.01, clip_norm=1.0)"},
    {"sgd_step", "SGD(net, lr=step_schedule(0.05, every=5, gamma=0.3), momentum=0.9, "
                 "dampening=0.1, clip_norm=0.25)"},
    {"groups_sgd", "SGD(net, lr=0.03, momentum=0.9, nesterov=true, weight_decay=0.01, "
                   "clip_norm=0.5) {\n"
                   "  group(\"**.bias\", lr=0.01, momentum=0.0, nesterov=false)\n"
                   "  group(\"fc2.*\", weight_decay=0.0, nesterov=false)\n}"},
    {"groups_adamw", "AdamW(net, lr=2e-3, weight_decay=0.1) {\n"
                     "  group([\"*.bias\"], lr=step_schedule(2e-3, every=5, gamma=0.5), "
                     "weight_decay=0.0, eps=1e-6, betas=[0.8, 0.99])\n}"},
    {"cnn_onecycle", "SGD(net, lr=onecycle_schedule(0.2, steps=20), momentum=0.9, nesterov=true, "
                     "weight_decay=5e-4)"},
    {"cnn_adamw", "AdamW(net, lr=2e-3, weight_decay=0.01, clip_norm=1.0)"},
    {"amsgrad", "Adam(net, lr=2e-3, betas=[0.9, 0.9], amsgrad=true)"},
    {"rmsprop", "RMSprop(net, lr=1e-3, alpha=0.9, eps=1e-4, momentum=0.5, centered=true)"},
    {"adagrad", "Adagrad(net, lr=1e-2, lr_decay=0.1, weight_decay=0.01, "
                "initial_accumulator_value=0.01)"},
    {"adadelta", "Adadelta(net, lr=0.5, rho=0.8, eps=1e-4, weight_decay=0.01)"},
    {"adamax", "Adamax(net, lr=2e-3, betas=[0.8, 0.9], weight_decay=0.01)"},
    {"nadam", "NAdam(net, lr=2e-3, betas=[0.8, 0.99], weight_decay=0.01, momentum_decay=0.1)"},
    {"nadam_cyclic", "NAdam(net, lr=cyclic_schedule(5e-4, 3e-3, up=3, down=5, "
                     "mode=\"triangular2\"), weight_decay=0.1, decoupled_weight_decay=true)"},
    {"radam", "RAdam(net, lr=2e-3, weight_decay=0.01)"},
    {"radam_cyclic", "RAdam(net, lr=cyclic_schedule(5e-4, 3e-3, up=4, mode=\"exp_range\", "
                     "gamma=0.95), betas=[0.8, 0.9], weight_decay=0.1, "
                     "decoupled_weight_decay=true)"},
    {"cnn_lion", "Lion(net, lr=2e-3, weight_decay=0.1)"},
    {"sgd_restarts", "SGD(net, lr=cosine_restarts_schedule(0.05, 3, growth=2, floor=1e-3), "
                     "momentum=0.9)"},
    {"clip_value", "SGD(net, lr=0.5, momentum=0.9, clip_norm=0.5, clip_value=1e-3, "
                   "clamp=[-0.1, 0.1])"},
    {"accumulate", "AdamW(net, lr=2e-3, weight_decay=0.01, clip_norm=0.5, accumulate=4)"},
    {"cnn_accumulate", "SGD(net, lr=0.1, momentum=0.9, accumulate=2)"},
    {"ema", "SGD(net, lr=0.05, momentum=0.9, ema=0.8)"},
    {"lamb", "LAMB(net, lr=linear_schedule(2e-2, 0.0, steps=20, warmup=4), weight_decay=0.01, "
             "clip_norm=1.0)"},
    {"groups_lamb", "LAMB(net, lr=1e-2, betas=[0.8, 0.99], weight_decay=0.1, "
                    "bias_correction=false) {\n"
                    "  group(\"*.bias\", lr=2e-3, weight_decay=0.0, always_adapt=false)\n}"},
    {"cnn_lamb", "LAMB(net, lr=1e-2)"},
    {"muon", "Muon(net, lr=0.02) { only(rank=2) }\n"
             "optimizer rest = AdamW(net, lr=2e-3) { without(opt) }"},
    {"muon_bodies", "Muon(net, lr=2e-3, weight_decay=0.01, match_rms_adamw=true, accumulate=2) {\n"
                    "  only(\"**\", rank=2)\n}\n"
                    "optimizer rest = AdamW(net, lr=2e-3, accumulate=2) { without(opt) }"},
    {"lstm_muon",
     "Muon(net, lr=0.01, momentum=0.9, nesterov=false) { only(\"{rnn,fc}.*\", rank=2) }\n"
     "optimizer rest = AdamW(net, lr=1e-2) { without(opt) }"},
    {"lstm_sgd", "SGD(net, lr=0.5, momentum=0.9, clip_norm=0.5)"},
    {"lstm_adamw", "AdamW(net, lr=1e-2, weight_decay=0.01, clip_norm=1.0)"},
    {"proj_adam", "Adam(net, lr=1e-2, clip_norm=1.0)"},
};

static const ampc_param *parameter(const Job *job, const char *path)
{
  for (uint32_t i = 0; i < job->program->n_params; i++)
    if (!strcmp(job->program->params[i].path, path)) return &job->program->params[i];
  test_fail("no parameter %s", path);
}

/* Sets the weights. Those of batch norms are near 1; running statistics start at 0 and 1. */
static void set_weights(Job *job, const Net *net)
{
  for (uint32_t k = 0; net->order[k]; k++) {
    const ampc_param *p = parameter(job, net->order[k]);
    bool bn_weight = !strncmp(p->path, "bn", 2) && strstr(p->path, "weight");
    double mean = bn_weight || strstr(p->path, "running_var") ? 1 : 0;
    double *w = test_alloc((size_t)p->elements * sizeof *w);
    for (int64_t i = 0; i < p->elements; i++)
      w[i] = mean + (p->buffer ? 0 : (2 * mix(k + 1, (uint64_t)i) - 1) / 8);
    job_write_param(job, p, w);
    free(w);
  }
  test_must(ampc_refresh_copies(job->rt), "copies");
}

static void set_batch(Job *job, const Net *net, uint32_t block, uint64_t draw, int64_t step)
{
  const ampc_source *s = &job->program->sources[job->program->blocks[block].first_source];
  int64_t n = net->batch * net->inputs;
  uint64_t seed = 2000 * draw + (uint64_t)(step % net->batches);
  double *x = test_alloc(sizeof *x * (size_t)n), *y = test_alloc(sizeof *y * (size_t)net->batch);
  for (int64_t i = 0; i < n; i++) x[i] = mix(1000 + seed, (uint64_t)i);
  for (int64_t i = 0; i < net->batch; i++) y[i] = floor(mix(2000 + seed, (uint64_t)i) * CLASSES);
  job_write_floats(job, (ampc_ref){AMPC_INPUT, s[0].offset}, x, n);
  job_write_integers(job, (ampc_ref){AMPC_INPUT, s[1].offset}, y, net->batch);
  free(x);
  free(y);
}

static double last_loss(Job *job, uint32_t block)
{
  const ampc_block *b = &job->program->blocks[block];
  for (uint32_t i = b->first_metric; i < b->first_metric + b->n_metrics; i++) {
    ampc_metric m;
    if (!job->program->metrics[i].is_loss) continue;
    test_must(ampc_get_metric(job->rt, i, &m), "loss");
    return (double)m.last;
  }
  test_fail("no loss");
}

static double weight_distance(Job *job, const Net *net, const Tensor *truth)
{
  double worst = 0;
  int64_t at = 0, sampled = 0;
  for (uint32_t k = 0; net->order[k]; k++) {
    const ampc_param *p = parameter(job, net->order[k]);
    double *w = test_alloc((size_t)p->elements * sizeof *w);
    ampc_space space = job->program->space_bytes[AMPC_EMA] ? AMPC_EMA : AMPC_MASTER;
    job_read_param(job, p, p->buffer ? AMPC_BUFFER : space, w);
    for (int64_t i = 0; i < p->elements; i++, at++) {
      if (at % net->sample) continue;
      double d = fabs(w[i] - truth->at[sampled++]);
      worst = number_worse(worst, d);
    }
    free(w);
  }
  if (sampled != truth->n) test_fail("the fixture has %lld weights", (long long)truth->n);
  return worst;
}

static bool run(const Fixture *f, const Run *r)
{
  const Net *net = net_of(r->name);
  char text[2048];
  snprintf(
      text, sizeof text,
      "%sdata d(split: str) { return synthetic(640, [%d]), "
      "synthetic(640, [], dtype=i64, low=0, high=%d) }\n"
      "model net = Net()\noptimizer opt = %s\nprecision f32\n"
      "train x, y in d(\"train\") with batch=%d { minimize cross_entropy(net(x), y) with opt%s }\n",
      net->text, (int)net->inputs, CLASSES, r->optimizer, (int)net->batch,
      strstr(r->optimizer, "optimizer rest") ? ", rest" : "");
  Job job = job_open(r->name, text);
  uint32_t block = job_block(&job, AMPC_TRAIN);
  set_weights(&job, net);
  uint64_t draw = (uint64_t)fixture_get(f, "%s/draw", r->name)->at[0];
  const Tensor *losses = fixture_get(f, "%s/losses", r->name);
  double worst = 0;
  for (int step = 0; step < STEPS; step++) {
    int64_t bodies = job.program->blocks[block].accumulate;
    for (int64_t i = 0; i < bodies; i++) {
      set_batch(&job, net, block, draw, step * bodies + i);
      test_must(ampc_set_group(job.rt, i == 0, i == bodies - 1), "group");
      job_run(&job, block);
    }
    double d = fabs(last_loss(&job, block) - losses->at[step]) / losses->at[step];
    worst = number_worse(worst, d);
  }
  double weights = weight_distance(&job, net, fixture_get(f, "%s/weights", r->name));
  bool good = worst <= loss_bound && weights <= weight_bound;
  printf("%-14s losses within %.1e (bound %.0e), weights %.1e (bound %.0e): %s\n", r->name, worst,
         loss_bound, weights, weight_bound, good ? "ok" : "FAILED");
  job_close(&job);
  return good;
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_trajectory trajectory.safetensors");
  Fixture *f = fixture_open(argv[1]);
  int bad = 0;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) bad += !run(f, &runs[i]);
  fixture_close(f);
  return bad != 0;
}
