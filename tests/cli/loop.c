/* The loop of loop.sh, over the functions that `ampc --library` makes of loop.amp.
 *   loop DATA run FIRST LAST SEED OUT [IN]   trains on batches FIRST to LAST - 1, from checkpoint
 * IN loop DATA threads N OUT                  N nets at once, with seeds 1 to N: OUT.1, OUT.2, ..
 *   loop DATA wrong                          calls that must be refused, and their messages */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "loop.h"

#ifndef BODIES
#  define BODIES 1 /* batches of a step */
#endif
enum { SAMPLES = 100, WIDTH = 8, BATCH = LOOP_STEP_SAMPLES, BATCHES = SAMPLES / BATCH, MOST = 8 };
static float x[SAMPLES][WIDTH];
static int64_t y[SAMPLES];

static void read_data(const char *folder, const char *name, void *to, size_t bytes)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/train_%s.bin", folder, name);
  FILE *f = fopen(path, "rb");
  if (!f || fread(to, 1, bytes, f) != bytes) exit(3);
  fclose(f);
}

/* The samples of a batch change when the call has returned: it must not need them any longer. */
static int step(struct ampc_runtime *rt, int batch)
{
  float own_x[BATCH][WIDTH];
  int64_t own_y[BATCH];
  memcpy(own_x, x[batch % BATCHES * BATCH], sizeof own_x);
  memcpy(own_y, &y[batch % BATCHES * BATCH], sizeof own_y);
  int status = loop_step(rt, BATCH, *own_x, own_y);
  for (int i = 0; i < BATCH; i++) own_y[i] = 1000;
  memset(own_x, 255, sizeof own_x);
  return status;
}

static int evaluate(struct ampc_runtime *rt, double *out)
{
  struct loop_eval_metrics m;
  int status = 0;
  for (int at = 0; at < SAMPLES && !status; at += BATCH)
    status = loop_eval(rt, at + BATCH < SAMPLES ? BATCH : SAMPLES - at, x[at], &y[at]);
  if (!status) status = loop_get_eval_metrics(rt, &m);
  *out = m.acc;
  return status;
}

typedef struct Run {
  int first, last;
  uint64_t seed;
  const char *in;
  char out[4096];
  struct loop_metrics metrics;
  struct loop_state state;
  double acc;
  int status;
  char why[4096];
} Run;

/* Trains, and calls the infer block now and then: that must not change the training. */
static void *train(void *context)
{
  Run *r = context;
  struct ampc_runtime *rt = NULL;
  float logits[4][3];
  r->status = loop_create("auto", r->seed, NULL, &rt);
  if (!r->status && r->in) r->status = loop_load(rt, r->in);
  for (int i = r->first; i < r->last && !r->status; i++) {
    r->status = step(rt, i);
    if (!r->status && i % 3 == 0) r->status = loop_logits(rt, *x, *logits);
  }
  if (!r->status) r->status = loop_get_metrics(rt, &r->metrics);
  if (!r->status) r->status = evaluate(rt, &r->acc);
  if (!r->status) r->status = loop_get_state(rt, &r->state);
  if (!r->status) r->status = loop_save(rt, r->out);
  if (!r->status) {
    char weights[sizeof r->out + sizeof ".weights"];
    snprintf(weights, sizeof weights, "%s.weights", r->out);
    r->status = loop_save_weights(rt, weights);
  }
  if (r->status) snprintf(r->why, sizeof r->why, "%s", loop_error());
  loop_close(rt);
  return NULL;
}

static int tell(const Run *r)
{
  if (r->status) fprintf(stderr, "error: %s\n", r->why);
  if (!r->status)
    printf("steps %lld skipped %lld scale %g loss %.6f acc %.4f eval %.4f precision %s\n",
           (long long)r->state.steps, (long long)r->state.skipped, r->state.scale, r->metrics.loss,
           r->metrics.acc, r->acc, loop_precision());
  return r->status;
}

static int threads(int n, const char *out)
{
  static Run runs[MOST];
  pthread_t thread[MOST];
  for (int i = 0; i < n; i++) {
    runs[i] = (Run){.last = 3 * BATCHES, .seed = (uint64_t)i + 1};
    snprintf(runs[i].out, sizeof runs[i].out, "%s.%d", out, i + 1);
    if (pthread_create(&thread[i], NULL, train, &runs[i])) return 70;
  }
  int status = 0;
  for (int i = 0; i < n; i++) {
    pthread_join(thread[i], NULL);
    if (tell(&runs[i])) status = runs[i].status;
  }
  return status;
}

static void refused(const char *what, int status)
{
  printf("%s: %d: %s\n", what, status, status ? loop_error() : "");
}

static int wrong(void)
{
  struct ampc_runtime *rt = NULL;
  struct loop_metrics m;
  int64_t bad[BATCH] = {0, 1, 2, 3};
  refused("no out", loop_create("cpu", 1, NULL, NULL));
  refused("no device", loop_create("tpu", 1, NULL, &rt));
  if (loop_create("cpu", 1, NULL, &rt)) return 5;
  refused("no runtime", loop_step(NULL, BATCH, *x, y));
  refused("no x", loop_step(rt, BATCH, NULL, y));
  refused("no y", loop_eval(rt, BATCH, *x, NULL));
  refused("one sample", loop_step(rt, 1, *x, y));
  refused("no samples", loop_eval(rt, 0, *x, y));
  refused("negative", loop_eval(rt, -4, *x, y));
  refused("label", loop_step(rt, BATCH, *x, bad));
  refused("no metrics", loop_get_metrics(rt, NULL));
  refused("no state", loop_get_state(rt, NULL));
  refused("setting", loop_set(rt, "opt.speed", 1));
  refused("no setting", loop_set(rt, NULL, 1));
  refused("no path", loop_save(rt, NULL));
  refused("no folder", loop_save(rt, "gone/x"));
  refused("no file", loop_load(rt, "gone"));
  if (loop_get_metrics(rt, &m)) return 5;
  printf("without a step: %s\n", isnan(m.loss) ? "nan" : "a number");
  refused("half a step", loop_step(rt, BATCH, *x, y) || BODIES == 1 ? 0 : loop_save(rt, "half"));
  x[3][2] = NAN;
  for (int i = 0; i < 2 * BODIES - 1; i++)
    if (loop_step(rt, BATCH, *x, y)) return 5;
  refused("not finite", loop_get_metrics(rt, &m));
  loop_close(rt);
  loop_close(NULL);
  return 0;
}

/* Trains on where a training was saved, and saves it there. */
static int again(const char *file)
{
  struct ampc_runtime *rt = NULL;
  int status = loop_open("cpu", file, NULL, &rt);
  for (int i = 0; i < BATCHES && !status; i++) status = step(rt, i);
  if (!status) status = loop_save_weights(rt, file);
  loop_close(rt);
  if (!status) status = loop_open("cpu", file, NULL, &rt);
  if (!status) status = loop_save(rt, file);
  if (status) fprintf(stderr, "error: %s\n", loop_error());
  loop_close(rt);
  return status;
}

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  read_data(argv[1], "x", x, sizeof x);
  read_data(argv[1], "y", y, sizeof y);
  if (strcmp(argv[2], "wrong") == 0) return wrong();
  if (argc == 4 && strcmp(argv[2], "again") == 0) return again(argv[3]);
  if (argc == 5 && strcmp(argv[2], "threads") == 0) return threads(atoi(argv[3]), argv[4]);
  if (argc < 7) return 2;
  Run r = {.first = atoi(argv[3]), .last = atoi(argv[4]), .seed = (uint64_t)atoi(argv[5])};
  snprintf(r.out, sizeof r.out, "%s", argv[6]);
  r.in = argc > 7 ? argv[7] : NULL;
  train(&r);
  return tell(&r);
}
