/* How the CPU divides a convolution: sizes. */
#include "conv_tiling.h"
#include "arithmetic.h"
#include "conv_sizes.h"
#include "types.h"

/* SHARES: about this many shares of a batch (images processed together: conv_tiling.h), if each has
 * MIN_WORK multiply-adds or more. SHARE_BYTES: size of a share in f32, which should stay in a
 * core's cache. POINTWISE_WEIGHTS: from this size on a product has enough blocks for all threads,
 * and takes 0.7 to 1.1 times the time of a convolution. */
enum {
  SHARES = 32,
  MIN_WORK = 1 << 20,
  SHARE_BYTES = 1 << 20,
  LANES = 16,
  LANE_BYTES = 16 << 20,
  MANY_WEIGHTS = 2 << 20,
  SLICED_WEIGHTS = 4 << 20,
  SLICE = 128,
  POINTWISE_WEIGHTS = 128 << 10,
  FEW_PIXELS = 16,
  SCRATCH = 8 << 10,
  COLUMN_BYTES = 64 << 20,
  PART_DEPTH = 352,
  SUM_BYTES = 1 << 20
};

static int64_t floats(int64_t n)
{
  return ampc_round_up(n * (int64_t)sizeof(float), AMPC_CPU_ALIGN);
}

/* Returns the bytes of packed weights: in blocks of `block` output and up to 16 input channels. */
static int64_t packed_bytes(const ampc_conv *d, int64_t block)
{
  int64_t k = d->k / d->groups, c = d->c / d->groups, taps = conv_taps(d);
  if (k == 1 && c == 1) return floats(ampc_round_up(d->groups, 16) * taps);
  return floats(d->groups * ampc_round_up(k, block) * ampc_round_up(c, 16) * taps);
}

/* Note [columns]
 * If an image has few pixels, the library reads all weights for a few rows of a product. If the
 * weights do not fit into a core's cache, it is faster to copy the values that each pixel of y
 * reads into one row, and to multiply this matrix [n out.., kernel.. c] by the weights. Doubles,
 * which only tests use, are computed this way, too. For 16-bit operands the matrix never exists as
 * a whole: PART_DEPTH of its columns are copied and multiplied before the next ones. If images are
 * the result, they are sums over these parts, in f32: about SUM_BYTES of them at a time, from some
 * images of the batch. The tap of a 1x1 filter with stride 1 reads each pixel of x once, so x
 * itself is the matrix and nothing is copied. With a larger stride the matrix is a copy of some
 * pixels. That is worth it if the library would get the weights in slices. */
static bool by_product(const ampc_conv *d, bool real64)
{
  if (conv_is_pointwise(d) && conv_weights(d) / d->groups >= POINTWISE_WEIGHTS) return true;
  int64_t bytes = floats(d->n * conv_out_pixels(d) * d->c * conv_taps(d));
  int64_t weights = conv_weights(d) / d->groups * (int64_t)sizeof(float); /* bytes */
  bool heavy = weights >= MANY_WEIGHTS && conv_out_pixels(d) <= FEW_PIXELS;
  heavy = heavy || (weights > SLICED_WEIGHTS && conv_taps(d) == 1);
  return real64 || (heavy && bytes <= COLUMN_BYTES);
}

ampc_gemm ampc_conv_product(const ampc_conv *d, bool real64)
{
  int64_t rows = d->n * conv_out_pixels(d), k = d->k / d->groups;
  int64_t depth = d->c / d->groups * conv_taps(d), all = depth * d->groups;
  ampc_gemm g = {.batch = 1, .tf32 = d->tf32};
  switch (d->kind) {
  case AMPC_CONV_FORWARD: /* y = columns w^T */
    g.m = rows, g.n = k, g.k = depth;
    g.lda = all, g.ldb = depth, g.ldc = d->k;
    g.a_type = d->x_type, g.b_type = d->w_type, g.c_type = d->y_type;
    g.trans_b = true;
    g.has_bias = d->has_bias, g.bias_type = d->bias_type;
    break;
  case AMPC_CONV_DATA: /* columns = y w */
    g.m = rows, g.n = depth, g.k = k;
    g.lda = d->k, g.ldb = depth, g.ldc = all;
    g.a_type = d->y_type, g.b_type = d->w_type;
    if (conv_is_pointwise(d)) g.c_type = d->x_type;
    break;
  case AMPC_CONV_WEIGHT: /* w = y^T columns */
    g.m = k, g.n = depth, g.k = rows;
    g.lda = d->k, g.ldb = all, g.ldc = depth;
    g.a_type = d->y_type, g.b_type = d->x_type, g.c_type = d->w_type;
    g.trans_a = true;
    g.accumulate = d->accumulate;
    break;
  }
  g.workspace = ampc_gemm_workspace_cpu(&g, real64);
  return g;
}

ampc_gemm ampc_conv_product_part(const ampc_conv *d, int64_t depth, bool real64)
{
  ampc_gemm g = ampc_conv_product(d, real64);
  if (conv_is_pointwise(d)) return g;
  switch (d->kind) {
  case AMPC_CONV_FORWARD:
    if (depth < g.k && g.c_type != AMPC_F32) g.c_type = AMPC_F32, g.ldc = g.n;
    g.k = g.lda = depth;
    break;
  case AMPC_CONV_DATA:
    g.n = g.ldc = depth;
    break;
  case AMPC_CONV_WEIGHT:
    g.n = g.ldb = depth;
    break;
  }
  g.workspace = ampc_gemm_workspace_cpu(&g, real64);
  return g;
}

/* Returns the buffer sizes if `depth` of the `all` columns of a group are made at a time. */
static ConvTiling cut_columns(const ampc_conv *d, int64_t depth, int64_t all, bool real64)
{
  ampc_gemm g = ampc_conv_product_part(d, depth, real64);
  ampc_dtype type = d->kind == AMPC_CONV_DATA ? AMPC_F32 : d->x_type;
  int64_t size = ampc_size_of(type, real64);
  int64_t rows = d->n * conv_out_pixels(d);
  ConvTiling t = {.product = true, .depth = depth, .images = d->n};
  t.columns = ampc_round_up(rows * depth * size, 64);
  if (d->kind == AMPC_CONV_FORWARD && g.c_type != d->y_type) t.sum = floats(rows * g.n);
  if (d->kind == AMPC_CONV_DATA && depth < all)
    t.sum = floats(d->n * conv_in_elements(d) / d->groups);
  t.total = t.columns + t.sum + g.workspace;
  return t;
}

/* Returns the buffer sizes for so many images at a time that the sums are near SUM_BYTES. */
static ConvTiling cut_images(const ampc_conv *d, int64_t depth, int64_t all, bool real64)
{
  int64_t sums = cut_columns(d, depth, all, real64).sum;
  ampc_conv some = *d;
  if (d->kind == AMPC_CONV_DATA) some.n = ceil_div(d->n, most(sums / SUM_BYTES, 1));
  return cut_columns(&some, depth, all, real64);
}

/* Divides the columns into parts, unless that takes more memory because many pixels are summed. If
 * nothing is widened for the product, the undivided matrix is faster. */
static ConvTiling product_tiling(const ampc_conv *d, bool real64)
{
  int64_t all = d->c / d->groups * conv_taps(d);
  if (conv_is_pointwise(d)) {
    int64_t workspace = ampc_conv_product(d, real64).workspace;
    return (ConvTiling){
        .product = true, .direct = true, .depth = all, .images = d->n, .total = workspace};
  }
  ConvTiling whole = cut_columns(d, all, all, real64);
  ConvTiling parts = cut_images(d, least(PART_DEPTH, all), all, real64);
  bool f32 = d->x_type == AMPC_F32 && d->w_type == AMPC_F32 && d->y_type == AMPC_F32;
  return parts.total >= whole.total || real64 || (f32 && !d->tf32) ? whole : parts;
}

/* Forward and data: divides the batch into shares, of which `lanes` are computed at once. */
static void cut_batch(const ampc_conv *d, ConvTiling *t)
{
  int64_t work = most(conv_out_pixels(d) * conv_weights(d), 1);
  int64_t image = t->x + t->y; /* bytes */
  t->images = most(ceil_div(d->n, SHARES), ceil_div(MIN_WORK, work));
  if (image > 0) t->images = least(t->images, most(SHARE_BYTES / image, 1));
  t->images = least(t->images, d->n);
  t->shares = ceil_div(d->n, t->images);
  int64_t room = t->slices > 1 ? LANE_BYTES / 4 : LANE_BYTES;
  int64_t fit = image > 0 ? room / (image * t->images) : LANES;
  t->lanes = least(least(t->shares, LANES), most(fit, 2));
}

/* Weight: computes a fixed number of partial sums, more if they are small. A lane processes its
 * images in shares that stay in a core's cache but are large enough to be worth adding all
 * weights. */
static void cut_sums(const ampc_conv *d, ConvTiling *t)
{
  int64_t image = floats(conv_in_elements(d)) + floats(conv_out_elements(d));
  t->lanes = t->packed <= 256 << 10 ? 8 : t->packed <= 4 << 20 ? 4 : 2;
  t->images = most(SHARE_BYTES / image, ceil_div(512, conv_out_pixels(d)));
  t->images = least(t->images, ceil_div(d->n, t->lanes));
  t->shares = ceil_div(d->n, t->images);
  t->lanes = least(t->lanes, t->shares);
  t->sum = t->packed;
  t->part = t->shares > t->lanes ? t->packed : 0;
  t->packed = 0;
}

/* Weight: gives each lane slices of its own, for each of which it processes all images. */
static void cut_slices(const ampc_conv *d, ConvTiling *t)
{
  int64_t image = floats(conv_in_elements(d)) + floats(conv_out_elements(d));
  t->images = most(SHARE_BYTES / image, ceil_div(512, conv_out_pixels(d)));
  t->images = least(t->images, d->n);
  t->shares = ceil_div(d->n, t->images);
  t->y = floats(conv_out_pixels(d) * t->slice);
  t->sum = t->part = t->packed / t->slices;
  t->packed = t->plain = 0;
  t->lanes = 2;
}

/* Whether a tensor is converted: if it is not f32, or if it is an operand of a product in tf32. */
static bool is_wide(const ampc_conv *d, ampc_dtype type, ampc_conv_kind writes)
{
  return type != AMPC_F32 || (d->tf32 && d->kind != writes);
}

/* Sets what every kind needs: operands to widen, buffers of one image, slices of weights. */
static void set_rooms(const ampc_conv *d, ConvTiling *t)
{
  bool weight = d->kind == AMPC_CONV_WEIGHT;
  t->wide_x = is_wide(d, d->x_type, AMPC_CONV_DATA);
  t->wide_w = is_wide(d, d->w_type, AMPC_CONV_WEIGHT);
  t->wide_y = is_wide(d, d->y_type, AMPC_CONV_FORWARD);
  if (d->has_bias && d->bias_type != AMPC_F32) t->bias = floats(d->k);
  if (t->wide_x) t->x = floats(conv_in_elements(d));
  if (t->wide_y) t->y = floats(conv_out_elements(d));
  t->packed = packed_bytes(d, 64);
  bool sliced = t->packed > SLICED_WEIGHTS && d->groups == 1 && d->k % SLICE == 0;
  t->slice = sliced ? SLICE : d->k;
  t->slices = d->k / t->slice;
  if (!sliced) t->packed = most(t->packed, packed_bytes(d, 48)); /* some have blocks of 48 */
  if (t->wide_w || (weight && d->accumulate)) t->plain = floats(conv_weights(d) / t->slices);
}

ConvTiling ampc_conv_tiling(const ampc_conv *d, bool real64)
{
  ConvTiling t = {0};
  if (d->n == 0 || d->k == 0 || d->c == 0) return t;
  if (by_product(d, real64)) return product_tiling(d, real64);
  set_rooms(d, &t);
  if (d->kind == AMPC_CONV_WEIGHT && t.slices > 1) {
    cut_slices(d, &t);
  } else if (d->kind == AMPC_CONV_WEIGHT) {
    cut_sums(d, &t);
  } else {
    cut_batch(d, &t);
  }
  t.x *= t.images, t.y *= t.images;
  t.scratch = SCRATCH;
  t.lane = t.x + t.y + t.sum + t.part + t.scratch;
  t.plain_at = d->kind == AMPC_CONV_WEIGHT ? t.x + t.y + t.sum : 0;
  t.total = t.bias + t.packed + most(t.lanes * t.lane, t.plain_at + t.plain);
  return t;
}

int64_t ampc_conv_workspace_cpu(const ampc_conv *d, bool real64)
{
  if (!d) return 0;
  return ampc_conv_tiling(d, real64).total;
}
