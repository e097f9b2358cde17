/* What references of several families share; reference.h says what each function is for. */
#include "reference.h"
#include "entry.h"
#include <math.h>

void scale_as_size(const Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) scale[i] = fabs(y->at[i]);
}

void clear_sums(Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = scale[i] = 0;
}

void strides_of(const Tensor *x, int64_t *stride)
{
  int64_t s = 1;
  for (uint32_t d = x->rank; d-- > 0; s *= x->dim[d]) stride[d] = s;
}

int64_t broadcast_index(const Tensor *from, const Tensor *to, int64_t i)
{
  int64_t index = 0, stride = 1;
  for (uint32_t k = 0; k < from->rank; k++) {
    int64_t size = to->dim[to->rank - 1 - k], own = from->dim[from->rank - 1 - k];
    if (own != 1) index += i % size * stride;
    stride *= own;
    i /= size;
  }
  return index;
}

/* ---- shapes ---- */

void shape_of_first(const Case *t, Tensor *y)
{
  y->rank = t->in[0].rank;
  for (uint32_t d = 0; d < y->rank; d++) y->dim[d] = t->in[0].dim[d];
}

void shape_given_of(const Case *t, Tensor *y)
{
  y->rank = (uint32_t)t->shape[0];
  for (uint32_t d = 0; d < y->rank; d++) y->dim[d] = t->shape[d + 1];
}

void shape_broadcast_of(const Case *t, Tensor *y)
{
  y->rank = 0;
  for (uint32_t i = 0; i < t->n_in; i++) {
    if (t->in[i].present && t->in[i].rank > y->rank) y->rank = t->in[i].rank;
  }
  for (uint32_t d = 0; d < y->rank; d++) y->dim[d] = 1;
  for (uint32_t i = 0; i < t->n_in; i++) {
    const Tensor *x = &t->in[i];
    for (uint32_t d = 0; d < x->rank; d++) {
      int64_t *to = &y->dim[y->rank - x->rank + d];
      if (x->dim[d] != 1) *to = x->dim[d];
    }
  }
}

void drop_axes(const Case *t, Tensor *y, bool (*gone)(const Case *, uint32_t), bool keep)
{
  const Tensor *x = &t->in[0];
  y->rank = 0;
  for (uint32_t d = 0; d < x->rank; d++) {
    if (!gone(t, d))
      y->dim[y->rank++] = x->dim[d];
    else if (keep)
      y->dim[y->rank++] = 1;
  }
}

static bool is_axis(const Case *t, uint32_t d)
{
  return d == (uint32_t)case_axis(t);
}

void shape_row_of(const Case *t, Tensor *y)
{
  drop_axes(t, y, is_axis, case_attr(t, "keepdim") != 0);
}

/* ---- maps ---- */

/* One element at a time: the op's own function, its inputs broadcast. */
void reference_map(const Case *t, Tensor *y, double *scale)
{
  Element *f = t->test->element;
  double a[MAX_ATTR], x[TEST_MAX_IN];
  const OpSignature *s = &op_row(t->test->op)->signature;
  for (uint32_t k = 0; k < s->n_attrs; k++) a[k] = case_attr(t, s->attr[k].name);
  for (int64_t i = 0; i < y->n; i++) {
    for (uint32_t k = 0; k < t->n_in; k++) x[k] = t->in[k].at[broadcast_index(&t->in[k], y, i)];
    y->at[i] = f(x, a, &scale[i]);
  }
}

void reference_same_order(const Case *t, Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = t->in[0].at[i];
  scale_as_size(y, scale);
}

/* ---- rows ---- */

Rows rows_of(const Tensor *x, int axis)
{
  Rows r = {.length = x->dim[axis], .stride = 1};
  for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) r.stride *= x->dim[d];
  r.n = x->n / r.length;
  return r;
}

int64_t row_start(const Rows *r, int64_t row)
{
  return row / r->stride * r->stride * r->length + row % r->stride;
}

double row_mean(const double *x, const Rows *r)
{
  double sum = 0;
  for (int64_t c = 0; c < r->length; c++) sum += x[c * r->stride];
  return sum / (double)r->length;
}

/* Greatest element and the sum of e^(x - greatest); the terms of the greatest ones are 1, also
 * where it is infinite. */
double row_sum(const double *x, const Rows *r, double *max)
{
  double m = -INFINITY, sum = 0;
  for (int64_t c = 0; c < r->length; c++) m = fmax(m, x[c * r->stride]);
  *max = m;
  for (int64_t c = 0; c < r->length; c++) {
    double v = x[c * r->stride];
    sum += v == m ? 1 : exp(v - m);
  }
  return sum;
}

double row_log_sum(const double *x, const Rows *r, double *max)
{
  double sum = row_sum(x, r, max);
  return *max + log(sum);
}

bool row_undefined(const double *x, const Rows *r)
{
  double m = -INFINITY;
  for (int64_t c = 0; c < r->length; c++) {
    if (isnan(x[c * r->stride])) return true;
    m = fmax(m, x[c * r->stride]);
  }
  return isinf(m); /* inf - inf; also a row of nothing but -inf */
}

double terms_of_row(const Case *t)
{
  bool last = case_axis(t) == (int)t->in[0].rank - 1;
  return (double)t->in[0].dim[case_axis(t)] * (last ? 1 : PARTIAL_SUMS);
}
