/* Matrix products: each result is a sum over k. */
#include "entry.h"

/* The sizes of [m, k] times [k, n], after the operands are transposed. */
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
  /* a vector on the left is a row; one on the right is a column */
  int64_t a0 = a->rank > 1 ? a->dim[a->rank - 2] : 1, a1 = a->dim[a->rank - 1];
  int64_t b0 = b->dim[b->rank > 1 ? b->rank - 2 : 0], b1 = b->rank > 1 ? b->dim[b->rank - 1] : 1;
  p.m = p.trans_a ? a1 : a0;
  p.k = p.trans_a ? a0 : a1;
  p.n = p.trans_b ? b0 : b1;
  return p;
}

/* Returns the number of axes before the last two, which index the matrices of a batch. */
static uint32_t leading_rank(const Tensor *x)
{
  return x->rank > 2 ? x->rank - 2 : 0;
}

/* Gives y the leading axes of the operands, broadcast. */
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

/* Computes the shape. A vector operand has no axis in the result. */
static void shape_product_of(const Case *t, Tensor *y)
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

/* Returns the index in x at which matrix number `matrix` of the result's leading axes starts. */
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

/* Multiplies. Terms cancel, so the scale is the sum of |a b|. tf32 rounds factors to 11 bits. */
static void reference_product(const Case *t, Tensor *y, double *scale)
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

static double terms_of_product(const Case *t)
{
  return (double)product_of(t).k;
}

static const OpTest tests[] = {
    {OP_matmul, "nn", "=", WHOLE(shape_product_of, reference_product),
     SUMMED(1, 0.5, terms_of_product, "additions in a row"),
     CASES("fhb 7x33 33x5", "fhb 1x1 1x1", "fhb 3x7x33 3x33x5", "fh 2x1x7x5 3x5x4",
           "fb 3x1025 1025x7", "f 7x33 33x5 tf32=1",
           /* vectors */
           "fh 33 33x5", "fb 5x33 33", "f 33 33",
           /* several of the cpu's blocks of 256 and a partial one, in m and k, then in n */
           "fh 1030x2100 2100x5", "hb 3x70 70x1030", "f 300x70 70x300 tf32=1"),
     GRADIENTS("fhb 5x3 3x4", "fh 2x3x4 2x4x3", "f 2x3x4 4x3", "f 2x1x3x2 3x2x2", "f 5 5x3",
               "f 3x5 5"),
     CHAINS({"h = a @ b + c; tanh(h) * h", "fhb 5x3~n 3x4~n 4~n 5x4~d"},
            /* a constant as operand, such as the gradient of a sum of one element */
            {"a @ in_type_of(reshape(0.75, shape=[1, 1]), a)", "fhb 5x1~n 5x1~d"})},
    {OP_product_of, "nn", "=", WHOLE(shape_product_of, reference_product),
     SUMMED(1, 0.5, terms_of_product, "additions in a row"),
     CASES("fhb 7x33 33x5", "fh 3x7x33 3x33x5", "fb 33 33"),
     GRADIENTS("fhb 5x3 3x4", "fh 2x3x4 2x4x3", "f 5 5")},
    {OP_gemm, "nn", "=", WHOLE(shape_product_of, reference_product),
     SUMMED(1, 0.5, terms_of_product, "additions in a row"),
     CASES("fhb 7x33 33x5", "fhb 33x7 33x5 trans_a=1", "fhb 7x33 5x33 trans_b=1",
           "fhb 33x7 5x33 trans_a=1 trans_b=1", "fh 3x33x7 3x5x33 trans_a=1 trans_b=1",
           "f 33x7 5x33 trans_a=1 trans_b=1 tf32=1"),
     GRADIENTS("fhb 5x3 3x4", "fhb 3x5 3x4 trans_a=1", "fhb 5x3 4x3 trans_b=1",
               "fhb 3x5 4x3 trans_a=1 trans_b=1", "f 2x3x5 2x4x3 trans_a=1 trans_b=1")},
    {OP_linear, "nnn", "=", WHOLE(shape_product_of, reference_product),
     SUMMED(2, 0.5, terms_of_product, "additions in a row, bias"),
     CASES("fhb 7x33 5x33 5", "fhb 7x33 5x33 -", "fh 2x3x33 1x33 1", "fb 1030x65 70x65 70",
           "fb 1x1023 33x1023 33", "f 7x33 5x33 5 tf32=1"),
     GRADIENTS("fhb 5x3 4x3 4", "fh 2x3x4 3x4 -", "f 4 3x4 3")},
};
FAMILY(products)
