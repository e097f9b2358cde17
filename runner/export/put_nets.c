/* Matrix products, attention, convolutions, pools, batch norm. */
#include <string.h>
#include "compiler/graph/ops.h"
#include "put_ops.h"

/* ---- matrix products ---- */

static const char *swapped(Export *e, const char *x, uint32_t rank)
{
  int64_t axes[MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) axes[i] = i;
  axes[rank - 1] = rank - 2;
  axes[rank - 2] = rank - 1;
  return build_node(e->b, "Transpose", FROM(x), WITH(INTS("perm", axes, rank)));
}

static const char *operand(Export *e, const Node *n, uint32_t i)
{
  return in_as(e, n, i, n->dtype);
}

const char *put_gemm(Export *e, const Node *n)
{
  const char *a = operand(e, n, 0), *b = operand(e, n, 1);
  if (attr_int(n, "trans_a")) a = swapped(e, a, in_node(e, n, 0)->rank);
  if (attr_int(n, "trans_b")) b = swapped(e, b, in_node(e, n, 1)->rank);
  return build_node(e->b, "MatMul", FROM(a, b), NO_ATTRS);
}

/* Gemm takes only matrices. */
const char *put_linear(Export *e, const Node *n)
{
  const char *x = operand(e, n, 0), *w = operand(e, n, 1),
             *bias = in_node(e, n, 2) ? operand(e, n, 2) : NULL;
  if (n->rank == 2) return build_node(e->b, "Gemm", FROM(x, w, bias), WITH(INT("transB", 1)));
  x = build_node(e->b, "MatMul", FROM(x, swapped(e, w, 2)), NO_ATTRS);
  return bias ? build_node(e->b, "Add", FROM(x, bias), NO_ATTRS) : x;
}

/* ---- attention ---- */

/* Repeats each head of keys or values x, of input i, for the heads of queries that share it: MatMul
 * has no groups. Returns NULL after a message. */
static const char *repeated_heads(Export *e, const Node *n, uint32_t i, const char *x)
{
  const Node *own = in_node(e, n, i);
  Sized all = sized_dim(e, in_node(e, n, 0), 2), shared = sized_dim(e, own, 2);
  Sized one = sized(1), group = one, same = sized(0), width = sized_dim(e, own, 3);
  int64_t axis = 3;
  for (uint32_t v = 0; v < e->n_variants; v++) group.at[v] = all.at[v] / shared.at[v];
  if (group.at[0] == 1 && !sized_varies(e, group)) return x;
  const char *each = sized_list(e, n, (const Sized[]){one, one, one, group, one}, 5);
  const char *shape = sized_list(e, n, (const Sized[]){same, same, all, width}, 4);
  if (!each || !shape) return NULL;
  x = build_node(e->b, "Unsqueeze", FROM(x, build_ints(e->b, &axis, 1)), NO_ATTRS);
  x = build_node(e->b, "Expand", FROM(x, each), NO_ATTRS);
  return build_node(e->b, "Reshape", FROM(x, shape), NO_ATTRS);
}

/* [n, l, heads, d] becomes [n, heads, l, d], or [n, heads, d, l]; in f32, as scores are not
 * rounded. */
static const char *heads(Export *e, const Node *n, uint32_t i, bool last)
{
  const char *own = i ? state_rows(e, n, i, 1, AMPC_F32) : in_as(e, n, i, AMPC_F32);
  const char *x = repeated_heads(e, n, i, own);
  if (!x) return NULL;
  const int64_t *axes = last ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3};
  return build_node(e->b, "Transpose", FROM(x), WITH(INTS("perm", axes, 4)));
}

/* bool[l, s]: whether key s is at most query l */
static const char *causal_mask(Export *e, const Node *n)
{
  const Sized size[] = {sized_dim(e, in_node(e, n, 0), 1), sized_dim(e, in_node(e, n, 1), 1)};
  const char *shape = sized_list(e, n, size, 2);
  if (!shape) return NULL;
  const char *ones =
      build_node(e->b, "Expand", FROM(build_number(e->b, AMPC_F32, 1), shape), NO_ATTRS);
  const char *lower = build_node(e->b, "Trilu", FROM(ones), WITH(INT("upper", 0)));
  return put_cast(e, lower, AMPC_F32, AMPC_BOOL);
}

static const char *masked(Export *e, const char *mask, const char *scores)
{
  return build_node(e->b, "Where", FROM(mask, scores, build_number(e->b, AMPC_F32, -INFINITY)),
                    NO_ATTRS);
}

/* The result of a query that attends to no key is 0, and Softmax's is NaN. */
const char *put_attention(Export *e, const Node *n)
{
  OnnxBuild *b = e->b;
  const Node *mask = in_node(e, n, 3);
  if (attr_int(n, "sums")) return cannot(e, n, "its sums are needed only for training");
  if (attr_float(n, "p") != 0) return cannot(e, n, "it has dropout");
  const char *q = heads(e, n, 0, false), *k = heads(e, n, 1, true);
  if (!k) return NULL;
  const char *x = build_node(b, "MatMul", FROM(q, k), NO_ATTRS);
  x = build_node(b, "Mul", FROM(x, build_number(b, AMPC_F32, attr_float(n, "scale"))), NO_ATTRS);
  if (attr_int(n, "causal")) {
    const char *lower = state_mask(e, n);
    if (!lower && !(lower = causal_mask(e, n))) return NULL;
    x = masked(e, lower, x);
  }
  DType type = mask && mask->dtype == AMPC_BOOL ? AMPC_BOOL : AMPC_F32;
  const char *given = !mask               ? NULL
                      : mask->dim[3] == 1 ? in_as(e, n, 3, type)
                                          : state_rows(e, n, 3, 3, type);
  if (mask)
    x = type == AMPC_BOOL ? masked(e, given, x) : build_node(b, "Add", FROM(x, given), NO_ATTRS);
  x = build_node(b, "Softmax", FROM(x), WITH(INT("axis", -1)));
  if (mask)
    x = build_node(b, "Where",
                   FROM(build_node(b, "IsNaN", FROM(x), NO_ATTRS), build_number(b, AMPC_F32, 0), x),
                   NO_ATTRS);
  const char *v = heads(e, n, 2, false);
  if (!v) return NULL;
  x = build_node(b, "MatMul", FROM(x, v), NO_ATTRS);
  x = build_node(b, "Transpose", FROM(x), WITH(INTS("perm", ((const int64_t[]){0, 2, 1, 3}), 4)));
  return put_cast(e, x, AMPC_F32, n->dtype);
}

/* ---- convolutions ---- */

/* The attributes stride0, stride1, ..: one of each axis. */
static void numbers(const Node *n, const char *what, uint32_t count, int64_t *out)
{
  for (uint32_t i = 0; i < count; i++) {
    char name[24];
    snprintf(name, sizeof name, "%s%u", what, i);
    out[i] = attr_int(n, name);
  }
}

/* Padding before all axes, then behind them. */
static void both_sides(const Node *n, uint32_t count, int64_t *out)
{
  numbers(n, "pad", count, out);
  for (uint32_t i = 0; i < count; i++) out[count + i] = out[i];
}

const char *put_conv(Export *e, const Node *n)
{
  uint32_t axes = n->rank - 2u;
  int64_t stride[AMPC_MAX_SPATIAL], dilation[AMPC_MAX_SPATIAL], pads[2 * AMPC_MAX_SPATIAL];
  numbers(n, "stride", axes, stride);
  numbers(n, "dil", axes, dilation);
  both_sides(n, axes, pads);
  const char *bias = in_node(e, n, 2) ? operand(e, n, 2) : NULL;
  return build_node(e->b, "Conv", FROM(operand(e, n, 0), operand(e, n, 1), bias),
                    WITH(INTS("strides", stride, axes), INTS("dilations", dilation, axes),
                         INTS("pads", pads, 2 * axes), INT("group", attr_int(n, "groups"))));
}

/* A transposed convolution: the gradient of a convolution by its image. The op states the size of
 * the result; ONNX takes output_padding instead. */
const char *put_conv_data(Export *e, const Node *n)
{
  static const char *const size_names[] = {"d", "h", "w"};
  uint32_t axes = n->rank - 2u;
  const Node *x = in_node(e, n, 0), *w = in_node(e, n, 1);
  int64_t stride[AMPC_MAX_SPATIAL], dilation[AMPC_MAX_SPATIAL], pads[2 * AMPC_MAX_SPATIAL];
  int64_t more[AMPC_MAX_SPATIAL];
  numbers(n, "stride", axes, stride);
  numbers(n, "dil", axes, dilation);
  both_sides(n, axes, pads);
  for (uint32_t i = 0; i < axes; i++) {
    Sized size = sized_attr(e, n, size_names[3 - axes + i]), from = sized_dim(e, x, i + 2),
          rest = sized(0);
    for (uint32_t v = 0; v < e->n_variants; v++)
      rest.at[v] = size.at[v] - ((from.at[v] - 1) * stride[i] - 2 * pads[i] +
                                 dilation[i] * (w->dim[i + 2] - 1) + 1);
    if (sized_varies(e, rest)) return cannot(e, n, "its padding depends on a size");
    if (rest.at[0] < 0 || (rest.at[0] >= stride[i] && rest.at[0] >= dilation[i]))
      return cannot(e, n, "no `output_padding` gives its size");
    more[i] = rest.at[0];
  }
  return build_node(e->b, "ConvTranspose", FROM(operand(e, n, 0), operand(e, n, 1)),
                    WITH(INTS("strides", stride, axes), INTS("dilations", dilation, axes),
                         INTS("pads", pads, 2 * axes), INTS("output_padding", more, axes),
                         INT("group", attr_int(n, "groups"))));
}

/* ---- batch norm ---- */

/* If the node is 1 / sqrt(variance + eps), returns the variance. */
static const Node *variance_below(const Export *e, const Node *rstd, double *eps)
{
  const Node *sum = rstd->op == OP_rsqrt ? in_node(e, rstd, 0) : NULL;
  const Node *number = sum && sum->op == OP_add ? in_node(e, sum, 1) : NULL;
  if (!number || number->op != OP_number) return NULL;
  *eps = attr_float(number, "value");
  return in_node(e, sum, 0);
}

static const char *channel_vector(Export *e, const Node *n, uint32_t i, double missing)
{
  if (in_node(e, n, i)) return in_as(e, n, i, AMPC_F32);
  const char *size = build_int(e->b, in_node(e, n, 1)->dim[0]);
  return build_node(e->b, "Expand", FROM(build_number(e->b, AMPC_F32, missing), size), NO_ATTRS);
}

/* A vector of the channels as [1, c, 1, ..], in f32 */
static const char *along_channels(Export *e, const Node *n, const char *x)
{
  int64_t shape[MAX_RANK] = {1, -1, 1, 1, 1, 1};
  return build_node(e->b, "Reshape", FROM(x, build_ints(e->b, shape, n->rank)), NO_ATTRS);
}

/* For a variance that is not a weight. ONNX's op takes the variance; input 2 is
 * 1 / sqrt(variance + eps). */
static const char *put_norm(Export *e, const Node *n)
{
  static const char *const ops[] = {"Sub", "Mul", "Mul", "Add"};
  const char *x = in_as(e, n, 0, AMPC_F32);
  for (uint32_t i = 1; i < n->n_in; i++) {
    if (!in_node(e, n, i)) continue;
    const char *each = along_channels(e, n, channel_vector(e, n, i, 0));
    x = build_node(e->b, ops[i - 1], FROM(x, each), NO_ATTRS);
  }
  return put_cast(e, x, AMPC_F32, n->dtype);
}

const char *put_batch_norm(Export *e, const Node *n)
{
  double eps = 0;
  const Node *variance = variance_below(e, in_node(e, n, 2), &eps);
  if (attr_int(n, "channel") != 1) return cannot(e, n, "its channels are not along axis 1");
  if (!variance || variance->op != OP_param) return put_norm(e, n);
  const char *x = in_value(e, n, 0), *mean = channel_vector(e, n, 1, 0);
  const char *var = channel_vector(e, in_node(e, in_node(e, n, 2), 0), 0, 0);
  return build_node(e->b, "BatchNormalization",
                    FROM(x, channel_vector(e, n, 3, 1), channel_vector(e, n, 4, 0), mean, var),
                    WITH(REAL("epsilon", eps)));
}

/* Mean or variance of each channel. Input i holds partial sums, which the model does not have; so
 * the statistic is computed from their input x. */
const char *put_statistic(Export *e, const Node *n)
{
  uint32_t i = n->op == OP_channel_var;
  const Node *parts = in_node(e, n, i), *x = in_node(e, parts, 0);
  int64_t axes[MAX_RANK];
  uint32_t count = 0;
  for (uint32_t axis = 0; axis < x->rank; axis++)
    if (axis != attr_int(parts, "channel")) axes[count++] = axis;
  const char *value = put_cast(e, in_value(e, parts, 0), x->dtype, AMPC_F32);
  const char *list = build_ints(e->b, axes, count);
  if (i) {
    const char *mean = build_node(e->b, "ReduceMean", FROM(value, list), NO_ATTRS);
    value = build_node(e->b, "Sub", FROM(value, mean), NO_ATTRS);
    value = build_node(e->b, "Mul", FROM(value, value), NO_ATTRS);
  }
  return build_node(e->b, "ReduceMean", FROM(value, list), WITH(INT("keepdims", 0)));
}

/* ---- pools ---- */

/* Whether ONNX computes the same sizes with this ceil_mode. With it, ONNX also counts a window that
 * begins in the padding behind the image; PyTorch and jobs do not. */
static bool pools_to(const Export *e, const Node *n, const int64_t *reach, const int64_t *stride,
                     const int64_t *pad, bool ceil)
{
  for (uint32_t i = 0; i < 2; i++) {
    Sized from = sized_dim(e, in_node(e, n, 0), i + 2), to = sized_dim(e, n, i + 2);
    for (uint32_t v = 0; v < e->n_variants; v++) {
      int64_t room = from.at[v] + 2 * pad[i] - reach[i] + (ceil ? stride[i] - 1 : 0);
      if (room / stride[i] + 1 != to.at[v]) return false;
    }
  }
  return true;
}

static const char *pool(Export *e, const Node *n, const char *op, const int64_t *dilation,
                        OnnxAttr more)
{
  int64_t kernel[2], stride[2], pads[4], reach[2];
  numbers(n, "kernel", 2, kernel);
  numbers(n, "stride", 2, stride);
  both_sides(n, 2, pads);
  for (uint32_t i = 0; i < 2; i++) reach[i] = dilation[i] * (kernel[i] - 1) + 1;
  bool ceil = !pools_to(e, n, reach, stride, pads, false);
  if (!ampc_is_float(n->dtype)) return cannot(e, n, "it pools integers");
  if (ceil && !pools_to(e, n, reach, stride, pads, true))
    return cannot(e, n, "ONNX's `ceil_mode` gives other sizes");
  return build_node(e->b, op, FROM(in_value(e, n, 0)),
                    WITH(INTS("kernel_shape", kernel, 2), INTS("strides", stride, 2),
                         INTS("pads", pads, 4), INT("ceil_mode", ceil), more));
}

const char *put_max_pool(Export *e, const Node *n)
{
  int64_t dilation[2];
  numbers(n, "dil", 2, dilation);
  if (attr_int(n, "argmax")) return cannot(e, n, "it returns the indices of windows");
  return pool(e, n, "MaxPool", dilation, (OnnxAttr)INTS("dilations", dilation, 2));
}

const char *put_avg_pool(Export *e, const Node *n)
{
  double divisor = (double)attr_int(n, "divisor");
  if (divisor != 0 && attr_int(n, "ceil"))
    return cannot(e, n, "it has `divisor_override` and `ceil_mode`");
  const char *x =
      pool(e, n, "AveragePool", (const int64_t[]){1, 1},
           (OnnxAttr)INT("count_include_pad", divisor != 0 || attr_int(n, "count_include_pad")));
  if (!x || divisor == 0) return x;
  double size = (double)(attr_int(n, "kernel0") * attr_int(n, "kernel1"));
  return build_node(e->b, "Mul", FROM(x, build_number(e->b, n->dtype, size / divisor)), NO_ATTRS);
}

/* Windows of equal size, or one for the whole image. */
const char *put_adaptive_pool(Export *e, const Node *n)
{
  const Node *x = in_node(e, n, 0);
  const Sized h = sized_dim(e, n, 2), w = sized_dim(e, n, 3);
  if (h.at[0] == 1 && w.at[0] == 1 && !sized_varies(e, h) && !sized_varies(e, w))
    return build_node(e->b, "GlobalAveragePool", FROM(in_value(e, n, 0)), NO_ATTRS);
  int64_t kernel[2];
  for (uint32_t i = 0; i < 2; i++) {
    Sized from = sized_dim(e, x, i + 2), to = i ? w : h;
    if (sized_varies(e, from) || sized_varies(e, to) || from.at[0] % to.at[0])
      return cannot(e, n, "it needs windows of several sizes");
    kernel[i] = from.at[0] / to.at[0];
  }
  return build_node(e->b, "AveragePool", FROM(in_value(e, n, 0)),
                    WITH(INTS("kernel_shape", kernel, 2), INTS("strides", kernel, 2)));
}

/* ---- sizes of images ---- */

/* scales: NULL if they follow from the sizes */
static const char *resize(Export *e, const Node *n, const char *scales, const char *mode,
                          const char *where, const char *nearest)
{
  Sized q[MAX_RANK];
  for (uint32_t i = 0; i < n->rank; i++) q[i] = sized_dim(e, n, i);
  const char *sizes = scales ? NULL : sized_list(e, n, q, n->rank); /* NULL ends the inputs */
  if (!scales && !sizes) return NULL;
  return build_node(e->b, "Resize", FROM(in_value(e, n, 0), "", scales ? scales : "", sizes),
                    WITH(WORD("mode", mode), WORD("coordinate_transformation_mode", where),
                         WORD("nearest_mode", nearest), REAL("cubic_coeff_a", -0.75)));
}

const char *put_nearest(Export *e, const Node *n)
{
  return resize(e, n, NULL, "nearest", "asymmetric", "floor");
}

/* Whether the scales are the ratios of the sizes, or with corners, of the sizes minus 1 */
static bool scales_follow(const Export *e, const Node *n, bool corners)
{
  for (uint32_t i = 0; i < 2; i++) {
    double scale = attr_float(n, i ? "scale1" : "scale0");
    Sized from = sized_dim(e, in_node(e, n, 0), i + 2), to = sized_dim(e, n, i + 2);
    for (uint32_t v = 0; v < e->n_variants; v++) {
      double x = (double)(from.at[v] - corners), y = (double)(to.at[v] - corners);
      if (y > 0 && fabs(scale * y - x) > 1e-9 * x) return false;
    }
  }
  return true;
}

/* Whether a factor gives the sizes of an axis, computed in f32 and in f64 */
static bool scale_fits(const Export *e, const Node *n, uint32_t axis, float scale)
{
  Sized from = sized_dim(e, in_node(e, n, 0), axis), to = sized_dim(e, n, axis);
  for (uint32_t v = 0; v < e->n_variants; v++) {
    double x = (double)from.at[v], y = (double)to.at[v];
    if (floor(x * scale) != y || floorf((float)x * scale) != (float)y) return false;
  }
  return true;
}

/* The job's factors as f32[4], each rounded up by one ulp if needed; NULL: they do not give these
 * sizes */
static const char *given_scales(Export *e, const Node *n)
{
  float *scale = arena_array(e->arena, float, 4);
  for (uint32_t i = 0; i < 4; i++) {
    scale[i] = i < 2 ? 1 : (float)(1 / attr_float(n, i == 3 ? "scale1" : "scale0"));
    if (!scale_fits(e, n, i, scale[i])) scale[i] = nextafterf(scale[i], INFINITY);
    if (!scale_fits(e, n, i, scale[i])) return NULL;
  }
  const char *name = build_name(e->b, "Scales");
  build_tensor(e->b, name, AMPC_F32, &(int64_t){4}, 1, scale, 4 * sizeof *scale);
  return name;
}

const char *put_resample(Export *e, const Node *n)
{
  static const char *const modes[] = {NULL, "nearest", "linear", NULL, "cubic"};
  bool centred = attr_int(n, "centred"), whole = scales_follow(e, n, false);
  int64_t taps[2];
  numbers(n, "taps", 2, taps);
  bool corners = !whole && !centred && scales_follow(e, n, true);
  const char *where = centred ? "half_pixel" : corners ? "align_corners" : "asymmetric";
  const char *scales = whole || corners ? NULL : given_scales(e, n);
  if (!whole && !corners && !scales)
    return cannot(e, n, "its scale does not follow from its sizes");
  for (uint32_t i = 0; i < 2; i++) { /* every mode copies an axis that keeps its size */
    Sized from = sized_dim(e, in_node(e, n, 0), i + 2), to = sized_dim(e, n, i + 2);
    if (!scales && memcmp(&from, &to, sizeof to) == 0) taps[i] = taps[1 - i];
  }
  if (taps[0] != taps[1]) return cannot(e, n, "its two axes have different modes");
  return resize(e, n, scales, modes[taps[0]], where, centred ? "round_prefer_ceil" : "floor");
}
