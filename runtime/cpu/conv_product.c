/* Convolutions as matrix products: Note [columns] in conv_tiling.c.
 *
 * A row of columns belongs to a pixel of y. Element t c + i of the row is the value that tap t of
 * the filter reads from channel i of the group's c channels, or zero outside the image. Pixels and
 * taps are counted in row-major order, from the first of an image or filter. */
#include "runtime/plan/types.h"
#include "conv_product.h"
#include <string.h>
#include "primitive.h"
#include "runtime/plan/arithmetic.h"
#include "runtime/plan/conv_sizes.h"
#include "runtime/plan/conv_tiling.h"
#include "runtime/base/convert.h"

enum { CHUNK = 256 };

typedef struct Columns {
  const ampc_conv *d;
  bool real64;
  int64_t size;              /* bytes of an element of the image */
  int64_t first, channels;   /* channels of the image that belong to the group */
  int64_t begin, depth, all; /* this part has `depth` of a row's `all` elements, from `begin` on */
  char *image, *columns;
  float *sum; /* sums over earlier parts, for the pixels of a group; NULL: only one part */
} Columns;

/* Returns the pixel of x that a tap reads for pixel `out` of y; -1: padding. */
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

/* Fills one row of columns with the values that the part's taps read. */
static void gather_row(const Columns *k, int64_t row)
{
  const ampc_conv *d = k->d;
  int64_t c = k->channels, pixels = conv_out_pixels(d);
  int64_t image = row / pixels, out = row % pixels, first = image * conv_in_pixels(d);
  char *to = k->columns + row * k->depth * k->size;
  for (int64_t at = k->begin, n; at < k->begin + k->depth; at += n, to += n * k->size) {
    int64_t channel = at % c, pixel = seen_pixel(d, out, at / c);
    n = least(c - channel, k->begin + k->depth - at);
    if (pixel < 0)
      memset(to, 0, (size_t)(n * k->size));
    else
      memcpy(to, k->image + ((first + pixel) * d->c + k->first + channel) * k->size,
             (size_t)(n * k->size));
  }
}

static void gather_task(void *context, unsigned block, unsigned n_blocks)
{
  const Columns *k = context;
  int64_t rows = k->d->n * conv_out_pixels(k->d);
  for (int64_t r = rows * block / n_blocks; r < rows * (block + 1) / n_blocks; r++)
    gather_row(k, r);
}

/* Returns the pixel of y whose tap reads pixel `in` of x; -1: no pixel. */
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

/* Adds in double, so that the result is rounded once. Between parts, sums are f32. */
static void add_columns(const Columns *k, int64_t at, double *sum, int64_t n)
{
  const double *wide = (const double *)(const void *)k->columns + at;
  const float *narrow = (const float *)(const void *)k->columns + at;
  if (k->real64) {
    for (int64_t c = 0; c < n; c++) sum[c] += wide[c];
  } else {
    for (int64_t c = 0; c < n; c++) sum[c] += (double)narrow[c];
  }
}

/* Stores sums in the images from element `at` on; before the last part, stores them in `part`. */
static void store_sums(const Columns *k, int64_t at, float *part, const double *sum, int64_t n)
{
  float narrow[CHUNK];
  bool last = k->begin + k->depth == k->all;
  if (k->real64) {
    memcpy((double *)(void *)k->image + at, sum, (size_t)n * sizeof *sum);
    return;
  }
  float *to = last ? narrow : part;
  for (int64_t c = 0; c < n; c++) to[c] = (float)sum[c];
  if (last) convert_narrow(k->d->x_type, narrow, k->image + at * k->size, n);
}

/* Sums all columns that read a pixel of x, for channels [begin, begin + n) of the group. */
static void sum_pixel(const Columns *k, int64_t pixel, int64_t begin, int64_t n)
{
  const ampc_conv *d = k->d;
  int64_t c = k->channels, end = k->begin + k->depth, pixels = conv_in_pixels(d);
  int64_t image = pixel / pixels, in = pixel % pixels;
  float *part = k->sum ? k->sum + pixel * c + begin : NULL;
  double sum[CHUNK] = {0};
  for (int64_t i = 0; i < n && k->begin > 0; i++) sum[i] = (double)part[i];
  for (int64_t tap = k->begin / c; tap * c < end; tap++) {
    int64_t low = tap * c + begin, high = least(low + n, end), from = low;
    if (low < k->begin) low = k->begin;
    int64_t out = low < high ? seeing_pixel(d, in, tap) : -1;
    if (out < 0) continue;
    int64_t row = image * conv_out_pixels(d) + out;
    add_columns(k, row * k->depth + low - k->begin, sum + (low - from), high - low);
  }
  store_sums(k, pixel * d->c + k->first + begin, part, sum, n);
}

static void sum_task(void *context, unsigned block, unsigned n_blocks)
{
  const Columns *k = context;
  int64_t pixels = k->d->n * conv_in_pixels(k->d), c = k->channels;
  for (int64_t p = pixels * block / n_blocks; p < pixels * (block + 1) / n_blocks; p++)
    for (int64_t begin = 0; begin < c; begin += CHUNK)
      sum_pixel(k, p, begin, least(c - begin, CHUNK));
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

static int64_t all_columns(const ampc_conv *d) /* columns of a group */
{
  return d->c / d->groups * conv_taps(d);
}

/* Returns the product for the part from column `begin` of a group on. The parts of a forward
 * convolution are added up; the first part adds the bias. */
static ampc_gemm product_of(const Job *job, int64_t begin)
{
  const ampc_conv *d = job->d;
  int64_t depth = least(all_columns(d) - begin, job->tiling.depth);
  ampc_gemm g = ampc_conv_product_part(d, depth, job->real64);
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

/* Returns the tiling on this machine. The library takes some operands without widening, so they
 * need no panels. Their space then holds columns, and parts are larger. */
static ConvTiling tiling_of(const GemmCache *products, const ampc_conv *d, bool real64)
{
  ConvTiling t = ampc_conv_tiling(d, real64);
  int64_t all = all_columns(d), rows = t.images * conv_out_pixels(d);
  int64_t size = d->kind == AMPC_CONV_DATA ? (int64_t)sizeof(float) : ampc_dtype_size(d->x_type);
  int64_t column = rows * size;
  bool weight = d->kind == AMPC_CONV_WEIGHT;
  bool bias = !d->has_bias || d->bias_type == AMPC_F32 || d->bias_type == d->x_type;
  bool native = !gemm_cache_is_own(products) && library_takes(d->x_type) &&
                d->y_type == d->x_type && bias &&
                (d->w_type == d->x_type || (weight && d->w_type == AMPC_F32));
  if (real64 || !native || t.depth == all) return t;
  if (t.total / column >= all) t.sum = 0;
  int64_t fit = (t.total - t.sum) / column, parts = (all + fit - 1) / fit;
  t.depth = (all + parts - 1) / parts;
  t.columns = ampc_round_up(t.depth * column, AMPC_CPU_ALIGN);
  return t;
}

static Columns columns_of(const Job *job, int64_t group, int64_t begin)
{
  const ampc_conv *d = job->d;
  int64_t c = d->c / d->groups, all = all_columns(d);
  Columns k = {.d = d,
               .real64 = job->real64,
               .size = ampc_size_of(d->x_type, job->real64),
               .first = group * c,
               .channels = c,
               .begin = begin,
               .depth = least(all - begin, job->tiling.depth),
               .all = all,
               .image = job->x,
               .columns = job->columns};
  if (job->tiling.direct) k.columns = job->x + k.first * k.size;
  if (job->tiling.sum > 0) k.sum = (float *)(void *)(job->columns + job->tiling.columns);
  return k;
}

/* Computes the part of a group from column `begin` on: forward and weight lay out columns and
 * multiply; data multiplies and sums the columns. If the result is images, its sum over the parts
 * is f32 (`sum`) and is rounded after the last part. */
static ampc_status run_part(const Job *job, int64_t group, int64_t begin)
{
  const ampc_conv *d = job->d;
  int64_t k = d->k / d->groups;
  Columns columns = columns_of(job, group, begin);
  ampc_gemm g = product_of(job, begin);
  bool lays_out = !job->tiling.direct;
  char *w = job->w + (group * k * columns.all + begin) * ampc_size_of(d->w_type, job->real64);
  char *y = job->y + group * k * ampc_size_of(d->y_type, job->real64);
  char *sum = job->columns ? job->columns + job->tiling.columns : NULL;
  char *room = sum ? sum + job->tiling.sum : NULL;
  const char *bias =
      g.has_bias ? job->bias + group * k * ampc_size_of(d->bias_type, job->real64) : NULL;
  unsigned threads = pool_threads(job->pool);
  if (d->kind == AMPC_CONV_DATA) {
    ampc_status status =
        cpu_gemm(job->products, &g, &(GemmOperands){y, w, NULL, columns.columns, room});
    if (!status && lays_out) pool_run(job->pool, sum_task, &columns, threads);
    return status;
  }
  if (lays_out) pool_run(job->pool, gather_task, &columns, threads);
  if (d->kind == AMPC_CONV_WEIGHT)
    return cpu_gemm(job->products, &g, &(GemmOperands){y, columns.columns, NULL, w, room});
  bool summed = job->tiling.sum > 0; /* if not, y may begin where `sum` would be */
  ampc_status status = cpu_gemm(job->products, &g,
                                &(GemmOperands){columns.columns, w, bias, summed ? sum : y, room});
  Narrowing last = {job, sum, y};
  if (summed && begin + columns.depth == columns.all)
    pool_run(job->pool, narrow_task, &last, threads);
  return status;
}

/* Returns the convolution of the images that are computed together, from image `first` on. */
static ampc_conv some_images(const Job *job, int64_t first)
{
  ampc_conv some = *job->d;
  some.n = least(job->tiling.images, some.n - first);
  return some;
}

ampc_status conv_by_product_prepare(GemmCache *products, bool real64, const ampc_conv *d)
{
  Job job = {.d = d, .tiling = tiling_of(products, d, real64), .real64 = real64};
  ampc_status status = AMPC_OK;
  for (int64_t first = 0; first < d->n; first += job.tiling.images) {
    ampc_conv some = some_images(&job, first);
    Job part = job;
    part.d = &some;
    for (int64_t at = 0; at < all_columns(d) && !status; at += job.tiling.depth) {
      ampc_gemm g = product_of(&part, at);
      status = cpu_gemm_prepare(products, &g);
    }
  }
  return status;
}

static ampc_status run_images(const Job *all, int64_t first)
{
  ampc_conv some = some_images(all, first);
  Job job = *all;
  job.d = &some;
  job.x += first * conv_in_elements(&some) * ampc_size_of(some.x_type, all->real64);
  job.y += first * conv_out_elements(&some) * ampc_size_of(some.y_type, all->real64);
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < some.groups && !status; i++)
    for (int64_t at = 0; at < all_columns(&some) && !status; at += job.tiling.depth)
      status = run_part(&job, i, at);
  return status;
}

ampc_status conv_by_product(Pool *pool, GemmCache *products, bool real64, const ampc_conv *d,
                            const ConvOperands *at)
{
  Job job = {.d = d,
             .tiling = tiling_of(products, d, real64),
             .real64 = real64,
             .pool = pool,
             .products = products,
             .x = at->x,
             .w = at->w,
             .y = at->y,
             .columns = at->workspace,
             .bias = at->bias};
  ampc_status status = AMPC_OK;
  for (int64_t first = 0; first < d->n && !status; first += job.tiling.images)
    status = run_images(&job, first);
  return status;
}
