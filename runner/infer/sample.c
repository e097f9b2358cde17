/* Softmax with temperature and top-k on the host, in double, so that the draw does not depend on
 * the device. It runs once per token. */
#include "sample.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int falling(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Returns the index of the largest logit, the first of equal ones. -1: a logit is NaN, or the
 * largest is infinite. */
static int64_t likeliest(const double *x, int64_t n)
{
  int64_t best = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(x[i])) return -1;
    if (x[i] > x[best]) best = i;
  }
  return isinf(x[best]) ? -1 : best;
}

int sample_weights(double *x, int64_t n, const Sampling *s, double *order)
{
  int64_t best = likeliest(x, n);
  if (best < 0) return -1;
  if (s->temperature == 0) {
    memset(x, 0, (size_t)n * sizeof *x);
    x[best] = 1;
    return 0;
  }
  double most = x[best], least = -INFINITY, sum = 0;
  if (s->top_k && s->top_k < n) {
    memcpy(order, x, (size_t)n * sizeof *x);
    qsort(order, (size_t)n, sizeof *order, falling);
    least = order[s->top_k - 1];
  }
  for (int64_t i = 0; i < n; i++) {
    x[i] = x[i] < least ? 0 : exp((x[i] - most) / s->temperature);
    sum += x[i];
  }
  for (int64_t i = 0; i < n; i++) x[i] /= sum;
  return 0;
}

/* Rounding may leave the sum of all probabilities below u. Then the last token with a probability
 * above 0 is drawn. */
int64_t sample_pick(const double *probability, int64_t n, double u)
{
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < n; i++) {
    if (probability[i] <= 0) continue;
    last = i;
    sum += probability[i];
    if (sum > u) return i;
  }
  return last;
}

int64_t sample_token(const Sampling *s, double *x, int64_t n, const int64_t *text, int64_t length,
                     double u, double *scratch)
{
  (void)text, (void)length;
  return sample_weights(x, n, s, scratch) ? -1 : sample_pick(x, n, u);
}
