/* Products of a few rows.
 *
 * Such a product reads each number of B once, so it takes as long as memory needs to deliver them.
 * oneDNN needs 16-bit operands widened on most processors: that moves five times as many bytes.
 * Here numbers are widened in registers. Columns are shared out to the threads of the pool. All
 * rows of A are multiplied by a few columns or rows of B, which are then in a cache, before the
 * next ones. A sum is added up in the same order for any number of rows, so the bits of a row do
 * not depend on the other rows. */
#include "row_product.h"
#include <string.h>
#include "common/level.h"
#include "common/machine.h"
#include "runtime/base/convert.h"
#include "runtime/plan/types.h"

enum { BLOCK = 256, MOST_ROWS = 16 };
enum { LEAST = 1 << 16 };                  /* numbers of B */
enum { ROWS = 4, COLUMNS = 8, DEPTH = 4 }; /* of the sums that registers hold */

typedef struct Row {
  const ampc_gemm *g;
  const GemmOperands *at;
  const float *a; /* A in f32: in place, or widened to the workspace */
  int64_t lda;
  int64_t blocks; /* of BLOCK columns */
} Row;

#define INLINE     static inline __attribute__((always_inline))
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

/* Defines NAME_TYPE_block(), which sums `n` columns from column `first` on, for all rows of A. A
 * number of B is `type`; a vector of LANES of them is widened by WIDEN(NAME, pointer). If
 * columns of B are contiguous, dots() computes `rows` times `columns` sums. Each is a vector of
 * partial sums, in a register, until its end: 1 row by COLUMNS, or ROWS by WIDE. If rows of B are
 * contiguous, adds() adds `depth` of them, each multiplied by a number of A, to sums in memory. */
#define WIDEN_f32(NAME, p) (*(const NAME##_vector *)(const void *)(p))
#define WIDEN_bf16(NAME, p)                                                                        \
  ((NAME##_vector)(__builtin_convertvector(*(const NAME##_half *)(const void *)(p), NAME##_word)   \
                   << 16))
#define ONE_f32(x)  (x)
#define ONE_bf16(x) widened(x)

static inline float widened(uint16_t x)
{
  uint32_t word = (uint32_t)x << 16;
  float f;
  memcpy(&f, &word, sizeof f);
  return f;
}

#define VECTORS(NAME, LANES)                                                                       \
  typedef float NAME##_vector __attribute__((vector_size(4 * (LANES)), aligned(4), may_alias));    \
  typedef uint32_t NAME##_word __attribute__((vector_size(4 * (LANES))));                          \
  typedef uint16_t NAME##_half __attribute__((vector_size(2 * (LANES)), aligned(2), may_alias));

#define COLUMN_FUNCTIONS(NAME, TYPE, type, ATTRIBUTE, LANES, WIDE)                                 \
  ATTRIBUTE INLINE void NAME##_##TYPE##_dots(const float *a, int64_t lda, const type *b,           \
                                             int64_t ld, int64_t k, const int rows,                \
                                             const int columns, float *sum)                        \
  {                                                                                                \
    NAME##_vector part[ROWS][COLUMNS] = {0};                                                       \
    int64_t d = 0;                                                                                 \
    for (; d + (LANES) <= k; d += (LANES))                                                         \
      EACH (c, columns) {                                                                          \
        NAME##_vector w = WIDEN_##TYPE(NAME, b + c * ld + d);                                      \
        EACH (r, rows) part[r][c] += WIDEN_f32(NAME, a + r * lda + d) * w;                         \
      }                                                                                            \
    EACH (r, rows)                                                                                 \
      EACH (c, columns) {                                                                          \
        float all = 0;                                                                             \
        for (int64_t x = d; x < k; x++) all += a[r * lda + x] * ONE_##TYPE(b[c * ld + x]);         \
        for (int x = 0; x < (LANES); x++) all += part[r][c][x];                                    \
        sum[r * BLOCK + c] = all;                                                                  \
      }                                                                                            \
  }                                                                                                \
  ATTRIBUTE INLINE void NAME##_##TYPE##_adds(const float *a, int64_t lda, const type *b,           \
                                             int64_t ld, const int rows, const int depth,          \
                                             int64_t n, float *sum)                                \
  {                                                                                                \
    int64_t j = 0;                                                                                 \
    for (; j + (LANES) <= n; j += (LANES)) {                                                       \
      NAME##_vector s[ROWS];                                                                       \
      EACH (r, rows) s[r] = WIDEN_f32(NAME, sum + r * BLOCK + j);                                  \
      EACH (d, depth) {                                                                            \
        NAME##_vector w = WIDEN_##TYPE(NAME, b + d * ld + j);                                      \
        EACH (r, rows) s[r] += a[r * lda + d] * w;                                                 \
      }                                                                                            \
      EACH (r, rows) *(NAME##_vector *)(void *)(sum + r * BLOCK + j) = s[r];                       \
    }                                                                                              \
    for (; j < n; j++)                                                                             \
      EACH (r, rows)                                                                               \
        EACH (d, depth) sum[r * BLOCK + j] += a[r * lda + d] * ONE_##TYPE(b[d * ld + j]);          \
  }                                                                                                \
  ATTRIBUTE static void NAME##_##TYPE##_block(const Row *o, int64_t first, int64_t n, float *sum)  \
  {                                                                                                \
    const ampc_gemm *g = o->g;                                                                     \
    const type *b = (const type *)o->at->b + first * (g->trans_b ? g->ldb : 1);                    \
    int64_t lda = o->lda, ld = g->ldb, k = g->k, j = 0, d = 0, i;                                  \
    for (; g->trans_b && j + COLUMNS <= n; j += COLUMNS) {                                         \
      for (i = 0; i + ROWS <= g->m; i += ROWS)                                                     \
        for (int c = 0; c < COLUMNS; c += (WIDE))                                                  \
          NAME##_##TYPE##_dots(o->a + i * lda, lda, b + (j + c) * ld, ld, k, ROWS, WIDE,           \
                               sum + i * BLOCK + j + c);                                           \
      for (; i < g->m; i++)                                                                        \
        NAME##_##TYPE##_dots(o->a + i * lda, lda, b + j * ld, ld, k, 1, COLUMNS,                   \
                             sum + i * BLOCK + j);                                                 \
    }                                                                                              \
    for (; g->trans_b && j < n; j++)                                                               \
      for (i = 0; i < g->m; i++)                                                                   \
        NAME##_##TYPE##_dots(o->a + i * lda, lda, b + j * ld, ld, k, 1, 1, sum + i * BLOCK + j);   \
    if (g->trans_b) return;                                                                        \
    memset(sum, 0, (size_t)(g->m * BLOCK) * sizeof *sum);                                          \
    for (; d + DEPTH <= k; d += DEPTH) {                                                           \
      for (i = 0; i + 2 <= g->m; i += 2)                                                           \
        NAME##_##TYPE##_adds(o->a + i * lda + d, lda, b + d * ld, ld, 2, DEPTH, n,                 \
                             sum + i * BLOCK);                                                     \
      for (; i < g->m; i++)                                                                        \
        NAME##_##TYPE##_adds(o->a + i * lda + d, lda, b + d * ld, ld, 1, DEPTH, n,                 \
                             sum + i * BLOCK);                                                     \
    }                                                                                              \
    for (; d < k; d++)                                                                             \
      for (i = 0; i < g->m; i++)                                                                   \
        NAME##_##TYPE##_adds(o->a + i * lda + d, lda, b + d * ld, ld, 1, 1, n, sum + i * BLOCK);   \
  }

#define FUNCTIONS(NAME, ATTRIBUTE, LANES, WIDE)                                                    \
  VECTORS(NAME, LANES)                                                                             \
  COLUMN_FUNCTIONS(NAME, f32, float, ATTRIBUTE, LANES, WIDE)                                       \
  COLUMN_FUNCTIONS(NAME, bf16, uint16_t, ATTRIBUTE, LANES, WIDE)

FUNCTIONS(any_machine, , 4, 2)
FUNCTIONS(for_v3, FOR_V3, 8, 2)
FUNCTIONS(for_v4, FOR_V4, 16, 4)

static void multiply(const Row *o, int64_t first, int64_t n, float *sum)
{
  int lanes = ampc_level()->lanes;
  bool wide = o->g->b_type == AMPC_F32;
  if (lanes == 16)
    (wide ? for_v4_f32_block : for_v4_bf16_block)(o, first, n, sum);
  else if (lanes == 8)
    (wide ? for_v3_f32_block : for_v3_bf16_block)(o, first, n, sum);
  else
    (wide ? any_machine_f32_block : any_machine_bf16_block)(o, first, n, sum);
}

/* Adds C and the bias to n sums of a row, and stores them from column j on. */
static void store(const Row *o, int64_t row, int64_t j, int64_t n, float *sum)
{
  const ampc_gemm *g = o->g;
  char *c = (char *)o->at->c + (row * g->ldc + j) * ampc_dtype_size(g->c_type);
  float more[BLOCK];
  if (g->accumulate) memcpy(more, c, (size_t)n * sizeof *more);
  for (int64_t i = 0; g->accumulate && i < n; i++) sum[i] += more[i];
  const char *bias = o->at->bias;
  if (g->has_bias) convert_widen(g->bias_type, bias + j * ampc_dtype_size(g->bias_type), more, n);
  for (int64_t i = 0; g->has_bias && i < n; i++) sum[i] += more[i];
  convert_narrow(g->c_type, sum, c, n);
}

static void task(void *context, unsigned part, unsigned n_parts)
{
  const Row *o = context;
  float sum[MOST_ROWS * BLOCK];
  for (int64_t i = o->blocks * part / n_parts; i < o->blocks * (part + 1) / n_parts; i++) {
    int64_t first = i * BLOCK, n = o->g->n - first < BLOCK ? o->g->n - first : BLOCK;
    multiply(o, first, n, sum);
    for (int64_t row = 0; row < o->g->m; row++) store(o, row, first, n, sum + row * BLOCK);
  }
}

static int64_t wide_bytes(const ampc_gemm *g)
{
  return g->m * g->k * (int64_t)sizeof(float);
}

bool row_product_takes(const ampc_gemm *g)
{
  bool types = g->b_type == AMPC_F32 || g->b_type == AMPC_BF16;
  int64_t most = g->b_type == AMPC_BF16 ? MOST_ROWS : 1; /* the library multiplies f32 as fast */
  return g->m <= most && g->batch == 1 && types && !g->tf32 && !g->relu && !g->trans_a &&
         g->k * g->n >= LEAST && (g->a_type == AMPC_F32 || g->workspace >= wide_bytes(g));
}

void row_product_run(Pool *pool, const ampc_gemm *g, const GemmOperands *at)
{
  Row row = {.g = g, .at = at, .a = at->a, .lda = g->lda, .blocks = (g->n + BLOCK - 1) / BLOCK};
  if (g->a_type != AMPC_F32) {
    float *wide = at->workspace;
    for (int64_t i = 0; i < g->m; i++)
      convert_widen(g->a_type, (const char *)at->a + i * g->lda * ampc_dtype_size(g->a_type),
                    wide + i * g->k, g->k);
    row.a = wide;
    row.lda = g->k;
  }
  pool_run(pool, task, &row, pool_threads(pool));
}
