/* Functions that references of several families share; reference.h describes them. */
#include "reference.h"
#include "entry.h"
#include <math.h>
#include <string.h>

void scale_as_size(const Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) scale[i] = fabs(y->at[i]);
}

void clear_sums(Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) y->at[i] = scale[i] = 0;
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

static void copy_dims(const Tensor *x, Tensor *y)
{
  y->rank = x->rank;
  memcpy(y->dim, x->dim, sizeof y->dim);
}

void shape_of_first(const Case *t, Tensor *y)
{
  copy_dims(&t->in[0], y);
}

void shape_of_second(const Case *t, Tensor *y)
{
  copy_dims(&t->in[1], y);
}

void shape_sized_of(const Case *t, Tensor *y)
{
  copy_dims(&t->in[0], y);
  y->dim[case_axis(t)] = case_int(t, "size");
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

/* Calls the op's own function for each element, with broadcast inputs. */
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

/* ---- moves ---- */

/* Reads each element from the position that the op's own function returns. */
static void move(const Case *t, Tensor *y, double *scale, double outside)
{
  const Tensor *x = &t->in[0];
  for (int64_t i = 0; i < y->n; i++) {
    int64_t at[MAX_RANK] = {0}, rest = i, from = 0;
    for (uint32_t d = y->rank; d-- > 0; rest /= y->dim[d]) at[d] = rest % y->dim[d];
    bool inside = t->test->move(t, i, at);
    for (uint32_t d = 0; d < x->rank; d++) from = from * x->dim[d] + at[d];
    y->at[i] = inside ? x->at[from] : outside;
  }
  scale_as_size(y, scale);
}

void reference_moved(const Case *t, Tensor *y, double *scale)
{
  move(t, y, scale, case_attr(t, "value"));
}

/* Picks elements. Elements from outside are NaN, or 0 for integers. */
void reference_picked(const Case *t, Tensor *y, double *scale)
{
  move(t, y, scale, dtype_is_float(y->dtype) ? NAN : 0);
}

/* ---- rows ---- */

Rows rows_of(const Tensor *x, int axis)
{
  Rows r = {.length = x->dim[axis], .stride = 1, .row = -1};
  for (uint32_t d = (uint32_t)axis + 1; d < x->rank; d++) r.stride *= x->dim[d];
  r.n = x->n / r.length;
  return r;
}

bool next_row(Rows *r)
{
  r->row++;
  r->start = r->row / r->stride * r->stride * r->length + r->row % r->stride;
  r->end = r->start + r->length * r->stride;
  return r->row < r->n;
}

double row_mean(const double *x, const Rows *r)
{
  double sum = 0;
  EACH (i, *r) sum += x[i];
  return sum / (double)r->length;
}

double row_sum(const double *x, const Rows *r, double *max)
{
  double m = -INFINITY, sum = 0;
  EACH (i, *r) m = fmax(m, x[i]);
  *max = m;
  EACH (i, *r) sum += x[i] == m ? 1 : exp(x[i] - m);
  return sum;
}

bool row_undefined(const double *x, const Rows *r)
{
  double m = -INFINITY;
  EACH (i, *r) m = isnan(x[i]) ? INFINITY : fmax(m, x[i]);
  return isinf(m); /* an infinite maximum makes inf - inf; this includes a row of only -inf */
}

double terms_of_row(const Case *t)
{
  bool last = case_axis(t) == (int)t->in[0].rank - 1;
  return (double)t->in[0].dim[case_axis(t)] * (last ? 1 : PARTIAL_SUMS);
}
