/* The nets of models/ at small sizes, compared with PyTorch's and torchvision's: loss and all
 * gradients of the first step, losses and weights of the later steps.
 *
 *   test_models models.safetensors FOLDER STEPS      FOLDER: models/; STEPS: 1 to 20
 *
 * Both sides compute in f64 (options.real64), because deep nets with batch norm amplify rounding
 * errors without bound. In f64, a wrong padding, epsilon or path causes errors of 1e-3. For each
 * gradient, the test compares its inner product with fixed numbers in [-1, 1), relative to its
 * norm. */
#include "ampc_metrics.h"
#include "fixture.h"
#include "mix.h"
#include "runner/selftest/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 10, STEPS = 20 };
/* Bounds. Losses are read as f32. Gradients of the first step differ by at most 1e-10. Twenty steps
 * of batch norm over four numbers amplify the last bit of a double to 3e-5. */
static const double loss_bound = 1e-7, first_bound = 1e-8, late_bound = 3e-4;

typedef struct Net { /* as in NETS of make_models.py */
  const char *name, *file, *text;
  double rate;
  int64_t image[4], labels; /* shape of a batch; for words [n, length], then 0 */
} Net;

static const Net nets[] = {
    {"resnet18", "resnet18/resnet18.amp", "ResNet18(64, 10)", 0x1p-13, {4, 3, 32, 32}, 4},
    {"resnet50", "resnet50/resnet50.amp", "ResNet50(64, 10)", 0x1p-26, {4, 3, 32, 32}, 4},
    {"efficientnet",
     "efficientnet_b0/efficientnet_b0.amp",
     "EfficientNet(0.5, 0.5, 0.0, [1e-3, 0.01], 10, drop=0.0)",
     0x1p-13,
     {4, 3, 32, 32},
     4},
    {"unet", "unet/unet.amp", "UNet(1, 8, 3, 10)", 0x1p-13, {2, 1, 32, 32}, 2 * 32 * 32},
    {"vit", "vit_b_16/vit_b_16.amp", "ViT(32, 8, 48, 2, 4, 96, 10)", 0x1p-13, {4, 3, 32, 32}, 4},
    {"gpt2", "gpt2/gpt2.amp", "GPT2(2, 3, 24, 9, 10, 0.0)", 0x1p-7, {5, 9}, 5 * 9},
};

static bool reads_words(const Net *net)
{
  return !net->image[2];
}

/* ---- numbers, as in make_models.py ---- */

static double start(const ampc_param *p, int64_t i)
{
  double u = 2 * mix(seed_of(p->path), (uint64_t)i) - 1;
  size_t n = strlen(p->path);
  if (p->rank > 1) return u * sqrt(6.0 / (double)(p->elements / p->dim[0]));
  return u / 8 + (n >= 6 && strcmp(p->path + n - 6, "weight") == 0 ? 1 : 0);
}

static void set_weights(Job *job)
{
  for (uint32_t k = 0; k < job->program->n_params; k++) {
    const ampc_param *p = &job->program->params[k];
    if (p->buffer) continue;
    double *w = test_alloc((size_t)p->elements * sizeof *w);
    for (int64_t i = 0; i < p->elements; i++) w[i] = (double)(float)start(p, i);
    job_write_param(job, p, w);
    free(w);
  }
}

static void set_batch(Job *job, const Net *net, uint32_t block, int step)
{
  const ampc_source *s = &job->program->sources[job->program->blocks[block].first_source];
  bool words = reads_words(net);
  int64_t n = net->image[0] * net->image[1] * (words ? 1 : net->image[2] * net->image[3]);
  double *x = test_alloc(sizeof *x * (size_t)n), *y = test_alloc(sizeof *y * (size_t)net->labels);
  for (int64_t i = 0; i < n; i++) {
    double u = mix(1000 + (uint64_t)step, (uint64_t)i);
    x[i] = words ? floor(CLASSES * u) : 4 * u - 2;
  }
  for (int64_t i = 0; i < net->labels; i++)
    y[i] = floor(CLASSES * mix(2000 + (uint64_t)step, (uint64_t)i));
  (words ? job_write_integers : job_write_floats)(job, (ampc_ref){AMPC_INPUT, s[0].offset}, x, n);
  job_write_integers(job, (ampc_ref){AMPC_INPUT, s[1].offset}, y, net->labels);
  free(x);
  free(y);
}

/* ---- comparing ---- */

typedef struct Projections { /* rows [inner product, norm] of the fixture, one for each parameter */
  const char *names;         /* parameters, separated by spaces */
  const Tensor *truth;
  bool change; /* true: change of the weights since the start; false: momentum */
} Projections;

static double projection(Job *job, const ampc_param *p, bool change)
{
  double *v = test_alloc((size_t)p->elements * sizeof *v), sum = 0;
  job_read_param(job, p, change ? AMPC_MASTER : AMPC_MOMENT1, v);
  for (int64_t i = 0; i < p->elements; i++)
    sum += (v[i] - (change ? (double)(float)start(p, i) : 0)) *
           (2 * mix(seed_of(p->path) + 1, (uint64_t)i) - 1);
  free(v);
  return sum;
}

static const ampc_param *next_parameter(const Job *job, const char **names)
{
  size_t n = strcspn(*names, " ");
  for (uint32_t i = 0; i < job->program->n_params; i++) {
    const ampc_param *p = &job->program->params[i];
    if (strlen(p->path) != n || strncmp(p->path, *names, n) != 0) continue;
    *names += n + ((*names)[n] == ' ');
    return p;
  }
  test_fail("no parameter %.*s", (int)n, *names);
}

/* Returns the worst error. A gradient may be 0 except for rounding, such as that of a bias before a
 * batch norm. So a norm counts as at least a millionth of the largest norm. */
static double worst_projection(Job *job, Projections x)
{
  double most = 0, worst = 0;
  const char *names = x.names;
  for (int64_t k = 0; k < x.truth->dim[0]; k++) most = fmax(most, x.truth->at[2 * k + 1]);
  for (int64_t k = 0; k < x.truth->dim[0]; k++) {
    const ampc_param *p = next_parameter(job, &names);
    double norm = fmax(x.truth->at[2 * k + 1], 1e-6 * most);
    double off = fabs(projection(job, p, x.change) - x.truth->at[2 * k]) / norm;
    if (!(off <= (x.change ? late_bound : first_bound)))
      printf("  %s: %s is off by %.1e of its norm\n", p->path, x.change ? "change" : "gradient",
             off);
    worst = number_worse(worst, off);
  }
  if (*names) test_fail("the fixture has more parameters: %s", names);
  return worst;
}

static double last_loss(Job *job)
{
  for (uint32_t i = 0; i < job->program->n_metrics; i++) {
    ampc_metric m;
    if (!job->program->metrics[i].is_loss) continue;
    test_must(ampc_get_metric(job->rt, i, &m), "loss");
    return (double)m.last;
  }
  test_fail("no loss");
}

/* ---- a net ---- */

/* Writes the data block: images with a class for each image or pixel, or words with the next. */
static void data_text(const Net *net, char *text, size_t size)
{
  const int64_t *d = net->image;
  const char *pixels = net->labels > d[0] ? "32, 32" : "";
  if (reads_words(net))
    snprintf(text, size,
             "synthetic(640, [%d], dtype=i64, low=0, high=%d), "
             "synthetic(640, [%d], dtype=i64, low=0, high=%d)",
             (int)d[1], CLASSES, (int)d[1], CLASSES);
  else
    snprintf(text, size,
             "synthetic(640, [%d, %d, %d]), synthetic(640, [%s], dtype=i64, low=0, high=%d)",
             (int)d[1], (int)d[2], (int)d[3], pixels, CLASSES - 1);
}

static Job open_net(const Net *net, const char *folder)
{
  char text[2048], data[256];
  const char *loss = reads_words(net) ? "net(x).flatten(0, 1), y.flatten()" : "net(x), y";
  data_text(net, data, sizeof data);
  snprintf(text, sizeof text,
           "import \"%s\"\n"
           "data d(split: str) { return %s }\n"
           "model net = %s\n"
           "optimizer opt = SGD(net, lr=%.17g, momentum=0.875)\nprecision f32\n"
           "train x, y in d(\"train\") with batch=%d { minimize cross_entropy(%s) with opt }\n",
           net->file, data, net->text, net->rate, (int)net->image[0], loss);
  Options options = {.input = net->name,
                     .target = "cpu",
                     .optimize = 2,
                     .error_limit = 20,
                     .real64 = true,
                     .include_dirs = &folder,
                     .n_include_dirs = 1};
  return job_open_with(&options, text);
}

static bool check(const Fixture *f, const Net *net, const char *folder, int steps)
{
  Job job = open_net(net, folder);
  uint32_t block = job_block(&job, AMPC_TRAIN);
  const Tensor *losses = fixture_get(f, "%s/losses", net->name);
  const char *names = fixture_metadata(f, net->name);
  double loss = 0, early = 0, first = 0, change = 0;
  set_weights(&job);
  for (int step = 0; step < steps; step++) {
    set_batch(&job, net, block, step);
    job_run(&job, block);
    double off = fabs(last_loss(&job) - losses->at[step]) / losses->at[step];
    loss = number_worse(loss, off);
    if (step == 1) early = loss;
    Projections x = {names, fixture_get(f, "%s/first", net->name), false};
    if (!step) first = worst_projection(&job, x);
  }
  Projections x = {names, fixture_get(f, "%s/change", net->name), true};
  if (steps == STEPS) change = worst_projection(&job, x);
  bool good =
      early <= loss_bound && loss <= late_bound && first <= first_bound && change <= late_bound;
  printf("%-13s losses of %d steps within %.1e, first gradients %.1e, changes %.1e: %s\n",
         net->name, steps, loss, first, change, good ? "ok" : "FAILED");
  job_close(&job);
  return good;
}

int main(int argc, char **argv)
{
  int steps = argc == 4 ? atoi(argv[3]) : 0, bad = 0;
  if (steps < 1 || steps > STEPS) test_fail("usage: test_models models.safetensors FOLDER STEPS");
  Fixture *f = fixture_open(argv[1]);
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
    bad += !check(f, &nets[i], argv[2], steps);
  fixture_close(f);
  return bad != 0;
}
