/* Matrix products on the CPU, in every type and transposition, against a plain loop in double. */
#include <math.h>
#include "check.h"
#include "runner/selftest/number.h"
#include "runtime/base/convert.h"
#include "runtime/cpu/cpu.h"

typedef struct Matrix {
  char *bytes;
  int64_t elements;
} Matrix;

static GemmCache *cache_plain, *cache_real64;
static bool own; /* loops of our own compute */
static uint32_t random_state = 1;

static double random_number(void)
{
  random_state = random_state * 1664525u + 1013904223u;
  return (double)(random_state >> 8) * 0x1p-23 - 1;
}

static Matrix matrix(ampc_dtype t, bool real64, int64_t elements)
{
  Matrix m = {calloc((size_t)elements + 1, sizeof(double)), elements};
  MUST(m.bytes);
  for (int64_t i = 0; i < elements; i++) number_store(t, real64, m.bytes, i, random_number());
  return m;
}

static double operand(const ampc_gemm *g, ampc_dtype t, bool real64, const Matrix *m, int64_t at)
{
  CHECK(at < m->elements);
  double v = number_load(t, real64, m->bytes, at);
  float f = (float)v;
  if (g->tf32 && t == AMPC_F32 && !real64) convert_tf32(&f, &f, 1);
  return real64 ? v : (double)f;
}

/* Returns the exact value, and the sum of magnitudes, which bounds the error. */
static double exact(const ampc_gemm *g, bool real64, const Matrix *a, const Matrix *b, int64_t e,
                    int64_t i, int64_t j, double *size)
{
  double sum = 0;
  *size = 0;
  for (int64_t p = 0; p < g->k; p++) {
    int64_t at_a = e * g->stride_a + (g->trans_a ? p * g->lda + i : i * g->lda + p);
    int64_t at_b = e * g->stride_b + (g->trans_b ? j * g->ldb + p : p * g->ldb + j);
    double product =
        operand(g, g->a_type, real64, a, at_a) * operand(g, g->b_type, real64, b, at_b);
    sum += product;
    *size += fabs(product);
  }
  return sum;
}

static double unit(ampc_dtype t, bool real64)
{
  return t == AMPC_F16 ? 0x1p-11 : t == AMPC_BF16 ? 0x1p-8 : real64 ? 0x1p-53 : 0x1p-24;
}

static void compare(const ampc_gemm *g, bool real64, const Matrix *a, const Matrix *b,
                    const Matrix *bias, const Matrix *before, const Matrix *c)
{
  double worst = 0;
  for (int64_t e = 0; e < g->batch; e++)
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t j = 0; j < g->n; j++) {
        int64_t at = e * g->stride_c + i * g->ldc + j;
        double size, want = exact(g, real64, a, b, e, i, j, &size);
        if (g->has_bias) want += number_load(g->bias_type, real64, bias->bytes, j);
        if (g->accumulate) want += number_load(AMPC_F32, real64, before->bytes, at);
        if (g->relu && want < 0) want = 0;
        double got = number_load(g->c_type, real64, c->bytes, at);
        double bound = (size + 2) * sqrt((double)g->k + 4) * unit(AMPC_F32, real64) +
                       fabs(want) * unit(g->c_type, real64);
        worst = number_worse(worst, fabs(got - want) / bound);
      }
  CHECK_MSG(
      worst <= 1,
      "%s %s -> %s m %d n %d k %d batch %d trans %d%d add %d bias %d relu %d tf32 %d real64 %d: %g "
      "of the bound",
      ampc_dtype_name(g->a_type), ampc_dtype_name(g->b_type), ampc_dtype_name(g->c_type), (int)g->m,
      (int)g->n, (int)g->k, (int)g->batch, g->trans_a, g->trans_b, g->accumulate, g->has_bias,
      g->relu, g->tf32, real64, worst);
}

/* Checks that the elements between rows of C, which are ldc apart, do not change. */
static void check_gaps(const ampc_gemm *g, bool real64, const Matrix *before, const Matrix *c)
{
  for (int64_t r = 0; r < g->m; r++)
    for (int64_t j = g->n; j < g->ldc; j++) {
      int64_t at = r * g->ldc + j;
      CHECK(at >= c->elements || number_load(g->c_type, real64, before->bytes, at) ==
                                     number_load(g->c_type, real64, c->bytes, at));
    }
}

static void run(ampc_gemm g, bool real64)
{
  g.lda = (g.trans_a ? g.m : g.k) + 3;
  g.ldb = (g.trans_b ? g.k : g.n) + 1;
  g.ldc = g.n + 2;
  g.stride_a = (g.trans_a ? g.k : g.m) * g.lda + 5;
  g.stride_b = g.batch > 2 ? 0 : (g.trans_b ? g.n : g.k) * g.ldb; /* 0: all products share B */
  g.stride_c = g.m * g.ldc;
  g.workspace = ampc_gemm_workspace_cpu(&g, real64);
  Matrix a = matrix(g.a_type, real64, g.stride_a * g.batch);
  Matrix b = matrix(g.b_type, real64, (g.trans_b ? g.n : g.k) * g.ldb * g.batch);
  Matrix c = matrix(g.c_type, real64, g.stride_c * g.batch),
         bias = matrix(g.bias_type, real64, g.n);
  Matrix before = matrix(AMPC_U8, false, g.stride_c * g.batch);
  memcpy(before.bytes, c.bytes, (size_t)c.elements * sizeof(double));
  void *workspace = malloc((size_t)g.workspace + 1);
  CHECK_MSG(cpu_gemm(real64 ? cache_real64 : cache_plain, &g,
                     &(GemmOperands){a.bytes, b.bytes, bias.bytes, c.bytes, workspace}) == AMPC_OK,
            "%s", ampc_last_error());
  compare(&g, real64, &a, &b, &bias, &before, &c);
  check_gaps(&g, real64, &before, &c);
  free(a.bytes);
  free(b.bytes);
  free(c.bytes);
  free(bias.bytes);
  free(before.bytes);
  free(workspace);
}

static void run_ways(ampc_gemm g)
{
  for (int way = 0; way < 16; way++) {
    g.trans_a = way & 1;
    g.trans_b = way & 2;
    g.has_bias = way & 4;
    g.accumulate = (way & 8) && g.c_type == AMPC_F32;
    g.relu = !g.trans_a != !g.has_bias;
    if ((way & 8) && !g.accumulate) continue;
    run(g, false);
  }
}

static void every_type(void)
{
  static const ampc_dtype types[] = {AMPC_F32, AMPC_F16, AMPC_BF16};
  static const int64_t sizes[][4] = {{1, 1, 1, 1}, {7, 13, 17, 3}, {33, 65, 40, 2}, {2, 3, 0, 1}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int t = 0; t < 54; t++) {
      ampc_gemm g = {.m = sizes[s][0], .n = sizes[s][1], .k = sizes[s][2], .batch = sizes[s][3]};
      g.a_type = types[t % 3];
      g.b_type = types[t / 3 % 3];
      g.c_type = types[t / 9 % 3];
      g.bias_type = types[((size_t)t + s) % 3];
      g.tf32 = t >= 27;
      run_ways(g);
    }
}

/* Tests that relu follows the rounding: a result that rounds to -0 stays, a negative becomes 0. */
static void relu_and_small_ones(void)
{
  ampc_gemm g = {.m = 1, .n = 2, .k = 1, .batch = 1, .lda = 1, .ldb = 2, .ldc = 2, .relu = true};
  g.a_type = g.b_type = g.c_type = AMPC_F16;
  g.workspace = ampc_gemm_workspace_cpu(&g, false);
  double a[1], b[2], c[2]; /* space for the numbers in any type */
  number_store(AMPC_F16, false, (char *)a, 0, 0x1p-13);
  number_store(AMPC_F16, false, (char *)b, 0, -0x1p-13);
  number_store(AMPC_F16, false, (char *)b, 1, -0x1p-3);
  void *workspace = malloc((size_t)g.workspace + 1);
  MUST(workspace);
  CHECK(cpu_gemm(cache_plain, &g,
                 &(GemmOperands){(char *)a, (char *)b, NULL, (char *)c, workspace}) == AMPC_OK);
  double vanished = number_load(AMPC_F16, false, (char *)c, 0);
  double below = number_load(AMPC_F16, false, (char *)c, 1);
  CHECK(vanished == 0 && signbit(vanished));
  CHECK(below == 0 && !signbit(below));
  free(workspace);
}

/* Tests sizes larger than a panel on each axis, and several blocks. */
static void large(void)
{
  run((ampc_gemm){.m = 1030,
                  .n = 40,
                  .k = 70,
                  .batch = 1,
                  .a_type = AMPC_F16,
                  .b_type = AMPC_F16,
                  .c_type = AMPC_F16,
                  .has_bias = true},
      false);
  run((ampc_gemm){.m = 40,
                  .n = 1100,
                  .k = 64,
                  .batch = 2,
                  .a_type = AMPC_BF16,
                  .b_type = AMPC_BF16,
                  .c_type = AMPC_BF16,
                  .has_bias = true,
                  .trans_b = true},
      false);
  run((ampc_gemm){.m = 20,
                  .n = 30,
                  .k = 5000,
                  .batch = 1,
                  .a_type = AMPC_F16,
                  .b_type = AMPC_F16,
                  .c_type = AMPC_F32,
                  .accumulate = true,
                  .trans_a = true},
      false);
  run((ampc_gemm){.m = 20,
                  .n = 30,
                  .k = 5000,
                  .batch = 1,
                  .a_type = AMPC_F16,
                  .b_type = AMPC_F16,
                  .c_type = AMPC_F16},
      false);
  run((ampc_gemm){.m = 600, .n = 520, .k = 80, .batch = 1, .has_bias = true}, false);
  run((ampc_gemm){.m = 8200, .n = 17, .k = 20, .batch = 1, .trans_b = true}, false);
}

static void real64(void)
{
  for (int way = 0; way < 16; way++)
    run((ampc_gemm){.m = 70,
                    .n = 300,
                    .k = 33,
                    .batch = 2,
                    .trans_a = way & 1,
                    .trans_b = way & 2,
                    .has_bias = way & 4,
                    .accumulate = way & 8,
                    .tf32 = way & 1},
        true);
}

/* Tests that sums are rounded once: in f16, 1 + 2^-11 + 2^-11 exceeds 1 only if they are. */
static void one_rounding(void)
{
  ampc_gemm g = {.m = 1,
                 .n = 1,
                 .k = 2,
                 .batch = 1,
                 .lda = 2,
                 .ldb = 1,
                 .ldc = 1,
                 .has_bias = true,
                 .a_type = AMPC_F16,
                 .b_type = AMPC_F16,
                 .c_type = AMPC_F16,
                 .bias_type = AMPC_F16};
  g.workspace = ampc_gemm_workspace_cpu(&g, false);
  uint16_t a[2], b[2], bias, c;
  for (int i = 0; i < 2; i++) {
    number_store(AMPC_F16, false, a, i, i ? 0x1p-11 : 1);
    number_store(AMPC_F16, false, b, i, 1);
  }
  number_store(AMPC_F16, false, &bias, 0, 0x1p-11);
  void *workspace = malloc((size_t)g.workspace);
  CHECK(cpu_gemm(cache_plain, &g, &(GemmOperands){a, b, &bias, &c, workspace}) == AMPC_OK);
  CHECK(number_load(AMPC_F16, false, &c, 0) == 1 + 0x1p-10);
  free(workspace);
}

/* Tests that any number of threads gives the same bits. */
static void any_threads(void)
{
  ampc_gemm g = {.m = 300,
                 .n = 700,
                 .k = 333,
                 .batch = 2,
                 .lda = 333,
                 .ldb = 700,
                 .ldc = 700,
                 .stride_a = 300 * 333,
                 .stride_b = 333 * 700,
                 .stride_c = 300 * 700,
                 .a_type = AMPC_F16};
  g.workspace = ampc_gemm_workspace_cpu(&g, false);
  Matrix a = matrix(AMPC_F16, false, 2 * g.stride_a), b = matrix(AMPC_F32, false, 2 * g.stride_b);
  Matrix c = matrix(AMPC_F32, false, 2 * g.stride_c), d = matrix(AMPC_F32, false, 2 * g.stride_c);
  void *workspace = malloc((size_t)g.workspace);
  Pool *five = pool_create(5), *one = pool_create(1);
  GemmCache *cache_five = gemm_cache_create(five, false, own),
            *cache_one = gemm_cache_create(one, false, own);
  CHECK(cpu_gemm(cache_one, &g, &(GemmOperands){a.bytes, b.bytes, NULL, c.bytes, workspace}) ==
        AMPC_OK);
  CHECK(cpu_gemm(cache_five, &g, &(GemmOperands){a.bytes, b.bytes, NULL, d.bytes, workspace}) ==
        AMPC_OK);
  CHECK(memcmp(c.bytes, d.bytes, (size_t)c.elements * sizeof(float)) == 0);
  gemm_cache_free(cache_five);
  gemm_cache_free(cache_one);
  pool_free(five);
  pool_free(one);
  free(a.bytes);
  free(b.bytes);
  free(c.bytes);
  free(d.bytes);
  free(workspace);
}

static void refusals(void)
{
  ampc_gemm g = {.m = 1, .n = 1, .k = 1, .batch = 1, .lda = 1, .ldb = 1, .ldc = 1};
  float one = 1, c = 0;
  ampc_gemm bad = g;
  bad.a_type = AMPC_I32;
  CHECK(cpu_gemm(cache_plain, &bad, &(GemmOperands){&one, &one, NULL, &c, NULL}) ==
        AMPC_RUN_FAILED);
  bad = g;
  bad.b_type = AMPC_F16; /* needs a workspace, which is missing */
  CHECK(cpu_gemm(cache_plain, &bad, &(GemmOperands){&one, &one, NULL, &c, NULL}) ==
        AMPC_RUN_FAILED);
  CHECK(cpu_gemm(cache_real64, &bad, &(GemmOperands){&one, &one, NULL, &c, NULL}) ==
        AMPC_RUN_FAILED);
  bad = g;
  bad.m = (int64_t)1 << 31;
  CHECK(cpu_gemm(cache_plain, &bad, &(GemmOperands){&one, &one, NULL, &c, NULL}) ==
        AMPC_RUN_FAILED);
  bad = g;
  bad.c_type = AMPC_F16;
  bad.accumulate = true;
  bad.workspace = 4096;
  CHECK(cpu_gemm(cache_plain, &bad, &(GemmOperands){&one, &one, NULL, &c, NULL}) ==
        AMPC_RUN_FAILED);
}

/* By oneDNN, or by loops of our own. */
static void all(Pool *pool, bool of_own)
{
  own = of_own;
  cache_plain = gemm_cache_create(pool, false, own);
  cache_real64 = gemm_cache_create(pool, true, own);
  MUST(cache_plain && cache_real64);
  every_type();
  large();
  relu_and_small_ones();
  real64();
  one_rounding();
  any_threads();
  refusals();
  gemm_cache_free(cache_plain);
  gemm_cache_free(cache_real64);
}

int main(void)
{
  Pool *pool = pool_create(3);
  MUST(pool);
  all(pool, false);
  all(pool, true);
  pool_free(pool);
  return check_done();
}
