/* Products whose operands have room for more columns, terms or rows: Note [odd sizes] in
 * runtime/cuda/gemm.c. The room of the operands is NaN before, and no NaN may reach a result. */
#include "cases.h"
#include "runtime/base/convert.h"
#include "runtime/cuda/cuda_device.h"
#include <math.h>

enum { STATE = 4096, ROOM = 1 << 16, A = 0, B = 8192, C = 16384, WORKSPACE = 32768 };
enum { M = 21, N = 13, K = 19, WHOLE = 24, MOST = 1024, GUARD = 5, STEPS = 3, RUNS = STEPS + 1 };

static ampc_block block = {.kind = AMPC_INFER, .name = "f", .batch = 1, .n_variants = 1};
static ampc_program program = {.name = "test",
                               .source = "test.amp",
                               .target = "sm_90",
                               .space_bytes = {[AMPC_STATE] = STATE, [AMPC_WORK] = ROOM},
                               .blocks = &block,
                               .n_blocks = 1};
static Device *device;
static char *room;

static float number_a(int64_t m, int64_t k)
{
  return (float)((m * 7 + k * 3) % 11 - 5);
}

static float number_b(int64_t k, int64_t n)
{
  return (float)((k * 5 + n) % 13 - 6);
}

/* Puts a matrix of `rows` rows of `ld` elements. `of` has its numbers, the rest is `behind`. */
typedef float Number(int64_t row, int64_t column);
static void put(int64_t at, ampc_dtype type, int64_t rows, int64_t columns, int64_t ld, Number *of,
                bool transposed, float behind)
{
  float x[MOST];
  char bytes[MOST * sizeof *x];
  for (int64_t i = 0; i < MOST; i++) {
    int64_t row = i / ld, column = i % ld;
    bool inside = row < rows && column < columns;
    x[i] = !inside ? behind : transposed ? of(column, row) : of(row, column);
  }
  convert_narrow(type, x, bytes, MOST);
  MUST(!device->ops->copy_in(device, room + at, bytes, MOST * ampc_dtype_size(type)));
}

static float number_c(int64_t row, int64_t column)
{
  return (float)(row - column);
}

static ampc_status multiply(void *g)
{
  return device->ops->gemm(device, g,
                           &(GemmOperands){room + A, room + B, NULL, room + C, room + WORKSPACE});
}

/* The operands are written once: later steps find what the steps before left behind them. The first
 * step runs twice, because it is tried out. C has `rows` rows of zeros behind it. */
static int check(ampc_gemm g, int64_t rows)
{
  float c[MOST];
  char bytes[sizeof c];
  void *state, *memory;
  MUST(cuda_device_open(&program, 1, ANY_GPU, &device) == AMPC_OK);
  MUST(!device->ops->alloc(device, STATE, &state) && !device->ops->alloc(device, ROOM, &memory));
  room = memory;
  put(A, g.a_type, g.trans_a ? g.k : g.m, g.trans_a ? g.m : g.k, g.lda, number_a, g.trans_a, NAN);
  put(B, g.b_type, g.trans_b ? g.n : g.k, g.trans_b ? g.k : g.n, g.ldb, number_b, g.trans_b, NAN);
  put(C, g.c_type, g.m, g.n, g.ldc, number_c, false, 0);
  for (int i = 0; i < STEPS; i++)
    CHECK(device->ops->step(device, 0, state, multiply, &g) == AMPC_OK);
  MUST(!device->ops->copy_out(device, bytes, room + C, MOST * ampc_dtype_size(g.c_type)));
  convert_widen(g.c_type, bytes, c, MOST);
  for (int64_t i = 0; i < (g.m + rows) * g.ldc + GUARD; i++) {
    int64_t row = i / g.ldc, column = i % g.ldc;
    float want = 0;
    if (row < g.m && column >= g.n) continue; /* a gap */
    for (int64_t k = 0; row < g.m && k < g.k; k++) want += number_a(row, k) * number_b(k, column);
    if (row < g.m && g.accumulate) want = want * RUNS + number_c(row, column);
    CHECK_MSG(c[i] == want, "[%lld, %lld]: %g, expected %g", (long long)row, (long long)column,
              c[i], want);
  }
  device->ops->release(device, state);
  device->ops->release(device, memory);
  device->ops->close(device);
  return check_failures;
}

static ampc_gemm product(ampc_dtype type, ampc_dtype result)
{
  return (ampc_gemm){.m = M,
                     .n = N,
                     .k = K,
                     .batch = 1,
                     .lda = K,
                     .ldb = N,
                     .ldc = N,
                     .a_type = type,
                     .b_type = type,
                     .c_type = result,
                     .tf32 = type == AMPC_F32,
                     .workspace = 8192};
}

/* As forward: B has rows behind, and C has gaps. */
static int more_columns(void)
{
  ampc_gemm g = product(AMPC_BF16, AMPC_BF16);
  g.trans_b = true;
  g.ldb = K;
  g.ldc = WHOLE;
  g.more_n = WHOLE - N;
  return check(g, 0);
}

/* As the gradient of an input: A has gaps, and B has rows behind. */
static int terms_of(ampc_dtype type)
{
  ampc_gemm g = product(type, type);
  g.lda = WHOLE;
  g.more_k = WHOLE - K;
  return check(g, 0);
}

static int more_terms(void)
{
  return terms_of(AMPC_F16);
}

static int more_terms_of_tf32(void)
{
  return terms_of(AMPC_F32);
}

/* As the gradient of a weight: A has gaps, and C has rows behind, which are 0 afterwards. */
static int more_rows(void)
{
  ampc_gemm g = product(AMPC_BF16, AMPC_F32);
  g.trans_a = g.accumulate = true;
  g.lda = WHOLE;
  g.more_m = WHOLE - M;
  return check(g, WHOLE - M);
}

static const Case cases[] = {{"more columns", more_columns, 0, NULL},
                             {"more terms of a sum", more_terms, 0, NULL},
                             {"more terms in tf32", more_terms_of_tf32, 0, NULL},
                             {"more rows", more_rows, 0, NULL}};

static void nothing(void)
{
}

int main(void)
{
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], nothing);
  return check_done();
}
