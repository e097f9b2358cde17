/* Matrix products in f32 by loops of our own, for programs without oneDNN and for convolutions.
 *
 * A strip of C has as many columns as two vectors of the processor have numbers. The sums of some
 * of its rows stay in registers. Rows of B that are not contiguous, or shorter than a strip, are
 * first copied to a panel. The file is compiled without contraction, so every processor computes
 * the same bits. */
#include "product_loops.h"
#include <string.h>
#include "common/level.h"
#include "common/machine.h"

enum { DEPTH = 128, WIDEST = 32 }; /* rows and columns of a panel, which lies on the stack */

/* Columns [j, j + n) of C; for each, `depth` products from p on are added. */
typedef struct Strip {
  const LoopProduct *of;
  int64_t j, n, p, depth;
  const float *b; /* its rows are b_row apart and have as many numbers as a whole strip */
  int64_t b_row;
} Strip;

#define INLINE static inline __attribute__((always_inline))

/* Defines NAME_strip(), which computes a strip with vectors of LANES numbers and ROWS rows at a
 * time. NAME_tile() computes `rows` rows from row i on. */
#define STRIP_FUNCTION(NAME, ATTRIBUTE, LANES, ROWS)                                               \
  typedef float NAME##_vector __attribute__((vector_size(4 * (LANES)), aligned(4), may_alias));    \
  ATTRIBUTE INLINE void NAME##_tile(const Strip *s, int64_t i, const int rows)                     \
  {                                                                                                \
    const LoopProduct *o = s->of;                                                                  \
    const float *a = o->a + i * o->a_row + s->p * o->a_depth;                                      \
    float *c = o->c + i * o->c_row + s->j, edge[2 * (LANES)] = {0};                                \
    bool whole = s->n == 2 * (LANES), adds = s->p > 0 || o->add;                                   \
    size_t bytes = (size_t)s->n * sizeof *c;                                                       \
    NAME##_vector sum[ROWS][2] = {0};                                                              \
    for (int r = 0; adds && r < rows; r++) {                                                       \
      if (!whole) memcpy(edge, c + r * o->c_row, bytes);                                           \
      const NAME##_vector *from = (const void *)(whole ? c + r * o->c_row : edge);                 \
      sum[r][0] = from[0];                                                                         \
      sum[r][1] = from[1];                                                                         \
    }                                                                                              \
    for (int64_t d = 0; d < s->depth; d++) {                                                       \
      const NAME##_vector *b = (const void *)(s->b + d * s->b_row);                                \
      for (int r = 0; r < rows; r++) {                                                             \
        float factor = a[r * o->a_row + d * o->a_depth];                                           \
        sum[r][0] += factor * b[0];                                                                \
        sum[r][1] += factor * b[1];                                                                \
      }                                                                                            \
    }                                                                                              \
    for (int r = 0; r < rows; r++) {                                                               \
      NAME##_vector *to = (void *)(whole ? c + r * o->c_row : edge);                               \
      to[0] = sum[r][0];                                                                           \
      to[1] = sum[r][1];                                                                           \
      if (!whole) memcpy(c + r * o->c_row, edge, bytes);                                           \
    }                                                                                              \
  }                                                                                                \
  ATTRIBUTE static void NAME##_strip(const Strip *s)                                               \
  {                                                                                                \
    int64_t i = 0, m = s->of->m;                                                                   \
    for (; i + (ROWS) <= m; i += (ROWS)) NAME##_tile(s, i, ROWS);                                  \
    for (; i + 3 <= m; i += 3) NAME##_tile(s, i, 3);                                               \
    for (; i < m; i++) NAME##_tile(s, i, 1);                                                       \
  }

STRIP_FUNCTION(any_machine, , 4, 6)
STRIP_FUNCTION(for_v3, FOR_V3, 8, 6)
STRIP_FUNCTION(for_v4, FOR_V4, 16, 12)

/* Writes the four rows at `from`, which are `step` apart, as four columns at `to`. */
static void transpose_four(const float *from, int64_t step, float *to, int64_t to_step)
{
  typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
  Four row[4], half[4];
  for (int i = 0; i < 4; i++) row[i] = *(const Four *)(const void *)(from + i * step);
  for (int i = 0; i < 2; i++) {
    half[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 4, 1, 5);
    half[i + 2] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 2, 6, 3, 7);
  }
  for (int i = 0; i < 4; i += 2) {
    *(Four *)(void *)(to + i * to_step) = __builtin_shufflevector(half[i], half[i + 1], 0, 1, 4, 5);
    *(Four *)(void *)(to + (i + 1) * to_step) =
        __builtin_shufflevector(half[i], half[i + 1], 2, 3, 6, 7);
  }
}

/* Copies the strip's rows of B to the panel. Numbers beyond the columns of C are zeros. */
static void pack(const LoopProduct *o, Strip *s, int64_t width, float *panel)
{
  const float *b = o->b + s->p * o->b_depth + s->j * o->b_column;
  s->b = o->b_column == 1 && s->n == width ? b : panel;
  s->b_row = s->b == b ? o->b_depth : width;
  if (s->b == b) return;
  int64_t done = 0; /* rows that are copied */
  for (; o->b_depth == 1 && s->n == width && done + 4 <= s->depth; done += 4)
    for (int64_t v = 0; v < width; v += 4)
      transpose_four(b + v * o->b_column + done, o->b_column, panel + done * width + v, width);
  for (int64_t d = done; d < s->depth; d++) {
    for (int64_t v = 0; v < s->n; v++) panel[d * width + v] = b[d * o->b_depth + v * o->b_column];
    for (int64_t v = s->n; v < width; v++) panel[d * width + v] = 0;
  }
}

void product_loops_run(const LoopProduct *o)
{
  float panel[DEPTH * WIDEST];
  int lanes = ampc_level()->lanes;
  while (lanes > 4 && o->n <= lanes) lanes /= 2;
  int width = 2 * lanes;
  Strip s = {.of = o};
  for (s.p = 0; s.p < o->k; s.p += s.depth) {
    s.depth = o->k - s.p < DEPTH ? o->k - s.p : DEPTH;
    for (s.j = 0; s.j < o->n; s.j += s.n) {
      s.n = o->n - s.j < width ? o->n - s.j : width;
      pack(o, &s, width, panel);
      lanes == 16 ? for_v4_strip(&s) : lanes == 8 ? for_v3_strip(&s) : any_machine_strip(&s);
    }
  }
}
