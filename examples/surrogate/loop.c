/* Trains a net inside a program, on samples that the program computes.
 *   loop_c [CHECKPOINT]
 * ampc makes surrogate.h, which describes the functions, and surrogate.c from surrogate.amp. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "surrogate.h"

enum { N = SURROGATE_STEP_SAMPLES, STEPS = 2000, EVALUATIONS = 20 };
static float x[N][3], y[N];

/* What the net learns: a function that would cost much more in a real program. */
static float costly(const float at[3])
{
  return sinf(3 * at[0]) * cosf(2 * at[1]) + at[2] * at[2];
}

static void draw(void)
{
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < 3; k++) x[i][k] = 2 * (float)rand() / (float)RAND_MAX - 1;
    y[i] = costly(x[i]);
  }
}

static int train(struct ampc_runtime *net)
{
  struct surrogate_metrics mean;
  for (int step = 1; step <= STEPS; step++) {
    draw();
    int status = surrogate_step(net, N, *x, y);
    if (!status && step % 500 == 0) status = surrogate_get_metrics(net, &mean);
    if (status) return status;
    if (step % 500 == 0) printf("step %d: loss %.5f\n", step, mean.loss);
  }
  return 0;
}

static int evaluate(struct ampc_runtime *net)
{
  struct surrogate_eval_metrics mean;
  int status = 0;
  for (int i = 0; i < EVALUATIONS && !status; i++) draw(), status = surrogate_eval(net, N, *x, y);
  if (!status) status = surrogate_get_eval_metrics(net, &mean);
  if (!status) printf("error %.5f\n", mean.error);
  return status;
}

int main(int argc, char **argv)
{
  struct ampc_runtime *net = NULL;
  int status = surrogate_create("auto", 1, NULL, &net);
  if (!status) status = train(net);
  if (!status) status = evaluate(net);
  if (!status && argc > 1) status = surrogate_save(net, argv[1]);
  if (status) fprintf(stderr, "%s: %s\n", argv[0], surrogate_error());
  surrogate_close(net);
  return status;
}
