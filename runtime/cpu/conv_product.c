/* Convolutions as matrix products: Note [columns] in conv_tiling.c.
 *
 * A row of columns belongs to a pixel of y; element (c kh + i) kw + j of it is channel c of what
 * tap (i, j) of the filter sees there, zero where that lies outside the image. */
#include "conv_product.h"
#include <string.h>
#include "conv_tiling.h"
#include "convert.h"

enum { CHUNK = 256 };

typedef struct Columns {
  const ampc_conv *d;
  bool real64;
  int64_t size; /* of an element */
  char *image, *columns;
} Columns;

static void spread(int64_t size, const char *from, char *to, int64_t n, int64_t step)
{
  if (size == 2) {
    for (int64_t c = 0; c < n; c++)
      ((uint16_t *)(void *)to)[c * step] = from ? ((const uint16_t *)(const void *)from)[c] : 0;
  } else if (size == 4) {
    for (int64_t c = 0; c < n; c++)
      ((uint32_t *)(void *)to)[c * step] = from ? ((const uint32_t *)(const void *)from)[c] : 0;
  } else {
    for (int64_t c = 0; c < n; c++)
      ((uint64_t *)(void *)to)[c * step] = from ? ((const uint64_t *)(const void *)from)[c] : 0;
  }
}

static void gather_row(const Columns *k, int64_t row)
{
  const ampc_conv *d = k->d;
  int64_t taps = d->kh * d->kw, image = row / (d->oh * d->ow);
  int64_t oy = row / d->ow % d->oh, ox = row % d->ow;
  char *to = k->columns + row * d->c * taps * k->size;
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t iy = oy * d->stride[0] - d->pad[0] + tap / d->kw * d->dilation[0];
    int64_t ix = ox * d->stride[1] - d->pad[1] + tap % d->kw * d->dilation[1];
    bool inside = iy >= 0 && iy < d->h && ix >= 0 && ix < d->w;
    int64_t at = ((image * d->h + iy) * d->w + ix) * d->c;
    spread(k->size, inside ? k->image + at * k->size : NULL, to + tap * k->size, d->c, taps);
  }
}

static void gather_task(void *context, unsigned block, unsigned n_blocks)
{
  const Columns *k = context;
  int64_t rows = k->d->n * k->d->oh * k->d->ow;
  for (int64_t r = rows * block / n_blocks; r < rows * (block + 1) / n_blocks; r++)
    gather_row(k, r);
}

/* The row of the pixel of y that sees `at` by the tap, or -1. */
static int64_t seen_from(int64_t at, int64_t tap, int64_t stride, int64_t pad, int64_t dilation,
                         int64_t size)
{
  int64_t first = at + pad - tap * dilation;
  return first >= 0 && first % stride == 0 && first / stride < size ? first / stride : -1;
}

static void add_strided(const Columns *k, int64_t at, int64_t step, double *sum, int64_t n)
{
  const double *wide = (const double *)(const void *)k->columns + at;
  const float *narrow = (const float *)(const void *)k->columns + at;
  if (k->real64) {
    for (int64_t c = 0; c < n; c++) sum[c] += wide[c * step];
  } else {
    for (int64_t c = 0; c < n; c++) sum[c] += (double)narrow[c * step];
  }
}

static void store_sums(const Columns *k, int64_t at, const double *sum, int64_t n)
{
  float narrow[CHUNK];
  if (k->real64) {
    memcpy((double *)(void *)k->image + at, sum, (size_t)n * sizeof *sum);
  } else {
    for (int64_t c = 0; c < n; c++) narrow[c] = (float)sum[c];
    convert_narrow(k->d->x_type, narrow, k->image + at * k->size, n);
  }
}

/* Channels [begin, begin + n) of a pixel of x: the sum of what was seen of it. */
static void sum_pixel(const Columns *k, int64_t pixel, int64_t begin, int64_t n)
{
  const ampc_conv *d = k->d;
  int64_t taps = d->kh * d->kw, image = pixel / (d->h * d->w);
  int64_t iy = pixel / d->w % d->h, ix = pixel % d->w;
  double sum[CHUNK] = {0};
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t oy = seen_from(iy, tap / d->kw, d->stride[0], d->pad[0], d->dilation[0], d->oh);
    int64_t ox = seen_from(ix, tap % d->kw, d->stride[1], d->pad[1], d->dilation[1], d->ow);
    if (oy < 0 || ox < 0) continue;
    int64_t row = (image * d->oh + oy) * d->ow + ox;
    add_strided(k, (row * d->c + begin) * taps + tap, taps, sum, n);
  }
  store_sums(k, pixel * d->c + begin, sum, n);
}

static void sum_task(void *context, unsigned block, unsigned n_blocks)
{
  const Columns *k = context;
  int64_t pixels = k->d->n * k->d->h * k->d->w, c = k->d->c;
  for (int64_t p = pixels * block / n_blocks; p < pixels * (block + 1) / n_blocks; p++)
    for (int64_t begin = 0; begin < c; begin += CHUNK)
      sum_pixel(k, p, begin, c - begin < CHUNK ? c - begin : CHUNK);
}

static int64_t size_of(bool real64, ampc_dtype t)
{
  return real64 ? (int64_t)sizeof(double) : ampc_dtype_size(t);
}

static ampc_status multiply_group(GemmCache *products, const ampc_conv *d, const ampc_gemm *g,
                                  char *columns, char *w, const char *bias, char *y, char *room)
{
  switch (d->kind) {
  case AMPC_CONV_FORWARD:
    return cpu_gemm(products, g, columns, w, bias, y, room);
  case AMPC_CONV_DATA:
    return cpu_gemm(products, g, y, w, NULL, columns, room);
  default:
    return cpu_gemm(products, g, y, columns, NULL, w, room);
  }
}

ampc_status conv_by_product(Pool *pool, GemmCache *products, bool real64, const ampc_conv *d,
                            void *x, void *w, const void *bias, void *y, void *workspace)
{
  bool data = d->kind == AMPC_CONV_DATA;
  ampc_gemm g = conv_product(d, real64);
  int64_t k = d->k / d->groups, depth = d->c / d->groups * d->kh * d->kw;
  Columns columns = {d, real64, size_of(real64, d->x_type), x, workspace};
  char *room = columns.columns + conv_tiling(d, real64).columns;
  if (!data) pool_run(pool, gather_task, &columns, pool_threads(pool));
  int64_t column_size = data ? size_of(real64, AMPC_F32) : columns.size;
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < d->groups && !status; i++)
    status = multiply_group(products, d, &g, columns.columns + i * depth * column_size,
                            (char *)w + i * k * depth * size_of(real64, d->w_type),
                            d->has_bias ? (const char *)bias + i * k * size_of(real64, d->bias_type)
                                        : NULL,
                            (char *)y + i * k * size_of(real64, d->y_type), room);
  if (!status && data) pool_run(pool, sum_task, &columns, pool_threads(pool));
  return status;
}
