/* plateau_schedule compared with torch.optim.lr_scheduler.ReduceLROnPlateau: the learning rate
 * after each of 80 evaluations.
 *
 *   test_plateau plateau.safetensors
 *
 * Bound: 80 half ulps, because a rate is an f32 that is multiplied up to 80 times. A rate that is
 * lowered one evaluation too early or too late is off by at least a tenth. */
#include "fixture.h"
#include "runtime/train/judge.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *arguments; /* as in PLATEAUS of make_fixtures.py */
} runs[] = {
    {"defaults", "patience=3"},
    {"hasty", "factor=0.5, patience=0, min_lr=0.01"},
    {"max", "mode=\"max\", factor=0.3, patience=2, threshold=0.05, cooldown=3"},
    {"abs", "factor=0.5, patience=1, threshold=0.1, threshold_mode=\"abs\", cooldown=1"},
    {"max_abs", "mode=\"max\", factor=0.7, patience=1, threshold=0.02, threshold_mode=\"abs\", "
                "min_lr=0.05"},
    {"eps", "factor=0.9, patience=0, eps=0.02"},
};

static void count_line(void *to, bool warning, const char *line)
{
  (void)warning, (void)line;
  ++*(int *)to;
}

static int changes(const Tensor *rates)
{
  int n = rates->at[0] != 0.5;
  for (int64_t i = 1; i < rates->n; i++) n += rates->at[i] != rates->at[i - 1];
  return n;
}

/* Runs each evaluation twice: the second time it is one that a resumed run repeats. */
static bool run(const Fixture *f, size_t index)
{
  const char *name = runs[index].name;
  char text[1024];
  snprintf(text, sizeof text,
           "data d() { return synthetic(64, [4]), synthetic(64, [], dtype=i64, low=0, high=3) }\n"
           "model net = Linear(4, 3)\n"
           "optimizer opt = SGD(net, lr=plateau_schedule(0.5, \"eval2.loss\", %s))\n"
           "train x, y in d() with batch=8 { minimize cross_entropy(net(x), y) with opt }\n"
           "eval x, y in d() with batch=8 { metric loss = cross_entropy(net(x), y) }\n"
           "eval x, y in d() with batch=8 { metric acc = accuracy(net(x), y); metric loss = "
           "cross_entropy(net(x), y) }\n",
           runs[index].arguments);
  Job job = job_open(name, text);
  const Tensor *metric = fixture_get(f, "%s/metric", name),
               *rates = fixture_get(f, "%s/rates", name);
  double *values = test_alloc(sizeof *values * job.program->n_metrics), worst = 0;
  int lines = 0;
  for (int64_t i = 0; i < metric->n; i++) {
    float rate;
    for (uint32_t k = 0; k < job.program->n_metrics; k++) values[k] = -1e6 * (double)i;
    values[job.program->plateaus[0].metric] = metric->at[i];
    for (uint32_t b = 0; b < 2 * job.program->n_blocks; b++)
      test_must(plateau_note(job.rt, b % job.program->n_blocks, i + 1, values, count_line, &lines),
                "evaluation");
    test_must(runtime_read_setting(job.rt, job.program->plateaus[0].setting, &rate), "setting");
    worst = fmax(worst, fabs((double)rate - rates->at[i]) / (rates->at[i] * 0x1p-24));
  }
  bool good = worst <= 80 && lines == changes(rates);
  printf("%-10s %d changes of the rate, within %.1f half ulps (bound 80): %s\n", name, lines, worst,
         good ? "ok" : "FAILED");
  free(values);
  job_close(&job);
  return good;
}

int main(int argc, char **argv)
{
  if (argc != 2) test_fail("usage: test_plateau plateau.safetensors");
  Fixture *f = fixture_open(argv[1]);
  int bad = 0;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) bad += !run(f, i);
  fixture_close(f);
  return bad != 0;
}
