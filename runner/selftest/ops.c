/* THE table of bounds: for each op its reference, how its inputs are filled, and how many ulps of
 * the compute type its result may be off before it is stored (Note [bounds] in selftest.h).
 *
 * The limits of single functions are those that templates/maths.cuh states for them (the CUDA guide
 * has 1 to 2 for its own). The limits of compositions are sums of those. A row of n elements is
 * summed by 16 partial sums, so n / 16 additions follow each other, of half an ulp each; where the
 * row is not the last axis, and in matrix products, all n may. Exact ops have no limit: one value
 * is right. */
#include "selftest.h"
#include <string.h>

ShapeOf shape_broadcast_of, shape_reduce_of, shape_row_of, shape_given_of, shape_transpose_of,
    shape_slice_of, shape_slice_backward_of, shape_cat_of, shape_product_of, shape_permute_of,
    shape_pad_of, shape_shifted_of, shape_conv_of, shape_parts_of, shape_join_of, shape_pool_of;
Reference reference_map, reference_cast, reference_sum, reference_extreme, reference_arg,
    reference_softmax, reference_softmax_backward, reference_logsumexp, reference_var,
    reference_var_backward, reference_layer_norm, reference_layer_norm_backward,
    reference_cross_entropy, reference_cross_entropy_backward, reference_same_order,
    reference_expand, reference_transpose, reference_slice, reference_slice_backward,
    reference_flip, reference_shifted, reference_cat, reference_product, reference_permute,
    reference_pad, reference_conv, reference_parts, reference_join, reference_batch_norm,
    reference_batch_norm_backward, reference_pool;
double conv_terms(const Case *t);

enum { PARTIAL_SUMS = 16 };
#define EXACT    0, 0, "exact: copies, compares or rounds once"
#define ROUNDED  0, 0, "one IEEE operation, correctly rounded"
#define MAP      shape_broadcast_of, reference_map
#define SUMS(k)  (k) * 0.5 / PARTIAL_SUMS /* k sums of a row */
#define FIRST(r) shape_of_first, r
#define ROW(r)   shape_row_of, r
#define PARTS    shape_parts_of, reference_parts
#define POOL     shape_pool_of, reference_pool

const OpTest op_tests[] = {
    {OP_cast, "w", "d", FIRST(reference_cast), EXACT},
    {OP_detach, "w", "=", FIRST(reference_same_order), EXACT},
    {OP_reshape, "w", "=", shape_given_of, reference_same_order, EXACT},
    {OP_expand, "w", "=", shape_given_of, reference_expand, EXACT},
    {OP_transpose, "w", "=", shape_transpose_of, reference_transpose, EXACT},
    {OP_permute, "w", "=", shape_permute_of, reference_permute, EXACT},
    {OP_pad, "w", "=", shape_pad_of, reference_pad, EXACT},
    {OP_slice, "w", "=", shape_slice_of, reference_slice, EXACT},
    {OP_slice_backward, "w", "=", shape_slice_backward_of, reference_slice_backward, EXACT},
    {OP_flip_axis, "w", "=", FIRST(reference_flip), EXACT},
    {OP_shifted, "wk", "=", shape_shifted_of, reference_shifted, EXACT},
    {OP_cat, "wwww", "=", shape_cat_of, reference_cat, EXACT},
    {OP_full, "w", "=", shape_given_of, reference_expand, EXACT},
    {OP_full_like, "ww", "=", MAP, EXACT},
    {OP_like, "ww", "=", MAP, EXACT},
    {OP_drop_parts, "nk", "=", MAP, 1.5, 0, "three roundings"},
    {OP_output, "w", "=", FIRST(reference_same_order), EXACT},

    {OP_neg, "w", "=", MAP, EXACT},
    {OP_abs, "w", "=", MAP, EXACT},
    {OP_sign, "w", "=", MAP, EXACT},
    {OP_floor, "w", "=", MAP, EXACT},
    {OP_ceil, "w", "=", MAP, EXACT},
    {OP_round, "w", "=", MAP, EXACT},
    {OP_relu, "w", "=", MAP, EXACT},
    {OP_relu_backward, "ww", "=", MAP, EXACT},
    {OP_isnan, "w", "o", MAP, EXACT},
    {OP_isfinite, "w", "o", MAP, EXACT},
    {OP_logical_not, "w", "o", MAP, EXACT},
    {OP_eq, "ww", "o", MAP, EXACT},
    {OP_ne, "ww", "o", MAP, EXACT},
    {OP_lt, "ww", "o", MAP, EXACT},
    {OP_le, "ww", "o", MAP, EXACT},
    {OP_gt, "ww", "o", MAP, EXACT},
    {OP_ge, "ww", "o", MAP, EXACT},
    {OP_logical_and, "ww", "=", MAP, EXACT},
    {OP_logical_or, "ww", "=", MAP, EXACT},
    {OP_where, "cww", "=", MAP, EXACT},
    {OP_clamp, "w", "=", MAP, EXACT},
    {OP_clamp_backward, "ww", "=", MAP, EXACT},
    {OP_maximum, "ww", "=", MAP, EXACT},
    {OP_minimum, "ww", "=", MAP, EXACT},

    {OP_add, "ww", "=", MAP, ROUNDED},
    {OP_sub, "ww", "=", MAP, ROUNDED},
    {OP_mul, "ww", "=", MAP, ROUNDED},
    {OP_div, "ww", "=", MAP, ROUNDED},
    {OP_sqrt, "w", "=", MAP, ROUNDED},
    {OP_reciprocal, "w", "=", MAP, ROUNDED},
    {OP_floor_divide, "nq", "=", MAP, EXACT},
    {OP_remainder, "nq", "=", MAP, 1, 0, "fmod is exact, adding y rounds; relative to |y|"},
    {OP_squared_error, "gg", "=", MAP, 2, 0, "the difference is half an ulp off, its square two"},

    {OP_exp, "w", "=", MAP, 1, 0, "maths.cuh: 1"},
    {OP_expm1, "w", "=", MAP, 2, 0, "maths.cuh: 2"},
    {OP_log, "w", "=", MAP, 1, 0, "maths.cuh: 1"},
    {OP_log1p, "w", "=", MAP, 2, 0, "maths.cuh: 2"},
    {OP_log2, "w", "=", MAP, 2, 0, "maths.cuh: 2"},
    {OP_rsqrt, "w", "=", MAP, 2, 0, "CUDA: 2"},
    {OP_tanh, "w", "=", MAP, 3, 0, "maths.cuh: 3"},
    {OP_erf, "w", "=", MAP, 2, 0, "maths.cuh: 2"},
    {OP_sin, "s", "=", MAP, 2, 0, "maths.cuh: 2"},
    {OP_cos, "s", "=", MAP, 2, 0, "maths.cuh: 2"},
    {OP_pow, "pn", "=", MAP, 2, 0, "maths.cuh: 2"},
    {OP_sigmoid, "w", "=", MAP, 4, 0, "exp 2, sum and quotient 1/2 each, relative twice that"},
    {OP_silu, "g", "=", MAP, 6, 0, "sigmoid 4 and a product, relative twice that"},
    {OP_softplus, "w", "=", MAP, 4, 0, "exp 2, log1p 1, half an ulp relative twice that"},
    {OP_gelu_erf, "g", "=", MAP, 4, 0, "erf 2 and its argument 1.5, halved, relative to |x|"},
    {OP_gelu_tanh, "g", "=", MAP, 4, 0, "tanh 2 and its argument 1.5, halved, relative to |x|"},
    {OP_sigmoid_backward, "dy", "=", MAP, 3, 0, "1 - y exact for y > 1/2, two products"},
    {OP_tanh_backward, "dt", "=", MAP, 2, 0, "1 - y y cancels: relative to |dy|"},
    {OP_silu_backward, "dn", "=", MAP, 6, 0, "sigmoid 4, three roundings, relative to |dy|"},
    {OP_gelu_erf_backward, "dn", "=", MAP, 6, 0, "erf and exp 2 each, three roundings"},
    {OP_gelu_tanh_backward, "dn", "=", MAP, 8, 0, "tanh 2, its slope and polynomial"},

    {OP_schedule_linear, "nnnnn", "f", MAP, 3, 0, "four roundings of the sizes of its ends"},
    {OP_schedule_cosine, "nnnnn", "f", MAP, 4, 0, "cos 2, its argument and two roundings"},
    {OP_schedule_onecycle, "nnn", "f", MAP, 6, 0, "cos 2, its argument 2, two roundings"},
    {OP_schedule_step, "nnnn", "f", MAP, 4, 0, "pow 2, one product, relative twice that"},

    {OP_sum, "n", "=", shape_reduce_of, reference_sum, 3, SUMS(1), "additions in a row"},
    {OP_mean, "n", "=", shape_reduce_of, reference_sum, 4, SUMS(1),
     "additions in a row, one quotient"},
    {OP_amax, "w", "=", shape_reduce_of, reference_extreme, EXACT},
    {OP_amin, "w", "=", shape_reduce_of, reference_extreme, EXACT},
    {OP_argmax, "w", "l", ROW(reference_arg), EXACT},
    {OP_argmin, "w", "l", ROW(reference_arg), EXACT},
    {OP_softmax, "n", "=", FIRST(reference_softmax), 8, SUMS(1), "exp 2 twice, sum, quotient"},
    {OP_softmax_backward, "dy", "=", FIRST(reference_softmax_backward), 6, SUMS(1),
     "sum of products"},
    {OP_log_softmax, "n", "=", FIRST(reference_softmax), 8, SUMS(1),
     "exp 2, sum, log 1, difference"},
    {OP_log_softmax_backward, "dm", "=", FIRST(reference_softmax_backward), 8, SUMS(1),
     "sum, exp 2"},
    {OP_logsumexp, "n", "=", ROW(reference_logsumexp), 8, SUMS(1), "exp 2, sum, log 1"},
    {OP_row_var, "n", "=", ROW(reference_var), 8, SUMS(3), "two sums, the mean's error twice"},
    {OP_row_std, "n", "=", ROW(reference_var), 8, SUMS(3), "as row_var, and a root"},
    {OP_row_var_backward, "nd", "=", FIRST(reference_var_backward), 8, SUMS(1),
     "the mean, 4 roundings"},
    {OP_row_std_backward, "npd", "=", FIRST(reference_var_backward), 8, SUMS(1),
     "the mean, 4 roundings"},
    {OP_layer_norm, "nnn", "=", FIRST(reference_layer_norm), 12, SUMS(2), "two sums, rsqrt 2"},
    {OP_layer_norm_backward, "ndn", "=", FIRST(reference_layer_norm_backward), 24, SUMS(4),
     "four sums"},
    {OP_cross_entropy_rows, "nk", "=", ROW(reference_cross_entropy), 8, SUMS(1), "as log_softmax"},
    {OP_cross_entropy_backward, "nkd", "=", FIRST(reference_cross_entropy_backward), 10, SUMS(1),
     "as softmax, two differences"},

    {OP_matmul, "nn", "=", shape_product_of, reference_product, 1, 0.5, "additions in a row"},
    {OP_gemm, "nn", "=", shape_product_of, reference_product, 1, 0.5, "additions in a row"},
    {OP_linear, "nnn", "=", shape_product_of, reference_product, 2, 0.5,
     "additions in a row, bias"},

    {OP_bce_with_logits, "gy", "=", MAP, 7, 0, "softplus 4, three roundings"},
    {OP_conv2d, "nnn", "=", shape_conv_of, reference_conv, 2, 0.5, "additions in a row, bias"},
    {OP_conv2d_data, "dn", "=", shape_conv_of, reference_conv, 1, 0.5, "additions in a row"},
    {OP_conv2d_weight, "dn", "=", shape_conv_of, reference_conv, 1, 0.5, "additions in a row"},
    {OP_channel_sums, "n", "f", PARTS, 1, 0.5, "additions in a row"},
    {OP_channel_moments, "n", "f", PARTS, 4, 1, "two sums"},
    {OP_channel_total, "n", "f", shape_join_of, reference_join, 2, 0.5, "additions in a row"},
    {OP_channel_var, "vn", "f", shape_join_of, reference_join, 6, 0.5,
     "additions in a row, a square"},
    {OP_batch_norm, "nnpnn", "=", FIRST(reference_batch_norm), 4, 0, "five roundings"},
    {OP_batch_norm_eval, "nnpnn", "=", FIRST(reference_batch_norm), 4, 0, "five roundings"},
    {OP_batch_norm_sums, "dnnp", "f", PARTS, 4, 0.5, "additions in a row"},
    {OP_batch_norm_backward, "dnnpnnn", "=", FIRST(reference_batch_norm_backward), 8, 0,
     "nine roundings"},
    {OP_max_pool2d, "w", "=", POOL, EXACT},
    {OP_max_pool2d_backward, "dn", "=", POOL, 1, 0.5, "additions in a row"},
    {OP_avg_pool2d, "n", "=", POOL, 1, 0.5, "additions in a row"},
    {OP_avg_pool2d_backward, "d", "=", POOL, 1, 0.5, "additions in a row"},
    {OP_adaptive_avg_pool2d, "n", "=", POOL, 1, 0.5, "additions in a row"},
    {OP_adaptive_avg_pool2d_backward, "d", "=", POOL, 1, 0.5, "additions in a row"},
    {OP_interpolate_nearest, "w", "=", POOL, EXACT},
    {OP_interpolate_nearest_backward, "d", "=", POOL, 1, 0.5, "additions in a row"},
};
const uint32_t n_op_tests = sizeof op_tests / sizeof *op_tests;

const OpTest *op_test_find(OpKind op)
{
  for (uint32_t i = 0; i < n_op_tests; i++) {
    if (op_tests[i].op == op) return &op_tests[i];
  }
  return NULL;
}

/* How many elements one result is summed from, in units of what SUMS counts. */
static double summed(const Case *t)
{
  const Tensor *x = &t->in[0];
  if (t->test->per_n == 0) return 0;
  if (t->test->reference == reference_product) {
    bool across = t->test->op == OP_gemm && case_attr(t, "trans_a") != 0;
    return (double)x->dim[x->rank - (across ? 2 : 1)];
  }
  if (t->test->reference == reference_conv) return conv_terms(t);
  if (t->test->reference == reference_parts)
    return (double)(x->n / (t->want.dim[1] * t->want.dim[2]) + 1);
  if (t->test->reference == reference_join) return (double)x->dim[1];
  if (t->test->reference == reference_pool) { /* all windows over a pixel, or pixels of a window */
    double image = (double)(x->dim[2] * x->dim[3]);
    double of = (double)(t->want.dim[2] * t->want.dim[3]);
    return image < of ? image : of;
  }
  if (t->test->per_n <= 0) return 0;
  if (t->test->reference == reference_sum) {
    int64_t mask = (int64_t)case_attr(t, "dim");
    bool last = mask == 0 || mask >> (x->rank - 1) & 1;
    return (double)(x->n / t->want.n) * (last ? 1 : PARTIAL_SUMS);
  }
  bool last = case_axis(t) == (int)x->rank - 1;
  return (double)x->dim[case_axis(t)] * (last ? 1 : PARTIAL_SUMS);
}

double case_ulps(const Case *t)
{
  return t->test->ulps + t->test->per_n * summed(t);
}
