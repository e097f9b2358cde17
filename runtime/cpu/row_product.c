/* Products of one row.
 *
 * Such a product reads each number of B once, so it takes as long as memory needs to deliver them.
 * oneDNN needs 16-bit operands widened on most processors: that moves five times as many bytes.
 * Here numbers are widened in registers. Columns are shared out to the threads of the pool. */
#include "row_product.h"
#include <string.h>
#include "common/level.h"
#include "common/machine.h"
#include "runtime/base/convert.h"
#include "runtime/plan/types.h"

enum { COLUMNS = 256, LEAST = 1 << 16 /* numbers of B */, ROWS = 4 };

typedef struct Row {
  const ampc_gemm *g;
  const GemmOperands *at;
  const float *a; /* A, widened */
  int64_t blocks; /* of COLUMNS columns */
} Row;

#define INLINE static inline __attribute__((always_inline))

/* Defines NAME_columns(), which sums `n` columns from column j on. A number of B is `type`; a
 * vector of LANES of them is widened by WIDEN(NAME, pointer). If the columns of B are contiguous,
 * ROWS of them are summed at a time, with one vector of partial sums each; else ROWS rows of B are
 * added to all sums at a time. */
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

#define COLUMN_FUNCTIONS(NAME, TYPE, type, ATTRIBUTE, LANES)                                       \
  ATTRIBUTE INLINE void NAME##_##TYPE##_dots(const float *a, const type *b, int64_t ld, int64_t k, \
                                             int rows, float *sum)                                 \
  {                                                                                                \
    NAME##_vector part[ROWS][2] = {0};                                                             \
    int64_t d = 0;                                                                                 \
    for (; d + 2 * (LANES) <= k; d += 2 * (LANES))                                                 \
      for (int r = 0; r < rows; r++) {                                                             \
        part[r][0] += WIDEN_f32(NAME, a + d) * WIDEN_##TYPE(NAME, b + r * ld + d);                 \
        part[r][1] +=                                                                              \
            WIDEN_f32(NAME, a + d + (LANES)) * WIDEN_##TYPE(NAME, b + r * ld + d + (LANES));       \
      }                                                                                            \
    for (int r = 0; r < rows; r++) {                                                               \
      NAME##_vector both = part[r][0] + part[r][1];                                                \
      sum[r] = 0;                                                                                  \
      for (int64_t x = d; x < k; x++) sum[r] += a[x] * ONE_##TYPE(b[r * ld + x]);                  \
      for (int x = 0; x < (LANES); x++) sum[r] += both[x];                                         \
    }                                                                                              \
  }                                                                                                \
  ATTRIBUTE INLINE void NAME##_##TYPE##_adds(const float *a, const type *b, int64_t ld, int rows,  \
                                             int64_t n, float *sum)                                \
  {                                                                                                \
    int64_t j = 0;                                                                                 \
    for (; j + (LANES) <= n; j += (LANES)) {                                                       \
      NAME##_vector s = WIDEN_f32(NAME, sum + j);                                                  \
      for (int r = 0; r < rows; r++) s += a[r] * WIDEN_##TYPE(NAME, b + r * ld + j);               \
      *(NAME##_vector *)(void *)(sum + j) = s;                                                     \
    }                                                                                              \
    for (; j < n; j++)                                                                             \
      for (int r = 0; r < rows; r++) sum[j] += a[r] * ONE_##TYPE(b[r * ld + j]);                   \
  }                                                                                                \
  ATTRIBUTE static void NAME##_##TYPE##_columns(const Row *o, int64_t first, int64_t n,            \
                                                float *sum)                                        \
  {                                                                                                \
    const ampc_gemm *g = o->g;                                                                     \
    const type *b = (const type *)o->at->b + first * (g->trans_b ? g->ldb : 1);                    \
    int64_t ld = g->ldb, k = g->k, j = 0, d = 0;                                                   \
    for (; g->trans_b && j + ROWS <= n; j += ROWS)                                                 \
      NAME##_##TYPE##_dots(o->a, b + j * ld, ld, k, ROWS, sum + j);                                \
    for (; g->trans_b && j < n; j++) NAME##_##TYPE##_dots(o->a, b + j * ld, ld, k, 1, sum + j);    \
    if (g->trans_b) return;                                                                        \
    memset(sum, 0, (size_t)n * sizeof *sum);                                                       \
    for (; d + ROWS <= k; d += ROWS) NAME##_##TYPE##_adds(o->a + d, b + d * ld, ld, ROWS, n, sum); \
    for (; d < k; d++) NAME##_##TYPE##_adds(o->a + d, b + d * ld, ld, 1, n, sum);                  \
  }

#define FUNCTIONS(NAME, ATTRIBUTE, LANES)                                                          \
  VECTORS(NAME, LANES)                                                                             \
  COLUMN_FUNCTIONS(NAME, f32, float, ATTRIBUTE, LANES)                                             \
  COLUMN_FUNCTIONS(NAME, bf16, uint16_t, ATTRIBUTE, LANES)

FUNCTIONS(any_machine, , 4)
FUNCTIONS(for_v3, FOR_V3, 8)
FUNCTIONS(for_v4, FOR_V4, 16)

static void columns(const Row *o, int64_t first, int64_t n, float *sum)
{
  int lanes = ampc_level()->lanes;
  bool wide = o->g->b_type == AMPC_F32;
  if (lanes == 16)
    (wide ? for_v4_f32_columns : for_v4_bf16_columns)(o, first, n, sum);
  else if (lanes == 8)
    (wide ? for_v3_f32_columns : for_v3_bf16_columns)(o, first, n, sum);
  else
    (wide ? any_machine_f32_columns : any_machine_bf16_columns)(o, first, n, sum);
}

/* Adds C and the bias, and stores n columns from column j on. */
static void store(const Row *o, int64_t j, int64_t n, float *sum)
{
  const ampc_gemm *g = o->g;
  char *c = (char *)o->at->c + j * ampc_dtype_size(g->c_type);
  float more[COLUMNS];
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
  float sum[COLUMNS];
  for (int64_t i = o->blocks * part / n_parts; i < o->blocks * (part + 1) / n_parts; i++) {
    int64_t first = i * COLUMNS, n = o->g->n - first < COLUMNS ? o->g->n - first : COLUMNS;
    columns(o, first, n, sum);
    store(o, first, n, sum);
  }
}

bool row_product_takes(const ampc_gemm *g)
{
  enum { MOST = 1 << 14 };
  bool types = g->b_type == AMPC_F32 || g->b_type == AMPC_BF16;
  return g->m == 1 && g->batch == 1 && types && !g->tf32 && !g->relu && !g->trans_a &&
         g->k <= MOST && g->k * g->n >= LEAST;
}

void row_product_run(Pool *pool, const ampc_gemm *g, const GemmOperands *at)
{
  float a[g->k];
  convert_widen(g->a_type, at->a, a, g->k);
  Row row = {.g = g, .at = at, .a = a, .blocks = (g->n + COLUMNS - 1) / COLUMNS};
  pool_run(pool, task, &row, pool_threads(pool));
}
