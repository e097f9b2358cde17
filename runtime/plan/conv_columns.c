/* Sizes of columns and of partial sums: see conv_columns.h. */
#include "conv_columns.h"
#include "arithmetic.h"
#include "conv_sizes.h"
#include "types.h"

enum { COLUMN_BYTES = 64 << 20, MIB = 1 << 20, THREADS = 1 << 16 /* threads that fill a GPU */ };

/* Returns the largest divisor of n that is at most `limit`; at least 1. */
static int64_t divisor(int64_t n, int64_t limit)
{
  int64_t best = 1;
  for (int64_t i = 1; i * i <= n; i++) {
    if (n % i) continue;
    if (i <= limit) best = most(best, i);
    if (n / i <= limit) best = most(best, n / i);
  }
  return best;
}

ampc_conv ampc_conv_of_columns(const ampc_conv *d)
{
  ampc_conv m = *d;
  if (d->kind != AMPC_CONV_DATA || conv_is_pointwise(d)) return m;
  m.kind = AMPC_CONV_FORWARD;
  m.c = d->k, m.k = d->c;
  m.x_type = d->y_type, m.y_type = d->x_type;
  for (uint32_t i = 0; i < d->spatial; i++) m.in[i] = d->out[i], m.out[i] = d->in[i];
  return m;
}

/* Returns 8, 4 or 2 neighbouring channels of a group if an access then has 4 bytes; else 1. */
static int64_t vector_of(int64_t channels, int64_t size)
{
  int64_t most = channels % 8 == 0 ? 8 : channels % 4 == 0 ? 4 : channels % 2 == 0 ? 2 : 1;
  return most * size >= 4 ? most : 1;
}

bool ampc_conv_is_depthwise(const ampc_conv *d)
{
  return d->groups > 1 && d->c == d->groups && d->k == d->groups;
}

static bool is_whole(const ampc_conv *d)
{
  int64_t depth = d->c / d->groups;
  if (conv_is_pointwise(d)) return false;
  return (d->groups > 1 && depth == 1) || depth * conv_taps(d) <= CONV_WHOLE_DEPTH;
}

/* Divides the sum into enough parts for their threads to fill a GPU; a part has several pixels. */
static void cut_sums(const ampc_conv *d, int64_t size, ConvColumns *t)
{
  enum { LEAST_PIXELS = 16, MOST_SUMS = 2048, ALONE = 48 };
  int64_t all = d->n * conv_out_pixels(d), weights = conv_weights(d);
  int64_t parts = least(ceil_div(THREADS * t->vector, weights), MOST_SUMS);
  parts = least(parts, ceil_div(all, LEAST_PIXELS));
  t->pixels = ceil_div(all, parts);
  t->sums = ceil_div(all, t->pixels);
  if (t->sums > ALONE) t->join = ceil_div(t->sums, ALONE);
  if (t->join) t->joined = ceil_div(t->sums, t->join);
  t->bytes = ampc_round_up((t->sums + t->joined) * weights * size, AMPC_CUDA_ALIGN);
}

/* Sets the sizes of Note [whole]. A thread computes, and for depthwise filters reads, a vector. */
static ConvColumns whole(const ampc_conv *d, bool real64, ConvColumns t)
{
  bool weight = d->kind == AMPC_CONV_WEIGHT;
  ampc_conv m = ampc_conv_of_columns(d);
  int64_t x = ampc_size_of(m.x_type, real64), y = ampc_size_of(m.y_type, real64);
  t.whole = true;
  t.vector = vector_of(ampc_conv_is_depthwise(d) ? d->c : m.k / m.groups, x < y ? x : y);
  if (weight) cut_sums(d, ampc_size_of(AMPC_F32, real64), &t);
  int64_t pixels = d->n * conv_out_pixels(&m), threads = pixels * m.k / t.vector;
  for (t.each = 4; pixels % t.each != 0 || threads / t.each < THREADS / 4; t.each /= 2)
    if (t.each == 1) break;
  return t;
}

uint32_t ampc_conv_kernel_args(const ampc_conv *d)
{
  if (is_whole(d)) return d->kind == AMPC_CONV_WEIGHT || d->has_bias ? 4 : 3;
  return d->kind == AMPC_CONV_DATA ? 4 : 2;
}

int ampc_conv_passes(const ampc_conv *d, const ConvColumns *t)
{
  return !t->whole || d->kind != AMPC_CONV_WEIGHT ? 1 : t->join ? 3 : 2;
}

void ampc_conv_pass(const ampc_conv *d, const ConvColumns *t, int pass,
                    void *args[CONV_KERNEL_ARGS])
{
  int passes = ampc_conv_passes(d, t);
  if (passes > 1 && pass > 0) args[0] = args[1] = NULL;
  if (passes > 1 && pass < passes - 1) args[3] = NULL;
}

int64_t ampc_conv_kernel_elements(const ampc_conv *d, bool real64)
{
  ampc_conv m = ampc_conv_of_columns(d);
  ConvColumns t = ampc_conv_columns(d, real64);
  if (t.whole && d->kind == AMPC_CONV_WEIGHT) return t.sums * conv_weights(d);
  if (t.whole) return d->n * conv_out_elements(&m) / t.each;
  return t.images * conv_out_pixels(&m) * m.c * conv_taps(&m);
}

ConvColumns ampc_conv_columns(const ampc_conv *d, bool real64)
{
  ampc_conv m = ampc_conv_of_columns(d);
  ConvColumns t = {.direct = conv_is_pointwise(d), .images = d->n, .parts = 1, .type = m.x_type};
  if (t.direct || d->n == 0) return t;
  if (is_whole(d) && d->k > 0) return whole(d, real64, t);
  int64_t size = ampc_size_of(t.type, real64), w_size = ampc_size_of(d->w_type, real64);
  int64_t image = conv_out_pixels(&m) * m.c * conv_taps(d) * size;
  /* parts of a weight's gradient are summed in the result, which must then be f32 */
  bool whole = d->kind == AMPC_CONV_WEIGHT && d->w_type != AMPC_F32;
  if (image > 0 && !whole) t.images = divisor(d->n, COLUMN_BYTES / image);
  t.parts = d->n / t.images;
  t.bytes = ampc_round_up(t.images * image, AMPC_CUDA_ALIGN);
  t.vector = vector_of(m.c / m.groups, size);
  if (d->kind == AMPC_CONV_DATA)
    t.turned = ampc_round_up(conv_weights(d) * w_size, AMPC_CUDA_ALIGN);
  return t;
}

/* Returns the size that NVIDIA advises: larger on GPUs whose multiprocessors copy whole tiles. */
int64_t ampc_gemm_workspace_cuda(int capability)
{
  return capability >= 90 ? 32 * MIB : 4 * MIB;
}

int64_t ampc_conv_workspace_cuda(const ampc_conv *d, bool real64, int capability)
{
  if (!d) return 0;
  ConvColumns t = ampc_conv_columns(d, real64);
  return t.bytes + t.turned + ampc_gemm_workspace_cuda(capability);
}
