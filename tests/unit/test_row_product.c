/* Products of one row (runtime/cpu/row_product.c) against sums in double: both layouts of B, its
 * types, bias, accumulation, and sizes that are no multiples of vectors or of blocks. */
#include <math.h>
#include "check.h"
#include "runtime/base/convert.h"
#include "runtime/cpu/row_product.h"

static unsigned state = 1;

static float number(void)
{
  state = state * 1664525u + 1013904223u;
  return (float)(int)(state >> 8) / (1 << 23) - 1;
}

/* Fills n elements of type t and returns their values. */
static float *fill(ampc_dtype t, int64_t n, void *at)
{
  float *values = malloc((size_t)n * sizeof *values);
  for (int64_t i = 0; i < n; i++) values[i] = number();
  convert_narrow(t, values, at, n);
  convert_widen(t, at, values, n);
  return values;
}

static void check(Pool *pool, int64_t n, int64_t k, bool turned, ampc_dtype type, bool adds)
{
  int64_t ldb = (turned ? k : n) + 3, elements = ldb * (turned ? n : k);
  ampc_gemm g = {.m = 1,
                 .n = n,
                 .k = k,
                 .batch = 1,
                 .lda = k,
                 .ldb = ldb,
                 .ldc = n,
                 .trans_b = turned,
                 .accumulate = adds,
                 .has_bias = !adds,
                 .a_type = AMPC_BF16,
                 .b_type = type,
                 .bias_type = AMPC_F32,
                 .c_type = AMPC_F32};
  void *a = malloc((size_t)k * 4), *b = malloc((size_t)elements * 4);
  void *bias = malloc((size_t)n * 4), *c = malloc((size_t)n * 4);
  float *wide_a = fill(AMPC_BF16, k, a), *wide_b = fill(type, elements, b);
  float *more = fill(AMPC_F32, n, adds ? c : bias);
  CHECK(row_product_takes(&g));
  row_product_run(pool, &g, &(GemmOperands){.a = a, .b = b, .bias = bias, .c = c});
  for (int64_t j = 0; j < n; j++) {
    double want = (double)more[j], size = fabs(want);
    for (int64_t d = 0; d < k; d++) {
      double one = (double)wide_a[d] * (double)wide_b[turned ? j * ldb + d : d * ldb + j];
      want += one;
      size += fabs(one);
    }
    double got = (double)((float *)c)[j];
    CHECK_MSG(fabs(got - want) <= size * 0x1p-21, "n %lld, k %lld, column %lld: %g, not %g",
              (long long)n, (long long)k, (long long)j, got, want);
  }
  free(wide_a), free(wide_b), free(more);
  free(a), free(b), free(bias), free(c);
}

int main(void)
{
  static const int64_t sizes[][2] = {{256, 256}, {1021, 67}, {67, 1021}, {300, 517}, {5, 16384}};
  Pool *pool = pool_create(2);
  MUST(pool);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int form = 0; form < 8; form++)
      check(pool, sizes[i][0], sizes[i][1], form & 1, form & 2 ? AMPC_BF16 : AMPC_F32, form & 4);
  ampc_gemm small = {.m = 1, .n = 8, .k = 8, .batch = 1};
  CHECK(!row_product_takes(&small));
  pool_free(pool);
  return check_done();
}
