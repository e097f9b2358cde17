/* Resizes in two passes. The first sums rows, which vectorizes, because all pixels of a row have
 * the same weight. The second sums columns and writes one plane per colour. Weights are integers of
 * 15 bits, so that every machine computes the same bytes. Between the passes, values have 7
 * fractional bits. The weights of a pixel sum to exactly one, so an area of one colour keeps it. */
#include "resize.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_BITS = 15, KEPT_BITS = 7 };

/* The filter of one axis: pixel i of the result sums `taps` weighted pixels from first[i] on. */
typedef struct Filter {
  int64_t taps;
  int64_t *first;  /* [size]; pixels are counted from the axis' first pixel */
  int32_t *weight; /* [size, taps] */
} Filter;

/* Rounds weights to integers, and adds to the largest weight what the sum lacks to one. */
static void quantize(const double *real, int64_t n, double sum, int32_t *to)
{
  int32_t left = 1 << WEIGHT_BITS;
  int64_t largest = 0;
  for (int64_t i = 0; i < n; i++) {
    to[i] = (int32_t)lrint(real[i] / sum * (1 << WEIGHT_BITS));
    left -= to[i];
    if (to[i] > to[largest]) largest = i;
  }
  to[largest] += left;
}

/* Computes the weights of pixel i of the result. `real` is a buffer for the taps. */
static void fill_pixel(const ResizeAxis *a, Filter *f, int64_t i, double support, double *real)
{
  double centre = a->begin + ((double)i + 0.5) * a->scale, sum = 0;
  int64_t low = (int64_t)floor(centre - support + 0.5),
          high = (int64_t)floor(centre + support + 0.5);
  if (low < a->first) low = a->first;
  if (high > a->last) high = a->last;
  if (low >= a->last) low = a->last - 1;
  if (high <= low) high = low + 1;
  if (high - low > f->taps) high = low + f->taps;
  for (int64_t k = low; k < high; k++) {
    double w = 1 - fabs(((double)k + 0.5 - centre) / support);
    real[k - low] = w > 0 ? w : 0;
    sum += real[k - low];
  }
  if (sum <= 0) real[0] = sum = 1;
  int64_t at = a->mirrored ? a->size - 1 - i : i;
  f->first[at] = low - a->first;
  quantize(real, high - low, sum, f->weight + at * f->taps);
}

static void filter_free(Filter *f)
{
  free(f->first);
  free(f->weight);
}

static bool filter_make(const ResizeAxis *a, Filter *f)
{
  double support = a->scale > 1 ? a->scale : 1;
  f->taps = (int64_t)ceil(support) * 2 + 1;
  if (f->taps > a->last - a->first) f->taps = a->last - a->first;
  f->first = malloc((size_t)a->size * sizeof *f->first);
  f->weight = calloc((size_t)(a->size * f->taps), sizeof *f->weight);
  double *real = malloc((size_t)f->taps * sizeof *real);
  bool good = f->first && f->weight && real;
  for (int64_t i = 0; good && i < a->size; i++) fill_pixel(a, f, i, support, real);
  /* every pixel sums exactly `taps` pixels; a range that would pass the last one begins earlier */
  for (int64_t i = 0; good && i < a->size; i++) {
    int64_t over = f->first[i] + f->taps - (a->last - a->first);
    if (over <= 0) continue;
    int32_t *w = f->weight + i * f->taps;
    memmove(w + over, w, (size_t)(f->taps - over) * sizeof *w);
    memset(w, 0, (size_t)over * sizeof *w);
    f->first[i] -= over;
  }
  free(real);
  return good;
}

/* Sums weighted source rows to one row `to`. Its values have KEPT_BITS fractional bits. */
static void sum_rows(const uint8_t *from, int64_t width, const int32_t *weight, int64_t taps,
                     int32_t *sum, uint16_t *to)
{
  memset(sum, 0, (size_t)width * sizeof *sum);
  for (int64_t k = 0; k < taps; k++) {
    const uint8_t *row = from + k * width;
    int32_t w = weight[k];
    if (!w) continue;
    for (int64_t i = 0; i < width; i++) sum[i] += row[i] * w;
  }
  enum { DROPPED = WEIGHT_BITS - KEPT_BITS };
  for (int64_t i = 0; i < width; i++)
    to[i] = (uint16_t)((sum[i] + (1 << (DROPPED - 1))) >> DROPPED);
}

static void sum_columns(const uint16_t *row, const Filter *f, int64_t size, int64_t plane,
                        uint8_t *to)
{
  enum { DROPPED = WEIGHT_BITS + KEPT_BITS };
  for (int64_t i = 0; i < size; i++) {
    const uint16_t *p = row + 3 * f->first[i];
    const int32_t *w = f->weight + i * f->taps;
    int32_t red = 1 << (DROPPED - 1), green = red, blue = red;
    for (int64_t k = 0; k < f->taps; k++) {
      red += p[3 * k] * w[k];
      green += p[3 * k + 1] * w[k];
      blue += p[3 * k + 2] * w[k];
    }
    to[i] = (uint8_t)(red >> DROPPED);
    to[i + plane] = (uint8_t)(green >> DROPPED);
    to[i + 2 * plane] = (uint8_t)(blue >> DROPPED);
  }
}

bool resize(const uint8_t *from, const ResizeAxis *x, const ResizeAxis *y, uint8_t *to)
{
  Filter fx = {0}, fy = {0};
  int64_t width = 3 * (x->last - x->first);
  bool good = filter_make(x, &fx);
  good = filter_make(y, &fy) && good;
  int32_t *sum = malloc((size_t)width * sizeof *sum);
  uint16_t *row = malloc((size_t)width * sizeof *row);
  good = good && sum && row;
  for (int64_t i = 0; good && i < y->size; i++) {
    sum_rows(from + fy.first[i] * width, width, fy.weight + i * fy.taps, fy.taps, sum, row);
    sum_columns(row, &fx, x->size, x->size * y->size, to + i * x->size);
  }
  free(sum);
  free(row);
  filter_free(&fx);
  filter_free(&fy);
  return good;
}
