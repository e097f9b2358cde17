/* Products of a few rows (runtime/cpu/row_product.c) against sums in double: both layouts of B, its
 * types, bias, accumulation, sizes that are no multiples of vectors or of blocks, and
 * rows that are apart. The bits of a row do not depend on the number of rows. */
#include <math.h>
#include <string.h>
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

/* Checks the sums of a row against sums of double. `more`: what is added to each. */
static void check_row(const ampc_gemm *g, const float *a, const float *b, const float *more,
                      const float *got)
{
  for (int64_t j = 0; j < g->n; j++) {
    double want = (double)more[j], size = fabs(want);
    for (int64_t d = 0; d < g->k; d++) {
      double one = (double)a[d] * (double)b[g->trans_b ? j * g->ldb + d : d * g->ldb + j];
      want += one;
      size += fabs(one);
    }
    CHECK_MSG(fabs((double)got[j] - want) <= size * 0x1p-21,
              "n %lld, k %lld, column %lld: %g, not %g", (long long)g->n, (long long)g->k,
              (long long)j, (double)got[j], want);
  }
}

static void check(Pool *pool, int64_t m, int64_t n, int64_t k, bool turned, ampc_dtype type,
                  bool adds)
{
  enum { APART = 5 };
  int64_t ldb = (turned ? k : n) + 3, elements = ldb * (turned ? n : k);
  ampc_gemm g = {.m = m,
                 .n = n,
                 .k = k,
                 .batch = 1,
                 .lda = k + APART,
                 .ldb = ldb,
                 .ldc = n + APART,
                 .trans_b = turned,
                 .accumulate = adds,
                 .has_bias = !adds,
                 .a_type = AMPC_BF16,
                 .b_type = type,
                 .bias_type = AMPC_F32,
                 .c_type = AMPC_F32};
  void *a = malloc((size_t)(m * g.lda) * 4), *b = malloc((size_t)elements * 4);
  void *bias = malloc((size_t)n * 4), *c = malloc((size_t)(m * g.ldc) * 4);
  float *alone = malloc((size_t)n * sizeof *alone);
  float *wide_a = fill(AMPC_BF16, m * g.lda, a), *wide_b = fill(type, elements, b);
  float *more = fill(AMPC_F32, adds ? m * g.ldc : n, adds ? c : bias);
  g.workspace = ampc_gemm_workspace_cpu(&g, false);
  void *workspace = malloc((size_t)g.workspace);
  CHECK(row_product_takes(&g));
  row_product_run(pool, &g,
                  &(GemmOperands){.a = a, .b = b, .bias = bias, .c = c, .workspace = workspace});
  for (int64_t i = 0; i < m; i++) {
    check_row(&g, wide_a + i * g.lda, wide_b, more + (adds ? i * g.ldc : 0),
              (const float *)c + i * g.ldc);
    if (adds) continue;
    ampc_gemm one = g;
    one.m = 1;
    row_product_run(pool, &one,
                    &(GemmOperands){.a = (uint16_t *)a + i * g.lda,
                                    .b = b,
                                    .bias = bias,
                                    .c = alone,
                                    .workspace = workspace});
    CHECK(memcmp(alone, (float *)c + i * g.ldc, (size_t)n * sizeof *alone) == 0);
  }
  free(wide_a), free(wide_b), free(more);
  free(a), free(alone), free(workspace), free(b), free(bias), free(c);
}

int main(void)
{
  static const int64_t sizes[][2] = {{256, 256}, {1021, 67}, {67, 1021}, {300, 517}, {40, 1700}};
  Pool *pool = pool_create(2);
  MUST(pool);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int form = 0; form < 8; form++)
      for (int64_t m = 1; m <= (form & 2 ? 16 : 1); m += 5)
        check(pool, m, sizes[i][0], sizes[i][1], form & 1, form & 2 ? AMPC_BF16 : AMPC_F32,
              form & 4);
  ampc_gemm small = {.m = 1, .n = 8, .k = 8, .batch = 1};
  CHECK(!row_product_takes(&small));
  pool_free(pool);
  return check_done();
}
