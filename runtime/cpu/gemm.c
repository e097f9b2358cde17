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
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "block.h"
#include "runtime/base/convert.h"
#include "runtime/plan/gemm_tiling.h"

/* EDGE: C in blocks of about this size; larger when there would be more than MAX_BLOCKS. Below
 * SMALL multiply-adds one thread is quicker than telling others. */
enum { EDGE = 256, MAX_BLOCKS = 64, SMALL = 1 << 20, CHUNK = 256 };

struct GemmCache {
  Pool *pool;
  bool real64;
  BlockCache *blocks;
};

typedef struct Product {
  const ampc_gemm *g;
  GemmTiling tiling;
  GemmCache *cache;
  bool real64;
  bool native;     /* operands are bf16 and the library takes them: Note [native bf16] */
  bool fused_bias; /* the library adds it */
  bool prepare;    /* only make what is needed */
  const char *a, *b, *bias;
  char *c, *workspace;
  /* the tile being computed, and the piece of k */
  int64_t e0, entries, i0, m, j0, n, p0, k;
  int64_t block_m, block_n, blocks_m, blocks_n; /* of the tile */
  Block *block[2][2];                           /* [1]: of the last row, of the last column */
  atomic_int failed;                            /* the library's status */
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
  return p->c + at * size_of(p, p->g->c_type);
}

/* The operands of a block: one entry of the group, from row i and column j of the tile on. */
typedef struct BlockPlace {
  const void *a, *b, *bias;
  void *c;
  int64_t i, j, m, n;
} BlockPlace;

static BlockPlace place_of(const Product *p, int64_t block)
{
  int64_t j = block % p->blocks_n * p->block_n, x = block / p->blocks_n;
  int64_t i = x % p->blocks_m * p->block_m;
  Operand oa = operand_a(p), ob = operand_b(p);
  x /= p->blocks_m;
  BlockPlace at = {.i = i, .j = j};
  at.m = least(p->block_m, p->m - i);
  at.n = least(p->block_n, p->n - j);
  at.a = operand_at(p, &oa, x, oa.trans ? 0 : i, oa.trans ? i : 0);
  at.b = operand_at(p, &ob, x, ob.trans ? j : 0, ob.trans ? 0 : j);
  at.c = sum_at(p, x, i, j);
  if (p->fused_bias && p->p0 == 0)
    at.bias = p->bias + (p->j0 + j) * ampc_dtype_size(p->g->bias_type);
  return at;
}

/* Doubles, which the library does not know: for tests of gradients, where speed is no matter. */
static void multiply_real64(const Product *p, const BlockPlace *at)
{
  const ampc_gemm *g = p->g;
  const double *a = at->a, *b = at->b;
  int64_t a_row = g->trans_a ? 1 : g->lda, a_depth = g->trans_a ? g->lda : 1;
  int64_t b_column = g->trans_b ? g->ldb : 1, b_depth = g->trans_b ? 1 : g->ldb;
  for (int64_t i = 0; i < at->m; i++) {
    double *row = (double *)at->c + i * g->ldc;
    for (int64_t j = 0; j < at->n && !g->accumulate; j++) row[j] = 0;
    for (int64_t d = 0; d < p->k; d++) {
      double factor = a[i * a_row + d * a_depth];
      for (int64_t j = 0; j < at->n; j++) row[j] += factor * b[d * b_depth + j * b_column];
    }
  }
}

/* A product over nothing, which the library leaves undone. */
static void clear_block(const Product *p, const BlockPlace *at)
{
  int64_t ldc = p->tiling.c.used ? p->tiling.c.ld : p->g->ldc;
  for (int64_t r = 0; r < at->m && !p->g->accumulate; r++)
    memset((float *)at->c + r * ldc, 0, (size_t)at->n * sizeof(float));
}

static void multiply_task(void *context, unsigned lane, unsigned n_lanes)
{
  Product *p = context;
  for (int64_t x = lane; x < p->entries * p->blocks_m * p->blocks_n; x += n_lanes) {
    BlockPlace at = place_of(p, x);
    if (p->real64) {
      multiply_real64(p, &at);
    } else if (p->k == 0) {
      clear_block(p, &at);
    } else {
      Block *block = p->block[at.m < p->block_m][at.n < p->block_n];
      int bad = block_run(p->cache->blocks, block, lane, at.a, at.b, at.bias, at.c);
      if (bad) atomic_store(&p->failed, bad);
    }
  }
}

/* The primitives of the tile's blocks. */
static ampc_status find_blocks(Product *p)
{
  const ampc_gemm *g = p->g;
  const GemmTiling *t = &p->tiling;
  if (p->real64 || p->k == 0) return AMPC_OK;
  BlockKey key = {.k = p->k,
                  .lda = t->a.used ? t->a.ld : g->lda,
                  .ldb = t->b.used ? t->b.ld : g->ldb,
                  .ldc = t->c.used ? t->c.ld : g->ldc,
                  .trans_a = g->trans_a,
                  .trans_b = g->trans_b,
                  .add = p->p0 > 0 || g->accumulate,
                  .has_bias = p->fused_bias && p->p0 == 0,
                  .type = p->native ? AMPC_BF16 : AMPC_F32,
                  .c_type = t->c.used ? AMPC_F32 : g->c_type};
  if (key.has_bias) key.bias_type = g->bias_type;
  int64_t last_m = p->m - (p->blocks_m - 1) * p->block_m;
  int64_t last_n = p->n - (p->blocks_n - 1) * p->block_n;
  ampc_status status = AMPC_OK;
  for (int i = 0; i < 4 && !status; i++) {
    bool row = i / 2, column = i % 2;
    bool any = row ? last_m < p->block_m : p->blocks_m > 1 || last_m == p->block_m;
    any &= column ? last_n < p->block_n : p->blocks_n > 1 || last_n == p->block_n;
    key.m = row ? last_m : p->block_m;
    key.n = column ? last_n : p->block_n;
    if (any) status = block_get(p->cache->blocks, &key, &p->block[row][column]);
  }
  return status;
}

/* ---- the end of a tile: bias, relu, rounding ---------------------------------------------------
 */

static void store_chunk(const Product *p, char *sum, char *to, const float *bias, int64_t n)
{
  float *s = (float *)(void *)sum;
  if (bias)
    for (int64_t j = 0; j < n; j++) s[j] += bias[j];
  if (p->g->relu)
    for (int64_t j = 0; j < n; j++) s[j] = s[j] <= 0 ? 0 : s[j];
  if (p->tiling.c.used) convert_narrow(p->g->c_type, s, to, n);
}

static void store_chunk_real64(const Product *p, char *sum, const double *bias, int64_t n)
{
  double *s = (double *)(void *)sum;
  if (bias)
    for (int64_t j = 0; j < n; j++) s[j] += bias[j];
  if (p->g->relu)
    for (int64_t j = 0; j < n; j++) s[j] = s[j] <= 0 ? 0 : s[j];
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
      store_chunk_real64(p, sum, (const double *)(const void *)bias, n);
    } else {
      bool adds = bias && !p->fused_bias;
      store_chunk(p, sum, p->c + at * ampc_dtype_size(g->c_type), adds ? wide : NULL, n);
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

static ampc_status run_tile(Product *p)
{
  const ampc_gemm *g = p->g;
  Pool *pool = p->cache->pool;
  int64_t work = p->m * p->n * g->k, edge = EDGE;
  while (ceil_div(p->m, edge) * ceil_div(p->n, edge) > MAX_BLOCKS) edge *= 2;
  if (work < SMALL) edge = p->m > p->n ? p->m : p->n;
  cut(p->m, edge, &p->block_m, &p->blocks_m);
  cut(p->n, edge, &p->block_n, &p->blocks_n);
  unsigned shares = work * p->entries < SMALL ? 1 : pool_threads(pool);
  p->p0 = 0;
  do {
    p->k = least(p->tiling.kt, g->k - p->p0);
    ampc_status status = find_blocks(p);
    if (!status && !p->prepare) status = block_cache_allocate(p->cache->blocks);
    if (status) return status;
    bool widens = p->tiling.a.used || p->tiling.b.used;
    if (widens && !p->prepare) pool_run(pool, widen_task, p, shares);
    if (!p->prepare) pool_run(pool, multiply_task, p, shares);
    p->p0 += p->tiling.kt;
  } while (p->p0 < g->k);
  if (p->prepare) return AMPC_OK;
  bool adds = g->has_bias && !p->fused_bias;
  if (p->tiling.c.used || adds || g->relu) pool_run(pool, store_task, p, shares);
  return AMPC_OK;
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

GemmCache *gemm_cache_create(Pool *pool, bool real64)
{
  GemmCache *cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  cache->pool = pool;
  cache->real64 = real64;
  cache->blocks = block_cache_create(pool_threads(pool));
  if (cache->blocks) return cache;
  free(cache);
  return NULL;
}

void gemm_cache_free(GemmCache *cache)
{
  if (!cache) return;
  block_cache_free(cache->blocks);
  free(cache);
}

int64_t gemm_cache_bytes(const GemmCache *cache)
{
  return block_cache_bytes(cache->blocks);
}

/* How the library is used: on which types, and who adds the bias. */
static void choose_types(Product *p)
{
  const ampc_gemm *g = p->g;
  bool narrow_c = g->c_type == AMPC_BF16 && !g->relu && !(g->has_bias && g->bias_type == AMPC_F16);
  p->native = g->a_type == AMPC_BF16 && g->b_type == AMPC_BF16 && g->k > 0 && has_native_bf16();
  ampc_gemm in_place = *g;
  if (p->native) in_place.a_type = in_place.b_type = AMPC_F32, in_place.tf32 = false;
  if (p->native && narrow_c) in_place.c_type = AMPC_F32;
  p->tiling = ampc_gemm_tiling(&in_place, p->real64);
  p->fused_bias = g->has_bias && !p->real64 && g->k > 0 && !p->tiling.c.used &&
                  (g->bias_type == AMPC_F32 || (p->native && g->bias_type == AMPC_BF16));
}

static ampc_status run_tiles(Product *p)
{
  const ampc_gemm *g = p->g;
  ampc_status status = AMPC_OK;
  choose_types(p);
  for (p->e0 = 0; p->e0 < g->batch; p->e0 += p->tiling.group) {
    p->entries = least(p->tiling.group, g->batch - p->e0);
    for (p->i0 = 0; p->i0 < g->m; p->i0 += p->tiling.mt) {
      p->m = least(p->tiling.mt, g->m - p->i0);
      for (p->j0 = 0; p->j0 < g->n && !status; p->j0 += p->tiling.nt) {
        p->n = least(p->tiling.nt, g->n - p->j0);
        status = run_tile(p);
      }
    }
  }
  return status;
}

ampc_status cpu_gemm_prepare(GemmCache *cache, const ampc_gemm *g)
{
  ampc_status status = check(g, cache->real64);
  if (status || g->m == 0 || g->n == 0) return status;
  Product p = {.g = g, .cache = cache, .real64 = cache->real64, .prepare = true};
  return run_tiles(&p);
}

ampc_status cpu_gemm(GemmCache *cache, const ampc_gemm *g, const void *a, const void *b,
                     const void *bias, void *c, void *workspace)
{
  ampc_status status = check(g, cache->real64);
  if (status || g->m == 0 || g->n == 0) return status;
  Product p = {.g = g,
               .cache = cache,
               .real64 = cache->real64,
               .a = a,
               .b = b,
               .bias = bias,
               .c = c,
               .workspace = workspace};
  status = run_tiles(&p);
  int bad = atomic_load(&p.failed);
  return status || !bad ? status : block_failed(bad);
}
