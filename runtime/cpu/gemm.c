/* Matrix products by oneDNN.
 *
 * Note [library threads]
 * The product is cut into blocks of C whose sizes depend on its shape alone, the device's pool
 * shares them out and the library computes each with one thread. So the bits do not depend on the
 * number of threads, and no second set of threads competes for the cores.
 *
 * Note [panels]
 * 16-bit operands are widened panel by panel into the workspace. A result that is not f32 is summed
 * there over all of k and rounded once, after the bias, when it is stored. */
#include <limits.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>
#include "convert.h"
#include "cpu.h"
#include "dnn.h"
#include "gemm_tiling.h"

/* EDGE: C in blocks of about this size; larger when there would be more than MAX_BLOCKS. Below
 * SMALL multiply-adds one thread is quicker than telling others. */
enum { EDGE = 256, MAX_BLOCKS = 64, SMALL = 1 << 20, CHUNK = 256 };

typedef struct Product {
  const ampc_gemm *g;
  GemmTiling tiling;
  bool real64;
  const char *a, *b, *bias;
  char *c, *workspace;
  /* the tile being computed, and the piece of k */
  int64_t e0, entries, i0, m, j0, n, p0, k;
  int64_t block_m, block_n, blocks_m, blocks_n; /* of the tile */
} Product;

static int64_t ceil_div(int64_t a, int64_t b)
{
  return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int64_t size_of(const Product *p, ampc_dtype t)
{
  return p->real64 ? (int64_t)sizeof(double) : ampc_dtype_size(t);
}

/* ---- panels --------------------------------------------------------------------------------- */

typedef struct Operand {
  const char *base;
  ampc_dtype type;
  bool trans;
  int64_t ld, stride;                 /* elements */
  int64_t row, column, rows, columns; /* the panel, as stored */
  const GemmRoom *room;
  char *panel; /* of the group's first entry; entries are tiling.bytes apart */
} Operand;

static Operand operand_a(const Product *p)
{
  const ampc_gemm *g = p->g;
  Operand o = {p->a,  g->a_type, g->trans_a, g->lda,       g->stride_a, p->i0,
               p->p0, p->m,      p->k,       &p->tiling.a, p->workspace};
  if (o.trans) o.row = p->p0, o.column = p->i0, o.rows = p->k, o.columns = p->m;
  return o;
}

static Operand operand_b(const Product *p)
{
  const ampc_gemm *g = p->g;
  Operand o = {p->b,
               g->b_type,
               g->trans_b,
               g->ldb,
               g->stride_b,
               p->p0,
               p->j0,
               p->k,
               p->n,
               &p->tiling.b,
               p->workspace + p->tiling.a.bytes};
  if (o.trans) o.row = p->j0, o.column = p->p0, o.rows = p->n, o.columns = p->k;
  return o;
}

/* Where the element (row, column) of the panel lies, for the entry-th of the group. */
static const char *operand_at(const Product *p, const Operand *o, int64_t entry, int64_t row,
                              int64_t column)
{
  if (o->room->used)
    return o->panel + entry * p->tiling.bytes +
           (row * o->room->ld + column) * (int64_t)sizeof(float);
  int64_t at = (p->e0 + entry) * o->stride + (o->row + row) * o->ld + o->column + column;
  return o->base + at * size_of(p, o->type);
}

static void widen_rows(const Product *p, const Operand *o, int64_t begin, int64_t end)
{
  for (int64_t r = begin; r < end; r++) {
    int64_t entry = r / o->rows, row = r % o->rows;
    int64_t at = (p->e0 + entry) * o->stride + (o->row + row) * o->ld + o->column;
    const char *from = o->base + at * ampc_dtype_size(o->type);
    float *to = (float *)(void *)(o->panel + entry * p->tiling.bytes) + row * o->room->ld;
    if (p->g->tf32 && o->type == AMPC_F32) {
      convert_tf32((const float *)(const void *)from, to, o->columns);
    } else {
      convert_widen(o->type, from, to, o->columns);
    }
  }
}

static void widen_share(const Product *p, const Operand *o, unsigned block, unsigned n_blocks)
{
  if (!o->room->used) return;
  int64_t rows = o->rows * p->entries;
  widen_rows(p, o, rows * block / n_blocks, rows * (block + 1) / n_blocks);
}

static void widen_task(void *context, unsigned block, unsigned n_blocks)
{
  const Product *p = context;
  Operand a = operand_a(p), b = operand_b(p);
  widen_share(p, &a, block, n_blocks);
  widen_share(p, &b, block, n_blocks);
}

/* ---- products ------------------------------------------------------------------------------- */

/* Element (row, column) of the tile of C that is summed: in place, or in the workspace. */
static char *sum_at(const Product *p, int64_t entry, int64_t row, int64_t column)
{
  const GemmTiling *t = &p->tiling;
  if (t->c.used)
    return p->workspace + entry * t->bytes + t->a.bytes + t->b.bytes +
           (row * t->c.ld + column) * (int64_t)sizeof(float);
  int64_t at = (p->e0 + entry) * p->g->stride_c + (p->i0 + row) * p->g->ldc + p->j0 + column;
  return p->c + at * size_of(p, AMPC_F32);
}

/* Doubles, which the library does not know: for tests of gradients, where speed is no matter. */
static void multiply_real64(const Product *p, const Operand *oa, const Operand *ob, const double *a,
                            const double *b, double *c, int64_t m, int64_t n)
{
  int64_t a_row = oa->trans ? 1 : oa->ld, a_depth = oa->trans ? oa->ld : 1;
  int64_t b_column = ob->trans ? ob->ld : 1, b_depth = ob->trans ? 1 : ob->ld;
  for (int64_t i = 0; i < m; i++) {
    double *row = c + i * p->g->ldc;
    for (int64_t j = 0; j < n && !p->g->accumulate; j++) row[j] = 0;
    for (int64_t d = 0; d < p->k; d++) {
      double factor = a[i * a_row + d * a_depth];
      for (int64_t j = 0; j < n; j++) row[j] += factor * b[d * b_depth + j * b_column];
    }
  }
}

static void multiply_task(void *context, unsigned block, unsigned n_blocks)
{
  const Product *p = context;
  (void)n_blocks;
  int64_t x = block, i, j;
  j = x % p->blocks_n * p->block_n, x /= p->blocks_n;
  i = x % p->blocks_m * p->block_m, x /= p->blocks_m;
  int64_t m = least(p->block_m, p->m - i), n = least(p->block_n, p->n - j);
  Operand oa = operand_a(p), ob = operand_b(p);
  const void *a = operand_at(p, &oa, x, oa.trans ? 0 : i, oa.trans ? i : 0);
  const void *b = operand_at(p, &ob, x, ob.trans ? j : 0, ob.trans ? 0 : j);
  void *c = sum_at(p, x, i, j);
  if (p->real64) {
    multiply_real64(p, &oa, &ob, a, b, c, m, n);
    return;
  }
  int64_t lda = oa.room->used ? oa.room->ld : oa.ld, ldb = ob.room->used ? ob.room->ld : ob.ld;
  int64_t ldc = p->tiling.c.used ? p->tiling.c.ld : p->g->ldc;
  float beta = p->p0 > 0 || p->g->accumulate ? 1 : 0;
  if (p->k == 0) { /* the library would leave C as it is */
    for (int64_t r = 0; r < m && beta == 0; r++)
      memset((float *)c + r * ldc, 0, (size_t)n * sizeof(float));
    return;
  }
  int threads = dnn_enter();
  dnnl_sgemm(oa.trans ? 'T' : 'N', ob.trans ? 'T' : 'N', m, n, p->k, 1, a, lda, b, ldb, beta, c,
             ldc);
  dnn_leave(threads);
}

/* ---- the end of a tile: bias, rounding ---------------------------------------------------------
 */

static void store_chunk(const Product *p, char *sum, char *to, const float *bias, int64_t n)
{
  float *s = (float *)(void *)sum;
  if (bias)
    for (int64_t j = 0; j < n; j++) s[j] += bias[j];
  if (p->tiling.c.used) convert_narrow(p->g->c_type, s, to, n);
}

static void store_chunk_real64(char *sum, const double *bias, int64_t n)
{
  double *s = (double *)(void *)sum;
  for (int64_t j = 0; j < n; j++) s[j] += bias[j];
}

static void store_rows(const Product *p, int64_t j, int64_t n, int64_t begin, int64_t end)
{
  const ampc_gemm *g = p->g;
  float wide[CHUNK];
  const char *bias = g->has_bias ? p->bias + (p->j0 + j) * size_of(p, g->bias_type) : NULL;
  if (bias && !p->real64) convert_widen(g->bias_type, bias, wide, n);
  for (int64_t r = begin; r < end; r++) {
    int64_t entry = r / p->m, row = r % p->m;
    int64_t at = (p->e0 + entry) * g->stride_c + (p->i0 + row) * g->ldc + p->j0 + j;
    char *sum = sum_at(p, entry, row, j);
    if (p->real64) {
      store_chunk_real64(sum, (const double *)(const void *)bias, n);
    } else {
      store_chunk(p, sum, p->c + at * ampc_dtype_size(g->c_type), bias ? wide : NULL, n);
    }
  }
}

static void store_task(void *context, unsigned block, unsigned n_blocks)
{
  const Product *p = context;
  int64_t rows = p->m * p->entries;
  for (int64_t j = 0; j < p->n; j += CHUNK)
    store_rows(p, j, least(CHUNK, p->n - j), rows * block / n_blocks,
               rows * (block + 1) / n_blocks);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void cut(int64_t size, int64_t edge, int64_t *out_block, int64_t *out_blocks)
{
  int64_t blocks = ceil_div(size, edge);
  *out_block = ceil_div(ceil_div(size, blocks), 16) * 16;
  *out_blocks = ceil_div(size, *out_block);
}

static void run_tile(Pool *pool, Product *p)
{
  const ampc_gemm *g = p->g;
  int64_t work = p->m * p->n * g->k, edge = EDGE;
  while (ceil_div(p->m, edge) * ceil_div(p->n, edge) > MAX_BLOCKS) edge *= 2;
  if (work < SMALL) edge = p->m > p->n ? p->m : p->n;
  cut(p->m, edge, &p->block_m, &p->blocks_m);
  cut(p->n, edge, &p->block_n, &p->blocks_n);
  unsigned shares = work * p->entries < SMALL ? 1 : pool_threads(pool);
  p->p0 = 0;
  do {
    p->k = least(p->tiling.kt, g->k - p->p0);
    if (p->tiling.a.used || p->tiling.b.used) pool_run(pool, widen_task, p, shares);
    pool_run(pool, multiply_task, p, (unsigned)(p->entries * p->blocks_m * p->blocks_n));
    p->p0 += p->tiling.kt;
  } while (p->p0 < g->k);
  if (p->tiling.c.used || g->has_bias) pool_run(pool, store_task, p, shares);
}

static bool is_float(ampc_dtype t)
{
  return t == AMPC_F32 || t == AMPC_F16 || t == AMPC_BF16;
}

static ampc_status check(const ampc_gemm *g, bool real64)
{
  bool types = is_float(g->a_type) && is_float(g->b_type) && is_float(g->c_type) &&
               (!g->has_bias || is_float(g->bias_type));
  bool all32 = g->a_type == AMPC_F32 && g->b_type == AMPC_F32 && g->c_type == AMPC_F32 &&
               (!g->has_bias || g->bias_type == AMPC_F32);
  if (!types || (real64 && !all32))
    return ampc_fail(AMPC_RUN_FAILED, "no matrix product of %s and %s to %s on the cpu",
                     ampc_dtype_name(g->a_type), ampc_dtype_name(g->b_type),
                     ampc_dtype_name(g->c_type));
  if (g->accumulate && g->c_type != AMPC_F32)
    return ampc_fail(AMPC_RUN_FAILED, "a matrix product cannot be added to a result in %s",
                     ampc_dtype_name(g->c_type));
  if (g->workspace < ampc_gemm_workspace_cpu(g, real64))
    return ampc_fail(AMPC_RUN_FAILED, "a matrix product has %lld bytes of workspace, needs %lld",
                     (long long)g->workspace, (long long)ampc_gemm_workspace_cpu(g, real64));
  int64_t largest = g->m | g->n | g->k | g->lda | g->ldb | g->ldc; /* >= each of them */
  if (largest > INT_MAX)
    return ampc_fail(AMPC_RUN_FAILED, "a matrix product [%lld, %lld] x [%lld, %lld] is too large",
                     (long long)g->m, (long long)g->k, (long long)g->k, (long long)g->n);
  return AMPC_OK;
}

ampc_status cpu_gemm(Pool *pool, bool real64, const ampc_gemm *g, const void *a, const void *b,
                     const void *bias, void *c, void *workspace)
{
  ampc_status status = check(g, real64);
  if (status || g->m == 0 || g->n == 0) return status;
  Product p = {.g = g,
               .tiling = gemm_tiling(g, real64),
               .real64 = real64,
               .a = a,
               .b = b,
               .bias = bias,
               .c = c,
               .workspace = workspace};
  for (p.e0 = 0; p.e0 < g->batch; p.e0 += p.tiling.group) {
    p.entries = least(p.tiling.group, g->batch - p.e0);
    for (p.i0 = 0; p.i0 < g->m; p.i0 += p.tiling.mt) {
      p.m = least(p.tiling.mt, g->m - p.i0);
      for (p.j0 = 0; p.j0 < g->n; p.j0 += p.tiling.nt) {
        p.n = least(p.tiling.nt, g->n - p.j0);
        run_tile(pool, &p);
      }
    }
  }
  return AMPC_OK;
}
