/* Probabilities of the next token on the host, in double, so that the draw does not depend on the
 * device. It runs once per token. */
#include "sample.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int falling(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Returns the k-th largest of the n numbers, which it reorders (Hoare's quickselect). Sorting a
 * vocabulary of 100,000 tokens would take as long as a small model. */
static double kth_largest(double *a, int64_t n, int64_t k)
{
  int64_t low = 0, high = n - 1;
  while (low < high) {
    double pivot = a[low + (high - low) / 2];
    int64_t i = low, j = high;
    while (i <= j) {
      while (a[i] > pivot) i++;
      while (a[j] < pivot) j--;
      if (i > j) break;
      double larger = a[j];
      a[j--] = a[i];
      a[i++] = larger;
    }
    if (k - 1 > j && k - 1 < i) break;
    if (k - 1 <= j)
      high = j;
    else
      low = i;
  }
  return a[k - 1];
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

static void penalize(double *x, int64_t n, double penalty, const int64_t *text, int64_t length,
                     double *seen)
{
  memset(seen, 0, (size_t)n * sizeof *seen);
  for (int64_t i = 0; i < length; i++) {
    int64_t token = text[i];
    if (token < 0 || token >= n || seen[token] != 0) continue;
    seen[token] = 1;
    x[token] = x[token] > 0 ? x[token] / penalty : x[token] * penalty;
  }
}

static void normalize(double *x, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Keeps the most probable tokens whose sum is at least p. Tokens below (1 - p) / n have a sum below
 * 1 - p, so all of them are dropped and need no sorting; half of that bound allows for rounding. */
static void keep_nucleus(double *x, int64_t n, double p, double *order)
{
  int64_t m = 0, kept = 0, equal = 0;
  double bound = (1 - p) / (2 * (double)n), sum = 0;
  for (int64_t i = 0; i < n; i++)
    if (x[i] > 0 && x[i] >= bound) order[m++] = x[i];
  qsort(order, (size_t)m, sizeof *order, falling);
  do {
    sum += order[kept++];
  } while (sum < p && kept < m);
  double least = order[kept - 1];
  for (int64_t i = kept; i > 0 && order[i - 1] <= least; i--) equal++;
  for (int64_t i = 0; i < n; i++)
    if (x[i] < least || (x[i] <= least && equal-- <= 0)) x[i] = 0;
}

int sample_weights(const Sampling *s, double *x, int64_t n, const int64_t *text, int64_t length,
                   double *scratch)
{
  if (s->repetition_penalty != 1) penalize(x, n, s->repetition_penalty, text, length, scratch);
  int64_t best = likeliest(x, n);
  if (best < 0) return -1;
  if (s->temperature == 0) {
    memset(x, 0, (size_t)n * sizeof *x);
    x[best] = 1;
    return 0;
  }
  double most = x[best], least = -INFINITY;
  if (s->top_k && s->top_k < n) {
    memcpy(scratch, x, (size_t)n * sizeof *x);
    least = kth_largest(scratch, n, s->top_k);
  }
  for (int64_t i = 0; i < n; i++) x[i] = x[i] < least ? 0 : exp((x[i] - most) / s->temperature);
  normalize(x, n);
  if (s->top_p < 1) keep_nucleus(x, n, s->top_p, scratch);
  for (int64_t i = 0; i < n; i++)
    if (x[i] < s->min_p * x[best]) x[i] = 0;
  if (s->top_p < 1 || s->min_p > 0) normalize(x, n);
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
  return sample_weights(s, x, n, text, length, scratch) ? -1 : sample_pick(x, n, u);
}
