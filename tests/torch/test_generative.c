/* Twenty steps of the generative models, compared with PyTorch's. They test two optimizers in one
 * step, the second of which reads weights that the first has just updated; running statistics of a
 * net that a step calls three times; a reparameterized loss; transposed convolutions.
 *
 *   test_generative generative.safetensors FOLDER      FOLDER: models/
 *
 * Bound: 1e-7. Losses are read as f32 (6e-8); both sides compute in double (options.real64). A
 * statistic that is updated once too often, or a loss that reads the old discriminator, causes
 * errors of 1e-3 or more. */
#include "ampc_metrics.h"
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, BATCH = 4 };
static const double bound = 1e-7;

#define ADAM(name, net)                                                                            \
  "optimizer " name " = Adam(" net ", lr=0.00390625, betas=[0.5, 0.875], eps=0.0009765625)\n"
#define TRAIN "train x, noise in d() with batch=4 {\n"

typedef struct Run { /* as in make_generative.py */
  const char *name, *noise, *text;
} Run;
static const Run runs[] = {
    {"dcgan", "8, 1, 1",
     "import \"dcgan/dcgan.amp\"\nmodel gen = Generator(8, 4)\n"
     "model disc = Discriminator(4)\n" ADAM("opt_d", "disc") ADAM("opt_g", "gen") TRAIN
     "  fake = gen(noise)\n"
     "  says = disc(fake.detach())\n"
     "  minimize bce(disc(x), 0.875) + bce(says, 0.0) with opt_d\n"
     "  minimize bce(disc(fake), 1.0) with opt_g\n}\n"},
    {"vae", "4",
     "import \"vae/vae.amp\"\nmodel net = VAE(4, 16)\n" ADAM("opt", "net") TRAIN
     "  x = (x.squeeze(1) + 1.0) / 2.0\n"
     "  mu, logvar = net.enc(x).chunk(2, dim=1)\n"
     "  logit = net.dec(mu + exp(0.5 * logvar) * noise)\n"
     "  minimize reconstruction(logit, x) + 0.5 * divergence(mu, logvar) with opt\n}\n"},
    {"autoencoder", "1",
     "import \"autoencoder/autoencoder.amp\"\nmodel net = Autoencoder(4, 8)\n" ADAM("opt", "net")
         TRAIN "  x = (x + 1.0) / 2.0\n"
               "  minimize mse_loss(net(x), x) + 0.0 * mean(noise) with opt\n}\n"},
};

/* ---- numbers, as in make_models.py ---- */

static double signed_mix(uint64_t seed, int64_t i)
{
  return 2 * mix(seed, (uint64_t)i) - 1;
}

static bool ends(const char *text, const char *end)
{
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* Returns an initial value. A running variance starts at 1, a running mean at 0. */
static double start(const ampc_param *p, int64_t i)
{
  double u = signed_mix(seed_of(p->path), i);
  if (p->buffer) return ends(p->path, "running_var");
  if (p->rank > 1) return (float)(u * sqrt(6.0 / (double)(p->elements / p->dim[0])));
  return (float)(u / 8 + ends(p->path, "weight"));
}

static void set_weights(Job *job)
{
  for (uint32_t k = 0; k < job->program->n_params; k++) {
    const ampc_param *p = &job->program->params[k];
    if (p->dtype == AMPC_I64) continue; /* the batch counter of a norm */
    double *w = test_alloc((size_t)p->elements * sizeof *w);
    for (int64_t i = 0; i < p->elements; i++) w[i] = start(p, i);
    job_write_param(job, p, w);
    free(w);
  }
}

static void set_batch(Job *job, uint32_t block, int step)
{
  const ampc_source *s = &job->program->sources[job->program->blocks[block].first_source];
  for (int k = 0; k < 2; k++) {
    int64_t n = BATCH;
    for (uint32_t i = 0; i < s[k].rank; i++) n *= s[k].dim[i];
    double *at = test_alloc((size_t)n * sizeof *at);
    for (int64_t i = 0; i < n; i++)
      at[i] = (1 + k) * signed_mix(1000 * (1 + (uint64_t)k) + (uint64_t)step, i);
    job_write_floats(job, (ampc_ref){AMPC_INPUT, s[k].offset}, at, n);
    free(at);
  }
}

/* ---- comparing ---- */

static double loss_error(const Job *job, const Tensor *losses, int step)
{
  double worst = 0;
  int64_t n = 0;
  for (uint32_t i = 0; i < job->program->n_metrics; i++) {
    ampc_metric m;
    if (!job->program->metrics[i].is_loss) continue;
    if (n == losses->dim[1]) test_fail("more than %lld losses", (long long)n);
    double truth = losses->at[step * losses->dim[1] + n++];
    test_must(ampc_get_metric(job->rt, i, &m), "loss");
    worst = number_worse(worst, fabs((double)m.last - truth) / fabs(truth));
  }
  if (n != losses->dim[1]) test_fail("%lld losses are missing", (long long)(losses->dim[1] - n));
  return worst;
}

static const ampc_param *parameter(const Job *job, const char *name, size_t n)
{
  for (uint32_t i = 0; i < job->program->n_params; i++) {
    const ampc_param *p = &job->program->params[i];
    if (strlen(p->path) == n && strncmp(p->path, name, n) == 0) return p;
  }
  test_fail("no parameter %.*s", (int)n, name);
}

/* Returns the error of the changes of the steps, relative to their norm. */
static double change_error(Job *job, const char *names, const Tensor *truth)
{
  double worst = 0;
  for (int64_t k = 0; k < truth->dim[0]; k++) {
    size_t n = strcspn(names, " ");
    const ampc_param *p = parameter(job, names, n);
    double *v = test_alloc((size_t)p->elements * sizeof *v), sum = 0;
    job_read_param(job, p, p->buffer ? AMPC_BUFFER : AMPC_MASTER, v);
    for (int64_t i = 0; i < p->elements; i++)
      sum += (v[i] - start(p, i)) * signed_mix(seed_of(p->path) + 1, i);
    double off = fabs(sum - truth->at[2 * k]) / truth->at[2 * k + 1];
    if (!(off <= bound)) printf("  %s: its change is off by %.1e of its norm\n", p->path, off);
    worst = number_worse(worst, off);
    names += n + (names[n] == ' ');
    free(v);
  }
  if (*names) test_fail("the fixture has more parameters: %s", names);
  return worst;
}

static bool check(const Fixture *f, const Run *r, const char *folder)
{
  char text[2048];
  snprintf(text, sizeof text,
           "data d() { return synthetic(640, [1, 28, 28]), synthetic(640, [%s]) }\nprecision f32\n"
           "%s",
           r->noise, r->text);
  Options options = {.input = r->name,
                     .target = "cpu",
                     .optimize = 2,
                     .error_limit = 20,
                     .real64 = true,
                     .include_dirs = &folder,
                     .n_include_dirs = 1};
  Job job = job_open_with(&options, text);
  uint32_t block = job_block(&job, AMPC_TRAIN);
  double loss = 0;
  set_weights(&job);
  for (int step = 0; step < STEPS; step++) {
    set_batch(&job, block, step);
    job_run(&job, block);
    loss = number_worse(loss, loss_error(&job, fixture_get(f, "%s/losses", r->name), step));
  }
  double change =
      change_error(&job, fixture_metadata(f, r->name), fixture_get(f, "%s/change", r->name));
  bool good = loss <= bound && change <= bound;
  printf("%-11s losses of %d steps within %.1e, changes %.1e (bound %.0e): %s\n", r->name, STEPS,
         loss, change, bound, good ? "ok" : "FAILED");
  job_close(&job);
  return good;
}

int main(int argc, char **argv)
{
  if (argc != 3) test_fail("usage: test_generative generative.safetensors FOLDER");
  Fixture *f = fixture_open(argv[1]);
  int bad = 0;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) bad += !check(f, &runs[i], argv[2]);
  fixture_close(f);
  return bad != 0;
}
