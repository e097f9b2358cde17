/* Convolutions as matrix products: Note [columns] in conv_tiling.c.
 *
 * A row of columns belongs to a pixel of y; element c taps + t of it is what tap t of the filter
 * sees there of the c-th channel of the part, zero where that lies outside the image. Pixels and
 * taps are counted in row-major order, from the first of an image or filter. */
#include "conv_product.h"
#include <string.h>
#include "primitive.h"
#include "runtime/plan/conv_sizes.h"
#include "runtime/plan/conv_tiling.h"
#include "runtime/base/convert.h"

enum { CHUNK = 256 };

typedef struct Columns {
  const ampc_conv *d;
  bool real64;
  int64_t size;            /* of an element of the image */
  int64_t first, channels; /* of the image: those of the part */
  char *image, *columns;
} Columns;

/* n elements to every step-th place of a row, or zeros where `from` is NULL. One plain loop for
 * each size of element, so that the compiler sees fixed sizes. */
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

/* The pixel of x that a tap sees from pixel `out` of y; -1: it sees padding. */
static int64_t seen_pixel(const ampc_conv *d, int64_t out, int64_t tap)
{
  int64_t pixel = 0, step = 1;
  for (uint32_t i = d->spatial; i-- > 0;) {
    int64_t at = out % d->out[i] * d->stride[i] - d->pad[i] + tap % d->kernel[i] * d->dilation[i];
    if (at < 0 || at >= d->in[i]) return -1;
    pixel += at * step;
    step *= d->in[i];
    out /= d->out[i];
    tap /= d->kernel[i];
  }
  return pixel;
}

/* One row of columns: all taps of the channels of the part. */
static void gather_row(const Columns *k, int64_t row)
{
  const ampc_conv *d = k->d;
  int64_t taps = conv_taps(d), pixels = conv_out_pixels(d);
  int64_t image = row / pixels, out = row % pixels, first = image * conv_in_pixels(d);
  char *to = k->columns + row * k->channels * taps * k->size;
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t pixel = seen_pixel(d, out, tap), at = (first + pixel) * d->c + k->first;
    const char *from = pixel < 0 ? NULL : k->image + at * k->size;
    spread(k->size, from, to + tap * k->size, k->channels, taps);
  }
}

static void gather_task(void *context, unsigned block, unsigned n_blocks)
{
  const Columns *k = context;
  int64_t rows = k->d->n * conv_out_pixels(k->d);
  for (int64_t r = rows * block / n_blocks; r < rows * (block + 1) / n_blocks; r++)
    gather_row(k, r);
}

/* The pixel of y that sees pixel `in` of x by the tap; -1: none does. */
static int64_t seeing_pixel(const ampc_conv *d, int64_t in, int64_t tap)
{
  int64_t pixel = 0, step = 1;
  for (uint32_t i = d->spatial; i-- > 0;) {
    int64_t at = in % d->in[i] + d->pad[i] - tap % d->kernel[i] * d->dilation[i];
    if (at < 0 || at % d->stride[i] || at / d->stride[i] >= d->out[i]) return -1;
    pixel += at / d->stride[i] * step;
    step *= d->out[i];
    in /= d->in[i];
    tap /= d->kernel[i];
  }
  return pixel;
}

/* Sums are kept in double: the result is rounded once. */
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

/* Channels [begin, begin + n) of the part, of a pixel of x: the sum of what was seen of it. */
static void sum_pixel(const Columns *k, int64_t pixel, int64_t begin, int64_t n)
{
  const ampc_conv *d = k->d;
  int64_t taps = conv_taps(d), pixels = conv_in_pixels(d);
  int64_t image = pixel / pixels, in = pixel % pixels;
  double sum[CHUNK] = {0};
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t out = seeing_pixel(d, in, tap);
    if (out < 0) continue;
    int64_t row = image * conv_out_pixels(d) + out;
    add_strided(k, (row * k->channels + begin) * taps + tap, taps, sum, n);
  }
  store_sums(k, pixel * d->c + k->first + begin, sum, n);
}

static void sum_task(void *context, unsigned block, unsigned n_blocks)
{
  const Columns *k = context;
  int64_t pixels = k->d->n * conv_in_pixels(k->d), c = k->channels;
  for (int64_t p = pixels * block / n_blocks; p < pixels * (block + 1) / n_blocks; p++)
    for (int64_t begin = 0; begin < c; begin += CHUNK)
      sum_pixel(k, p, begin, c - begin < CHUNK ? c - begin : CHUNK);
}

/* ---- parts ---- */

typedef struct Job {
  const ampc_conv *d;
  ConvTiling tiling;
  bool real64;
  Pool *pool;
  GemmCache *products;
  char *x, *w, *y, *columns;
  const char *bias;
} Job;

static int64_t size_of(const Job *job, ampc_dtype t)
{
  return job->real64 ? (int64_t)sizeof(double) : ampc_dtype_size(t);
}

static int64_t channels_from(const Job *job, int64_t begin)
{
  int64_t left = job->d->c / job->d->groups - begin;
  return left < job->tiling.channels ? left : job->tiling.channels;
}

/* The part from channel `begin` of a group on. The parts of a forward convolution are added up, the
 * first one has the bias. */
static ampc_gemm product_of(const Job *job, int64_t begin)
{
  const ampc_conv *d = job->d;
  ampc_gemm g = ampc_conv_product_part(d, channels_from(job, begin), job->real64);
  if (d->kind != AMPC_CONV_FORWARD || begin == 0) return g;
  g.accumulate = true;
  g.has_bias = false;
  return g;
}

typedef struct Narrowing {
  const Job *job;
  const char *sum;
  char *y;
} Narrowing;

static void narrow_task(void *context, unsigned block, unsigned n_blocks)
{
  const Narrowing *n = context;
  const ampc_conv *d = n->job->d;
  int64_t rows = d->n * conv_out_pixels(d), k = d->k / d->groups;
  const float *sum = (const float *)(const void *)n->sum;
  for (int64_t r = rows * block / n_blocks; r < rows * (block + 1) / n_blocks; r++)
    convert_narrow(d->y_type, sum + r * k, n->y + r * d->k * ampc_dtype_size(d->y_type), k);
}

/* Of operands that the library takes as they are there are no panels: their room is for columns,
 * and parts are larger. */
static ConvTiling tiling_of(const ampc_conv *d, bool real64)
{
  ConvTiling t = ampc_conv_tiling(d, real64);
  int64_t c = d->c / d->groups, rows = d->n * conv_out_pixels(d);
  int64_t size = d->kind == AMPC_CONV_DATA ? (int64_t)sizeof(float) : ampc_dtype_size(d->x_type);
  int64_t channel = rows * conv_taps(d) * size;
  bool weight = d->kind == AMPC_CONV_WEIGHT;
  bool native = d->x_type == AMPC_BF16 && d->y_type == AMPC_BF16 &&
                (d->w_type == AMPC_BF16 || (weight && d->w_type == AMPC_F32)) &&
                !(d->has_bias && d->bias_type == AMPC_F16) && has_native_bf16();
  if (real64 || !native || t.channels == c) return t;
  if (t.total / channel >= c) t.sum = 0;
  int64_t fit = (t.total - t.sum) / channel, parts = (c + fit - 1) / fit;
  t.channels = (c + parts - 1) / parts;
  t.columns = ampc_round_up(t.channels * channel, AMPC_CPU_ALIGN);
  return t;
}

/* The channels of a group from `begin` on: columns and product, in the order that the kind asks
 * for. Forward in 16 bits adds its parts up in f32 (`sum`) and rounds after the last. */
static ampc_status run_part(const Job *job, int64_t group, int64_t begin)
{
  const ampc_conv *d = job->d;
  int64_t c = d->c / d->groups, k = d->k / d->groups, taps = conv_taps(d);
  Columns columns = {.d = d,
                     .real64 = job->real64,
                     .size = size_of(job, d->x_type),
                     .first = group * c + begin,
                     .channels = channels_from(job, begin),
                     .image = job->x,
                     .columns = job->columns};
  ampc_gemm g = product_of(job, begin);
  if (job->tiling.direct) columns.columns = job->x + columns.first * columns.size;
  bool lays_out = !job->tiling.direct;
  char *w = job->w + (group * k * c + begin) * taps * size_of(job, d->w_type);
  char *y = job->y + group * k * size_of(job, d->y_type);
  char *sum = job->columns + job->tiling.columns, *room = sum + job->tiling.sum;
  const char *bias = g.has_bias ? job->bias + group * k * size_of(job, d->bias_type) : NULL;
  unsigned threads = pool_threads(job->pool);
  if (d->kind == AMPC_CONV_DATA) {
    ampc_status status = cpu_gemm(job->products, &g, y, w, NULL, columns.columns, room);
    if (!status && lays_out) pool_run(job->pool, sum_task, &columns, threads);
    return status;
  }
  if (lays_out) pool_run(job->pool, gather_task, &columns, threads);
  if (d->kind == AMPC_CONV_WEIGHT)
    return cpu_gemm(job->products, &g, y, columns.columns, NULL, w, room);
  char *to = job->tiling.sum > 0 ? sum : y;
  ampc_status status = cpu_gemm(job->products, &g, columns.columns, w, bias, to, room);
  Narrowing last = {job, sum, y};
  if (to == sum && begin + columns.channels == c) pool_run(job->pool, narrow_task, &last, threads);
  return status;
}

ampc_status conv_by_product_prepare(GemmCache *products, bool real64, const ampc_conv *d)
{
  Job job = {.d = d, .tiling = tiling_of(d, real64), .real64 = real64};
  ampc_status status = AMPC_OK;
  for (int64_t at = 0; at < d->c / d->groups && !status; at += job.tiling.channels) {
    ampc_gemm g = product_of(&job, at);
    status = cpu_gemm_prepare(products, &g);
  }
  return status;
}

ampc_status conv_by_product(Pool *pool, GemmCache *products, bool real64, const ampc_conv *d,
                            void *x, void *w, const void *bias, void *y, void *workspace)
{
  Job job = {.d = d,
             .tiling = tiling_of(d, real64),
             .real64 = real64,
             .pool = pool,
             .products = products,
             .x = x,
             .w = w,
             .y = y,
             .columns = workspace,
             .bias = bias};
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < d->groups && !status; i++)
    for (int64_t at = 0; at < d->c / d->groups && !status; at += job.tiling.channels)
      status = run_part(&job, i, at);
  return status;
}
