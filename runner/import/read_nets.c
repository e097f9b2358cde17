/* Layers: ops with weights, pools, dropout. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

static const char *const weight_bias[] = {"weight", "bias"};

/* ---- arguments of windows ---- */

/* Appends ", name=value" unless all numbers are `missing`. */
static void add_pair(Reader *r, const char **all, const char *name, const Item *at, uint32_t n,
                     int64_t missing)
{
  bool usual = true;
  for (uint32_t i = 0; i < n; i++) usual = usual && at[i].n == missing;
  if (!usual) *all = text(r, "%s, %s=%s", *all, name, pair_text(r, at, n));
}

/* Reads `n` numbers of an attribute, or takes the usual one. */
static Item *window_list(Reader *r, const char *name, uint32_t n, int64_t missing)
{
  Item *at;
  uint32_t count;
  if (attr_list(r, name, &at, &count) && count != n)
    refuse(r, text(r, "with a wrong number of %s", name));
  for (uint32_t i = 0; i < n; i++) {
    if (count != n) at[i].n = missing;
    if (at[i].n < INT32_MIN || at[i].n > INT32_MAX)
      refuse(r, text(r, "with %s beyond 32 bits", name)), at[i].n = missing;
  }
  return at;
}

typedef struct Window {
  uint32_t axes;
  const Item *kernel;
  Item *stride, *dilation, *pads; /* pads: before each axis, then after each */
  const char *same;               /* auto_pad, of sizes that depend on the arguments; else NULL */
} Window;

/* SAME_UPPER and SAME_LOWER: as many results as ceil(size / stride); the odd element of padding is
 * after or before. */
static void pad_same(Reader *r, const Value *x, Window *w, bool upper)
{
  for (uint32_t i = 0; i < w->axes; i++) {
    int64_t size, s = w->stride[i].n, k = (w->kernel[i].n - 1) * w->dilation[i].n + 1;
    if (s < 1) return refuse(r, "with auto_pad and a stride below 1");
    if (!size_of(x, 2 + i, &size)) {
      w->same = upper ? "true" : "false";
      return;
    }
    int64_t all = ((size + s - 1) / s - 1) * s + k - size;
    if (all < 0) all = 0;
    w->pads[i].n = upper ? all / 2 : all - all / 2;
    w->pads[w->axes + i].n = all - w->pads[i].n;
  }
}

static Window read_window(Reader *r, const Value *x, const Item *kernel, uint32_t axes)
{
  const char *automatic = attr_word(r, "auto_pad", "NOTSET");
  Window w = {.axes = axes,
              .kernel = kernel,
              .stride = window_list(r, "strides", axes, 1),
              .dilation = window_list(r, "dilations", axes, 1),
              .pads = window_list(r, "pads", 2 * axes, 0)};
  if (strncmp(automatic, "SAME", 4) == 0) pad_same(r, x, &w, strcmp(automatic, "SAME_UPPER") == 0);
  attribute(r, "kernel_shape");
  return w;
}

/* Jobs have the same padding on both sides of an axis, in pools at most half of the kernel. Other
 * padding becomes a pad of *x; `value` is its argument. */
static bool pad_before(Reader *r, const char **x, Window *w, bool pool, const char *value)
{
  const char *all = "";
  bool even = !w->same;
  if (w->same)
    *x = text(r, "pad_same(%s, [%s], [%s], [%s], %s%s)", *x, list_text(r, w->kernel, w->axes),
              list_text(r, w->stride, w->axes), list_text(r, w->dilation, w->axes), w->same, value);
  for (uint32_t i = 0; i < w->axes && w->same; i++) w->pads[i].n = w->pads[w->axes + i].n = 0;
  if (w->same) return true;
  for (uint32_t i = 0; i < w->axes; i++) {
    int64_t before = w->pads[i].n, after = w->pads[w->axes + i].n;
    even = even && before == after && before >= 0 && (!pool || 2 * before <= w->kernel[i].n);
  }
  if (even) return false;
  for (uint32_t i = w->axes; i-- > 0;)
    all = text(r, "%s%s%" PRId64 ", %" PRId64, all, *all ? ", " : "", w->pads[i].n,
               w->pads[w->axes + i].n);
  *x = text(r, "pad(%s, [%s]%s)", *x, all, value);
  for (uint32_t i = 0; i < w->axes; i++) w->pads[i].n = 0;
  return true;
}

/* ---- convolutions and products ---- */

bool is_weight(const Value *v)
{
  return v && v->kind == VALUE_weight && !v->turned && v->tensor_kind == TENSOR_trains;
}

uint32_t n_results(Reader *r)
{
  uint32_t n = 1;
  for (uint32_t i = 1; i < r->node->n_output; i++)
    if (result(r, i) && result(r, i)->readers) n = i + 1;
  return n;
}

bool others_needed(Reader *r)
{
  return n_results(r) > 1;
}

bool is_all(const Value *v, double number)
{
  if (!v || v->kind != VALUE_weight) return v && v->kind == VALUE_number && v->number == number;
  return v->tensor_kind != TENSOR_trains && is_filled(v->tensor) &&
         tensor_real(v->tensor, 0) == number;
}

bool is_zero(const Value *v)
{
  return is_all(v, 0);
}

/* ConvTranspose may state the shape of its result, which determines the padding. */
static void pad_to_shape(Reader *r, const Value *x, Window *w, const Item *more)
{
  Item *to;
  uint32_t n;
  bool upper = strcmp(attr_word(r, "auto_pad", "NOTSET"), "SAME_UPPER") == 0,
       listed = attr_list(r, "output_shape", &to, &n);
  bool same = strncmp(attr_word(r, "auto_pad", "NOTSET"), "SAME", 4) == 0;
  if (!listed && !same) return;
  for (uint32_t i = 0; i < w->axes; i++) {
    int64_t size, s = w->stride[i].n;
    if (!size_of(x, 2 + i, &size))
      return refuse(
          r, "with output_shape or auto_pad, of a tensor whose sizes depend on the arguments");
    if (listed && (n < w->axes || to[n - w->axes + i].n < 0 || to[n - w->axes + i].n > MOST_SIZE))
      return refuse(r, "with an output_shape of too few or impossible sizes");
    int64_t all = s * (size - 1) + more[i].n + (w->kernel[i].n - 1) * w->dilation[i].n + 1 -
                  (listed ? to[n - w->axes + i].n : size * s);
    if (all < 0) return refuse(r, "with an output_shape larger than its result without padding");
    w->pads[i].n = upper ? all / 2 : all - all / 2;
    w->pads[w->axes + i].n = all - w->pads[i].n;
  }
}

/* Returns what to cut from the result for another padding on each side: "[:, :, 1:, :-1]". */
static const char *cuts_of(Reader *r, Window *w)
{
  const char *all = "";
  bool even = true;
  for (uint32_t i = 0; i < w->axes; i++) even = even && w->pads[i].n == w->pads[w->axes + i].n;
  if (even) return "";
  for (uint32_t i = 0; i < w->axes; i++) {
    int64_t before = w->pads[i].n, after = w->pads[w->axes + i].n;
    all = text(r, "%s, %s:%s", all, before ? text(r, "%" PRId64, before) : "",
               after ? text(r, "-%" PRId64, after) : "");
    w->pads[i].n = 0;
  }
  return text(r, "[:, :%s]", all);
}

static const char *conv_layer(Reader *r, const Window *at, Value *w, Value *b, bool turned,
                              const char *more)
{
  const int64_t *dim = w->tensor->dims;
  int64_t groups = attr_number(r, "group", 1), ins = turned ? dim[0] : dim[1] * groups,
          outs = turned ? dim[1] * groups : dim[0];
  const char *made =
      text(r, "Conv%s%ud(%" PRId64 ", %" PRId64 ", %s%s%s)", turned ? "Transpose" : "", at->axes,
           ins, outs, pair_text(r, at->kernel, at->axes), more, b ? "" : ", bias=false");
  return layer(r, "conv", made, (Value *const[]){w, b}, weight_bias, 2);
}

void read_conv(Reader *r)
{
  Value *w = in(r, 1), *b = in(r, 2);
  bool turned = r->node->op_type[4] == 'T'; /* ConvTranspose */
  Item kernel[3] = {{0}};
  if (is_zero(b)) b = NULL;
  if (!w || rank_of(w) < 3 || rank_of(w) > 5)
    return refuse(r, "with weights of fewer than 3 or more than 5 axes");
  uint32_t axes = (uint32_t)rank_of(w) - 2;
  for (uint32_t i = 0; i < axes; i++)
    if (!size_of(w, 2 + i, &kernel[i].n))
      return refuse(r, "with weights whose sizes depend on the arguments");
  const char *x = whole_ref(r, in(r, 0)), *more = "", *cuts = "";
  Window at = read_window(r, in(r, 0), kernel, axes);
  Item *extra = window_list(r, "output_padding", axes, 0);
  int64_t groups = attr_number(r, "group", 1);
  if (groups < 1 || groups > INT32_MAX) return refuse(r, text(r, "with group=%" PRId64, groups));
  if (turned) pad_to_shape(r, in(r, 0), &at, extra);
  if (turned)
    cuts = cuts_of(r, &at);
  else
    pad_before(r, &x, &at, false, "");
  add_pair(r, &more, "stride", at.stride, axes, 1);
  add_pair(r, &more, "padding", at.pads, axes, 0);
  if (turned) add_pair(r, &more, "output_padding", extra, axes, 0);
  add_pair(r, &more, "dilation", at.dilation, axes, 1);
  add_pair(r, &more, "groups", &(Item){.n = groups}, 1, 1);
  if (is_weight(w) && (!b || is_weight(b)))
    return give(r, text(r, "%s(%s)%s", conv_layer(r, &at, w, b, turned, more), x, cuts));
  const char *bias = b ? text(r, ", %s", whole_ref(r, b)) : "";
  give(r, text(r, "conv%s%ud(%s, %s%s%s)%s", turned ? "_transpose" : "", axes, x, whole_ref(r, w),
               bias, more, cuts));
}

/* x @ w.T + b: a Linear layer, or if w is no layer's weight by its name, a call of `linear`. */
static void linear(Reader *r, const char *x, Value *w, Value *b)
{
  if (is_zero(b)) b = NULL;
  bool own = names_layer(w) || !strchr(w->name, '.');
  if (own) {
    const char *made = text(r, "Linear(%" PRId64 ", %" PRId64 "%s)", w->tensor->dims[1],
                            w->tensor->dims[0], b ? "" : ", bias=false");
    made = layer(r, "linear", made, (Value *const[]){w, b}, weight_bias, 2);
    return give(r, text(r, "%s(%s)", made, x));
  }
  give(r, text(r, b ? "linear(%s, %s, %s)" : "linear(%s, %s)", x, ref(r, w), b ? ref(r, b) : ""));
}

/* Where a file stores a matrix as [inputs, outputs], a Linear has it transposed. NULL: PyTorch's
 * net has the matrix so, or another node needs it. The path is that of the bias, "fc.bias". */
static Value *turned_copy(Reader *r, const Value *w, const Value *bias)
{
  const OnnxTensor *t = w->tensor;
  if (!is_weight(w) || t->n_dims != 2 || w->readers != 1 || !onnx_is_float(w->type)) return NULL;
  if (in_state_dict(names_get(&r->listed, w->name))) return NULL;
  int64_t rows = t->dims[0], columns = t->dims[1];
  size_t size = t->raw_data.len / (size_t)(rows * columns);
  Value *made = made_tensor(r, t->data_type, t->raw_data.len, (const int64_t[]){columns, rows}, 2);
  for (int64_t i = 0; i < rows * columns; i++)
    memcpy(made->tensor->raw_data.data + (size_t)((i % columns) * rows + i / columns) * size,
           t->raw_data.data + (size_t)i * size, size);
  const char *dot = bias ? strrchr(bias->name, '.') : NULL;
  if (dot && strcmp(dot, ".bias") == 0)
    made->name = text(r, "%.*s.weight", (int)(dot - bias->name), bias->name);
  else if (!is_made_up(r, w->name))
    made->name = text(r, "%s.weight", name_clean(r, w->name, "linear"));
  return made;
}

/* Whether a product with w may add c in a Linear; the outputs are an axis of w. */
static bool is_bias(const Value *c, const Value *w, uint32_t axis)
{
  int64_t n;
  bool matrix = rank_of(w) == 2 && size_of(w, axis, &n);
  if (!c || is_zero(c)) return matrix;
  return matrix && is_weight(c) && c->tensor->n_dims == 1 && c->tensor->dims[0] == n;
}

void read_gemm(Reader *r)
{
  Value *a = in(r, 0), *w = in(r, 1), *c = in(r, 2);
  if (!w) return refuse(r, "without its second input");
  double alpha = attr_real(r, "alpha", 1), beta = attr_real(r, "beta", 1);
  bool t = attr_number(r, "transB", 0) != 0, scaled = alpha != 1 || (c && beta != 1);
  const char *x = text(r, "%s%s", whole_ref(r, a), attr_number(r, "transA", 0) ? ".t()" : "");
  if (!t && !scaled && is_bias(c, w, 1)) {
    Value *own = w->turned ? w->turned : turned_copy(r, w, c);
    if (own) w = own, t = true;
  }
  if (t && !scaled && is_weight(w) && is_bias(c, w, 0)) return linear(r, x, w, c);
  const char *product = text(r, "%s @ %s%s", x, whole_ref(r, w), t ? ".t()" : ""),
             *factor = beta != 1 ? text(r, "%s * ", float_text(r, beta)) : "";
  if (alpha != 1) product = text(r, "%s * (%s)", float_text(r, alpha), product);
  give(r, c && !is_zero(c) ? text(r, "%s + %s%s", product, factor, ref(r, c)) : product);
}

/* Returns the node Add that adds a vector to the product at work, if it is the only reader. */
static const OnnxNode *bias_node(Reader *r, int64_t outputs, Value **bias)
{
  const Value *y = result(r, 0);
  if (!y || y->readers != 1) return NULL;
  for (size_t i = r->index + 1; i < r->nodes->n_node && i < r->index + 4; i++) {
    const OnnxNode *n = r->nodes->node[i];
    if (!n->op_type || strcmp(n->op_type, "Add") != 0 || n->n_input != 2) continue;
    for (size_t k = 0; k < 2; k++) {
      if (!n->input[k] || strcmp(n->input[k], y->name) != 0) continue;
      *bias = value_named(r, n->input[1 - k]);
      bool fits =
          is_weight(*bias) && (*bias)->tensor->n_dims == 1 && (*bias)->tensor->dims[0] == outputs;
      return fits ? n : NULL;
    }
  }
  return NULL;
}

void read_matmul(Reader *r)
{
  Value *a = in(r, 0), *w = in(r, 1), *bias = NULL;
  if (!w) return refuse(r, "without its second input");
  if (read_attention_product(r)) return;
  int64_t outputs = 0;
  const OnnxNode *add = size_of(w, -1, &outputs) ? bias_node(r, outputs, &bias) : NULL;
  Value *own = w->turned ? w->turned : turned_copy(r, w, add ? bias : NULL);
  if (!own) return give(r, text(r, "%s @ %s", whole_ref(r, a), whole_ref(r, w)));
  linear(r, whole_ref(r, a), own, add ? bias : NULL);
  if (add) result(r, 0)->bias_of = add;
}

/* ---- pools and dropout ---- */

/* The arguments after the kernel. */
static const char *pool_arguments(Reader *r, const Window *at, bool max, bool counts)
{
  bool padded = false, same = true;
  const char *more = "";
  for (uint32_t i = 0; i < at->axes; i++) {
    same = same && at->stride[i].n == at->kernel[i].n;
    padded = padded || at->pads[i].n;
    if (!max && at->dilation[i].n != 1) refuse(r, "with dilations");
  }
  if (!same) more = text(r, ", stride=%s", pair_text(r, at->stride, at->axes));
  add_pair(r, &more, "padding", at->pads, at->axes, 0);
  add_pair(r, &more, "dilation", at->dilation, at->axes, 1);
  if (attr_number(r, "ceil_mode", 0)) more = text(r, "%s, ceil_mode=true", more);
  return !max && padded && !counts ? text(r, "%s, count_include_pad=false", more) : more;
}

void read_pool(Reader *r)
{
  bool max = r->node->op_type[0] == 'M', counts = attr_number(r, "count_include_pad", 0) != 0;
  Item *kernel;
  uint32_t axes;
  const char *x = whole_ref(r, in(r, 0));
  if (in(r, 0)->type && !onnx_is_float(in(r, 0)->type)) return refuse(r, "of integers");
  if (!attr_list(r, "kernel_shape", &kernel, &axes) || axes < 1 || axes > 3)
    return refuse(r, "without a kernel_shape of 1 to 3 axes");
  Window at = read_window(r, in(r, 0), kernel, axes);
  bool uneven = pad_before(r, &x, &at, true, max ? ", value=-inf" : "");
  if (uneven && !max && !counts)
    return refuse(
        r, "with count_include_pad=0 and padding that is uneven, negative or over half the kernel");
  if (others_needed(r)) return refuse(r, "with indices as a second result");
  const char *more = pool_arguments(r, &at, max, counts);
  give(r, text(r, "%s_pool%ud(%s, %s%s)", max ? "max" : "avg", axes, x, pair_text(r, kernel, axes),
               more));
}

void read_global_pool(Reader *r)
{
  int64_t rank = rank_of(in(r, 0));
  bool max = r->node->op_type[6] == 'M';
  const char *x = whole_ref(r, in(r, 0));
  if (rank < 3 || rank > 5) return refuse(r, "of a tensor of fewer than 3 or more than 5 axes");
  if (!max) return give(r, text(r, "adaptive_avg_pool%dd(%s, 1)", (int)rank - 2, x));
  give(r, text(r, "%s.amax([%s], keepdim=true)", x,
               rank == 3   ? "2"
               : rank == 4 ? "2, 3"
                           : "2, 3, 4"));
}

/* A net exported for training drops in training. With training_mode=false Dropout does nothing. */
void read_dropout(Reader *r)
{
  Value *p = in(r, 1), *x = in(r, 0), *mode = in(r, 2);
  double ratio = attr_real(r, "ratio", 0.5);
  if (p && !one_number(p, &ratio)) return refuse(r, "with a computed ratio");
  if (others_needed(r)) return refuse(r, "with a mask as a second result");
  if (ratio == 0 || (is_known(mode) && mode->n == 1 && mode->item[0].n == 0))
    return give_value(r, x);
  give(r, text(r, "dropout(%s, %s)", whole_ref(r, x), float_text(r, ratio)));
}

/* ---- attention ---- */

/* Whether scaled_dot_product_attention of jobs is the whole op. */
static bool is_usual_attention(Reader *r)
{
  int64_t n;
  return rank_of(in(r, 0)) == 4 && !(in(r, 3) && attr_number(r, "is_causal", 0)) &&
         attr_real(r, "softcap", 0) == 0 && size_of(in(r, 0), 1, &n) && size_of(in(r, 1), 1, &n);
}

void read_attention(Reader *r)
{
  const Value *q = in(r, 0), *k = in(r, 1), *v = in(r, 2), *mask = in(r, 3);
  int64_t heads = 0, others = 0, width, keys;
  if (!k || !v) return refuse(r, "without a key or value");
  if (others_needed(r)) return refuse(r, "with more than one result");
  bool known = mask && size_of(mask, -1, &width) && size_of(k, -2, &keys);
  if (known && width != keys && width != 1)
    return refuse(r, "with a mask whose last size is neither 1 nor the number of keys");
  if (!is_usual_attention(r)) {
    read_prelude(r);
    return;
  }
  attribute(r, "qk_matmul_output_mode");
  attribute(r, "softmax_precision");
  const char *more = mask ? text(r, ", attn_mask=%s", whole_ref(r, mask)) : "";
  if (attr_number(r, "is_causal", 0)) more = ", is_causal=true";
  if (attribute(r, "scale"))
    more = text(r, "%s, scale=%s", more, float_text(r, attr_real(r, "scale", 1)));
  bool grouped = size_of(q, 1, &heads) && size_of(k, 1, &others) && heads != others;
  if (grouped) more = text(r, "%s, enable_gqa=true", more);
  give(r, text(r, "scaled_dot_product_attention(%s, %s, %s%s)", whole_ref(r, q), whole_ref(r, k),
               whole_ref(r, v), more));
}
