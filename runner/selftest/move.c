/* References of the ops that move elements, and of matrix products. */
#include "selftest.h"
#include <math.h>

static void no_error(const Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) scale[i] = fabs(y->at[i]);
}

static void strides_of(const Tensor *x, int64_t *stride)
{
  int64_t s = 1;
  for (uint32_t d = x->rank; d-- > 0; s *= x->dim[d]) stride[d] = s;
}

void shape_given_of(const Case *t, Tensor *y)
{
  y->rank = (uint32_t)t->shape[0];
  for (uint32_t d = 0; d < y->rank; d++) y->dim[d] = t->shape[d + 1];
}

void reference_same_order(const Case *t, Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = t->in[0].at[i];
  no_error(y, scale);
}

void reference_expand(const Case *t, Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = t->in[0].at[broadcast_index(&t->in[0], y, i)];
  no_error(y, scale);
}

static uint32_t axis_attr(const Case *t, const char *name)
{
  int axis = (int)case_attr(t, name);
  return (uint32_t)(axis < 0 ? axis + (int)t->in[0].rank : axis);
}

void shape_transpose_of(const Case *t, Tensor *y)
{
  uint32_t a = axis_attr(t, "dim0"), b = axis_attr(t, "dim1");
  shape_of_first(t, y);
  y->dim[a] = t->in[0].dim[b];
  y->dim[b] = t->in[0].dim[a];
}

void reference_transpose(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  uint32_t a = axis_attr(t, "dim0"), b = axis_attr(t, "dim1");
  int64_t from[MAX_RANK], to[MAX_RANK];
  strides_of(x, from);
  strides_of(y, to);
  for (int64_t i = 0; i < x->n; i++) {
    int64_t j = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
      uint32_t e = d == a ? b : d == b ? a : d;
      j += i / from[d] % x->dim[d] * to[e];
    }
    y->at[j] = x->at[i];
  }
  no_error(y, scale);
}

void shape_slice_of(const Case *t, Tensor *y)
{
  int64_t start = (int64_t)case_attr(t, "start"), stop = (int64_t)case_attr(t, "stop");
  int64_t count = 0;
  for (int64_t i = start; i < stop; i += (int64_t)case_attr(t, "step")) count++;
  shape_of_first(t, y);
  y->dim[case_axis(t)] = count;
}

void shape_slice_backward_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  y->dim[case_axis(t)] = (int64_t)case_attr(t, "size");
}

/* Element i of the shorter tensor stands at the returned index of the longer one. */
static int64_t sliced_index(const Case *t, const Tensor *part, const Tensor *whole, int64_t i)
{
  int64_t in_part[MAX_RANK], in_whole[MAX_RANK], index = 0;
  strides_of(part, in_part);
  strides_of(whole, in_whole);
  for (uint32_t d = 0; d < part->rank; d++) {
    int64_t k = i / in_part[d] % part->dim[d];
    if ((int)d == case_axis(t)) {
      k = (int64_t)case_attr(t, "start") + k * (int64_t)case_attr(t, "step");
    }
    index += k * in_whole[d];
  }
  return index;
}

void reference_slice(const Case *t, Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = t->in[0].at[sliced_index(t, y, &t->in[0], i)];
  no_error(y, scale);
}

void reference_slice_backward(const Case *t, Tensor *y, double *scale)
{
  const Tensor *dy = &t->in[0];
  for (int64_t i = 0; i < y->n; i++) y->at[i] = 0;
  for (int64_t i = 0; i < dy->n; i++) y->at[sliced_index(t, dy, y, i)] = dy->at[i];
  no_error(y, scale);
}

void shape_cat_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  for (uint32_t k = 1; k < t->n_in; k++) y->dim[case_axis(t)] += t->in[k].dim[case_axis(t)];
}

void reference_cat(const Case *t, Tensor *y, double *scale)
{
  int axis = case_axis(t);
  int64_t stride[MAX_RANK], before = 0;
  strides_of(y, stride);
  for (uint32_t k = 0; k < t->n_in; before += t->in[k++].dim[axis]) {
    const Tensor *x = &t->in[k];
    int64_t own[MAX_RANK];
    strides_of(x, own);
    for (int64_t i = 0; i < x->n; i++) {
      int64_t j = before * stride[axis];
      for (uint32_t d = 0; d < x->rank; d++) j += i / own[d] % x->dim[d] * stride[d];
      y->at[j] = x->at[i];
    }
  }
  no_error(y, scale);
}

/* ---- matrix products ---------------------------------------------------------------------------
 */

typedef struct Product {
  int64_t m, n, k;
  bool trans_a, trans_b;
} Product;

static Product product_of(const Case *t)
{
  const Tensor *a = &t->in[0], *b = &t->in[1];
  Product p = {.trans_b = t->test->op == OP_linear};
  if (t->test->op == OP_gemm) {
    p.trans_a = case_attr(t, "trans_a") != 0;
    p.trans_b = case_attr(t, "trans_b") != 0;
  }
  /* a vector on the left is a row, on the right a column */
  int64_t a0 = a->rank > 1 ? a->dim[a->rank - 2] : 1, a1 = a->dim[a->rank - 1];
  int64_t b0 = b->dim[b->rank > 1 ? b->rank - 2 : 0], b1 = b->rank > 1 ? b->dim[b->rank - 1] : 1;
  p.m = p.trans_a ? a1 : a0;
  p.k = p.trans_a ? a0 : a1;
  p.n = p.trans_b ? b0 : b1;
  return p;
}

static uint32_t leading_rank(const Tensor *x)
{
  return x->rank > 2 ? x->rank - 2 : 0;
}

/* Leading axes broadcast. */
static void leading_axes(const Case *t, Tensor *y)
{
  const Tensor *a = &t->in[0], *b = &t->in[1];
  uint32_t na = leading_rank(a), nb = leading_rank(b);
  y->rank = na > nb ? na : nb;
  for (uint32_t k = 1; k <= y->rank; k++) {
    int64_t u = k <= na ? a->dim[na - k] : 1, v = k <= nb ? b->dim[nb - k] : 1;
    y->dim[y->rank - k] = u == 1 ? v : u;
  }
}

void shape_product_of(const Case *t, Tensor *y)
{
  Product p = product_of(t);
  if (t->test->op == OP_linear) {
    shape_of_first(t, y);
    y->dim[y->rank - 1] = p.n;
    return;
  }
  leading_axes(t, y);
  if (t->in[0].rank > 1) y->dim[y->rank++] = p.m;
  if (t->in[1].rank > 1) y->dim[y->rank++] = p.n;
}

/* Where matrix number `matrix` of the result's n_lead leading axes begins in x. */
static int64_t matrix_start(const Tensor *x, const Tensor *y, uint32_t n_lead, int64_t matrix)
{
  int64_t index = 0, stride = 1;
  for (uint32_t k = 1; k <= leading_rank(x); k++) {
    int64_t size = y->dim[n_lead - k], own = x->dim[leading_rank(x) - k];
    if (own != 1) index += matrix % size * stride;
    stride *= own;
    matrix /= size;
  }
  return index * (x->rank > 1 ? x->dim[x->rank - 2] : 1) * x->dim[x->rank - 1];
}

void reference_product(const Case *t, Tensor *y, double *scale)
{
  const Tensor *a = &t->in[0], *b = &t->in[1];
  Product p = product_of(t);
  bool tf32 = t->tf32;
  uint32_t lead = y->rank - (a->rank > 1) - (b->rank > 1);
  for (int64_t i = 0; i < y->n; i++) {
    int64_t row = i / p.n % p.m, column = i % p.n, matrix = i / (p.n * p.m);
    const double *x = a->at + matrix_start(a, y, lead, matrix);
    const double *w = b->at + matrix_start(b, y, lead, matrix);
    double bias = t->n_in > 2 && t->in[2].present ? t->in[2].at[column] : 0;
    y->at[i] = bias;
    scale[i] = fabs(bias);
    for (int64_t k = 0; k < p.k; k++) {
      double u = x[p.trans_a ? k * p.m + row : row * p.k + k];
      double v = w[p.trans_b ? column * p.k + k : k * p.n + column];
      if (tf32) u = number_round_bits(u, 11);
      if (tf32) v = number_round_bits(v, 11);
      y->at[i] += u * v;
      scale[i] += fabs(u * v);
    }
  }
}

void shape_permute_of(const Case *t, Tensor *y)
{
  y->rank = t->in[0].rank;
  for (uint32_t d = 0; d < y->rank; d++) y->dim[d] = t->in[0].dim[t->attr[d].i];
}

void reference_permute(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  for (int64_t i = 0; i < y->n; i++) {
    int64_t at[MAX_RANK] = {0}, rest = i, from = 0;
    for (uint32_t d = y->rank; d-- > 0; rest /= y->dim[d]) at[t->attr[d].i] = rest % y->dim[d];
    for (uint32_t d = 0; d < x->rank; d++) from = from * x->dim[d] + at[d];
    y->at[i] = x->at[from];
    scale[i] = fabs(y->at[i]);
  }
}

void shape_pad_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  y->dim[case_axis(t)] += (int64_t)(case_attr(t, "before") + case_attr(t, "after"));
}

void reference_pad(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  int axis = case_axis(t);
  int64_t inner = 1, before = (int64_t)case_attr(t, "before"), size = x->dim[axis];
  for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) inner *= x->dim[d];
  for (int64_t i = 0; i < y->n; i++) {
    int64_t at = i / inner % y->dim[axis] - before, outer = i / inner / y->dim[axis];
    bool inside = at >= 0 && at < size;
    y->at[i] = inside ? x->at[(outer * size + at) * inner + i % inner] : case_attr(t, "value");
    scale[i] = fabs(y->at[i]);
  }
}

void reference_flip(const Case *t, Tensor *y, double *scale)
{
  int64_t stride[MAX_RANK], axis = case_axis(t);
  strides_of(y, stride);
  for (int64_t i = 0; i < y->n; i++) {
    int64_t at = i / stride[axis] % y->dim[axis];
    y->at[i + (y->dim[axis] - 1 - 2 * at) * stride[axis]] = t->in[0].at[i];
  }
  no_error(y, scale);
}

void shape_shifted_of(const Case *t, Tensor *y)
{
  shape_of_first(t, y);
  y->dim[y->rank - 2] = (int64_t)case_attr(t, "h");
  y->dim[y->rank - 1] = (int64_t)case_attr(t, "w");
}

/* Each pixel goes where its sample's offset moves it, if that is inside. */
void reference_shifted(const Case *t, Tensor *y, double *scale)
{
  const Tensor *x = &t->in[0];
  int64_t h = x->dim[x->rank - 2], w = x->dim[x->rank - 1];
  int64_t oh = y->dim[y->rank - 2], ow = y->dim[y->rank - 1];
  for (int64_t i = 0; i < y->n; i++) y->at[i] = 0;
  for (int64_t i = 0; i < x->n; i++) {
    const double *offset = t->in[1].at + i / (x->n / x->dim[0]) * 2;
    int64_t row = i / w % h - (int64_t)offset[0], column = i % w - (int64_t)offset[1];
    bool inside = row >= 0 && row < oh && column >= 0 && column < ow;
    if (inside) y->at[(i / (h * w) * oh + row) * ow + column] = x->at[i];
  }
  no_error(y, scale);
}
