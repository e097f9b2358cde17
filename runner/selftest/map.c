/* References of the elementwise ops: broadcasting here, one element in selftest_elements.h. */
#include "selftest.h"
#include <math.h>

/* Central difference of sixth order: good to about 1e-13. */
static double slope(Element *f, double x)
{
  static const double weight[] = {45, -9, 1};
  const double h = 0x1p-7;
  double sum = 0, scale;
  for (int i = 1; i <= 3; i++) {
    double right = x + i * h, left = x - i * h;
    sum += weight[i - 1] * (f(&right, NULL, &scale) - f(&left, NULL, &scale));
  }
  return sum / (60 * h);
}

static double tanh_argument(double x)
{
  return sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

/* The remainder with the sign of y, and the whole number of times that y was taken away: fmod is
 * exact, while x / y in floating point may already be rounded up to an integer. */
static double signed_remainder(double x, double y, bool *moved)
{
  double rest = fmod(x, y);
  *moved = rest != 0 && (rest < 0) != (y < 0);
  return *moved ? rest + y : rest;
}

static double python_modulo(double x, double y)
{
  bool moved;
  return signed_remainder(x, y, &moved);
}

static double whole_quotient(double x, double y)
{
  bool moved;
  if (y == 0) return x / y;
  signed_remainder(x, y, &moved);
  return nearbyint((x - fmod(x, y)) / y) - moved;
}

#define ELEMENT(op, result, size)                                                                  \
  static double e_##op(const double *x, const double *a, double *scale)                            \
  {                                                                                                \
    (void)a;                                                                                       \
    double r = (result);                                                                           \
    *scale = (size);                                                                               \
    return r;                                                                                      \
  }
#include "elements.h"
#undef ELEMENT

static Element *const elements[OP_COUNT] = {
#define ELEMENT(op, result, size) [OP_##op] = e_##op,
#include "elements.h"
#undef ELEMENT
};

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

void shape_of_first(const Case *t, Tensor *y)
{
  y->rank = t->in[0].rank;
  for (uint32_t d = 0; d < y->rank; d++) y->dim[d] = t->in[0].dim[d];
}

void reference_map(const Case *t, Tensor *y, double *scale)
{
  Element *f = elements[t->test->op];
  double a[MAX_ATTR], x[TEST_MAX_IN];
  const OpSignature *s = &op_row(t->test->op)->signature;
  for (uint32_t k = 0; k < s->n_attrs; k++) a[k] = case_attr(t, s->attr[k].name);
  for (int64_t i = 0; i < y->n; i++) {
    for (uint32_t k = 0; k < t->n_in; k++) x[k] = t->in[k].at[broadcast_index(&t->in[k], y, i)];
    y->at[i] = f(x, a, &scale[i]);
  }
}

/* Between integers the low bits stay, as in C; from floats it truncates and saturates, and NaN is
 * 0; bool asks whether it is zero. */
static double cast_element(DType from, DType to, double x)
{
  if (dtype_is_float(to)) return x;
  if (to == AMPC_BOOL) return x != 0;
  if (dtype_is_float(from)) return number_round(to, x);
  double span = to == AMPC_U8 ? 0x1p8 : to == AMPC_I32 ? 0x1p32 : 0;
  if (span == 0) return x;
  double low = to == AMPC_U8 ? 0 : -span / 2;
  return x - span * floor((x - low) / span);
}

void reference_cast(const Case *t, Tensor *y, double *scale)
{
  for (int64_t i = 0; i < y->n; i++) {
    y->at[i] = cast_element(t->in[0].dtype, y->dtype, t->in[0].at[i]);
    scale[i] = fabs(y->at[i]);
  }
}
