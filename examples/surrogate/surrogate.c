/* Trains a net inside a program, on samples that the program computes, and then calls the net.
 *   surrogate [CHECKPOINT]
 * ampc makes surrogate_net.c and surrogate_net.h from surrogate.amp. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "surrogate_net.h"

enum { SAMPLES = SURROGATE_STEP_SAMPLES, STEPS = 2000, EVALUATIONS = 20 };
typedef struct Batch {
  float x[SAMPLES][3], y[SAMPLES][1];
} Batch;

/* What the net learns: a function that would cost much more in a real program. */
static float costly(const float x[3])
{
  return sinf(3 * x[0]) * cosf(2 * x[1]) + x[2] * x[2];
}

static void draw(Batch *b)
{
  for (int i = 0; i < SAMPLES; i++) {
    for (int k = 0; k < 3; k++) b->x[i][k] = 2 * (float)rand() / (float)RAND_MAX - 1;
    b->y[i][0] = costly(b->x[i]);
  }
}

static int train(struct ampc_runtime *net)
{
  static Batch b;
  struct surrogate_metrics m;
  for (int step = 1; step <= STEPS; step++) {
    draw(&b);
    int status = surrogate_step(net, SAMPLES, *b.x, *b.y);
    if (!status && step % 500 == 0) status = surrogate_get_metrics(net, &m);
    if (status) return status;
    if (step % 500 == 0) printf("step %d: loss %.5f\n", step, m.loss);
  }
  return 0;
}

static int evaluate(struct ampc_runtime *net)
{
  static Batch b;
  struct surrogate_eval_metrics m;
  int status = 0;
  for (int i = 0; i < EVALUATIONS && !status; i++) {
    draw(&b);
    status = surrogate_eval(net, SAMPLES, *b.x, *b.y);
  }
  if (!status) status = surrogate_get_eval_metrics(net, &m);
  if (!status) printf("mean squared error %.5f\n", m.error);
  return status;
}

int main(int argc, char **argv)
{
  struct ampc_runtime *net = NULL;
  int status = surrogate_create("cpu", 1, NULL, &net);
  if (!status) status = train(net);
  if (!status) status = evaluate(net);
  if (!status && argc > 1) status = surrogate_save(net, argv[1]);
  if (status) fprintf(stderr, "%s: %s\n", argv[0], surrogate_error());
  surrogate_close(net);
  return status;
}
