/* Matrix products by oneDNN, or in programs without it by loops of our own.
 *
 * Note [library threads]
 * A product is divided into blocks of C whose sizes depend only on its shape. The device's pool
 * distributes the blocks, and the library computes each with one thread. So the bits do not depend
 * on the number of threads, and no second set of threads competes for the cores.
 *
 * Note [panels]
 * 16-bit operands are widened into the workspace, one panel at a time. A result that is not f32 is
 * summed there over all of k. It is rounded once, after the bias, when it is stored. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "primitive.h"
#include "product_loops.h"
#include "row_product.h"
#include "runtime/base/convert.h"
#include "runtime/plan/arithmetic.h"
#include "runtime/plan/gemm_tiling.h"
#include "runtime/plan/types.h"

/* EDGE: the approximate edge of a block of C; larger if there would be more than MAX_BLOCKS. SMALL:
 * with fewer multiply-adds, one thread is faster than several that must be woken. */
enum { EDGE = 256, MAX_BLOCKS = 64, SMALL = 1 << 20, CHUNK = 256 };

struct GemmCache {
  Pool *pool;
  bool real64;
  PrimitiveCache *primitives; /* NULL: without oneDNN */
};

typedef struct GemmCall {
  const ampc_gemm *g;
  GemmTiling tiling;
  GemmCache *cache;
  bool real64;
  bool native;     /* the library takes the operands without widening: Note [native bf16] */
  bool fused_bias; /* the library adds the bias */
  bool prepare;    /* only make the primitives */
  const char *a, *b, *bias;
  char *c, *workspace;
  /* the current tile, and the current piece of k */
  int64_t e0, entries, i0, m, j0, n, p0, k;
  int64_t block_m, block_n, blocks_m, blocks_n; /* sizes and numbers of the tile's blocks */
  Primitive *primitive[2][2]; /* [1][]: for the last row; [][1]: for the last column */
  atomic_int failed;          /* the library's status if it failed */
} GemmCall;

/* ---- panels ---- */

typedef struct Panel {
  const char *base;
  ampc_dtype type;
  bool trans;
  int64_t ld, stride;                 /* elements */
  int64_t row, column, rows, columns; /* position and size of the panel, as stored */
  const GemmRoom *room;
  char *wide; /* its widened copy for the first entry; copies are tiling.bytes apart */
} Panel;

static Panel panel_a(const GemmCall *p)
{
  const ampc_gemm *g = p->g;
  Panel panel = {p->a,  g->a_type, g->trans_a, g->lda,       g->stride_a, p->i0,
                 p->p0, p->m,      p->k,       &p->tiling.a, p->workspace};
  if (panel.trans) panel.row = p->p0, panel.column = p->i0, panel.rows = p->k, panel.columns = p->m;
  return panel;
}

static Panel panel_b(const GemmCall *p)
{
  const ampc_gemm *g = p->g;
  Panel panel = {p->b,
                 g->b_type,
                 g->trans_b,
                 g->ldb,
                 g->stride_b,
                 p->p0,
                 p->j0,
                 p->k,
                 p->n,
                 &p->tiling.b,
                 p->workspace ? p->workspace + p->tiling.a.bytes : NULL};
  if (panel.trans) panel.row = p->j0, panel.column = p->p0, panel.rows = p->n, panel.columns = p->k;
  return panel;
}

/* Returns the address of element (row, column) of the panel. `entry` counts the entries that are
 * computed together. */
static const char *panel_at(const GemmCall *p, const Panel *panel, int64_t entry, int64_t row,
                            int64_t column)
{
  if (panel->room->used)
    return panel->wide + entry * p->tiling.bytes +
           (row * panel->room->ld + column) * (int64_t)sizeof(float);
  int64_t at =
      (p->e0 + entry) * panel->stride + (panel->row + row) * panel->ld + panel->column + column;
  return panel->base + at * ampc_size_of(panel->type, p->real64);
}

/* Widens rows [begin, end) of the panels. Rows are numbered over the panels of all entries. */
static void widen_rows(const GemmCall *p, const Panel *panel, int64_t begin, int64_t end)
{
  for (int64_t r = begin; r < end; r++) {
    int64_t entry = r / panel->rows, row = r % panel->rows;
    int64_t at = (p->e0 + entry) * panel->stride + (panel->row + row) * panel->ld + panel->column;
    const char *from = panel->base + at * ampc_dtype_size(panel->type);
    float *to = (float *)(void *)(panel->wide + entry * p->tiling.bytes) + row * panel->room->ld;
    if (p->g->tf32 && panel->type == AMPC_F32) {
      convert_tf32((const float *)(const void *)from, to, panel->columns);
    } else {
      convert_widen(panel->type, from, to, panel->columns);
    }
  }
}

static void widen_share(const GemmCall *p, const Panel *panel, unsigned part, unsigned n_parts)
{
  if (!panel->room->used) return;
  int64_t rows = panel->rows * p->entries;
  widen_rows(p, panel, rows * part / n_parts, rows * (part + 1) / n_parts);
}

static void widen_task(void *context, unsigned part, unsigned n_parts)
{
  const GemmCall *p = context;
  Panel a = panel_a(p), b = panel_b(p);
  widen_share(p, &a, part, n_parts);
  widen_share(p, &b, part, n_parts);
}

/* ---- products ---- */

/* Returns the address of element (row, column) of the tile of sums: in C, or in the workspace. */
static char *sum_at(const GemmCall *p, int64_t entry, int64_t row, int64_t column)
{
  const GemmTiling *t = &p->tiling;
  if (t->c.used)
    return p->workspace + entry * t->bytes + t->a.bytes + t->b.bytes +
           (row * t->c.ld + column) * (int64_t)sizeof(float);
  int64_t at = (p->e0 + entry) * p->g->stride_c + (p->i0 + row) * p->g->ldc + p->j0 + column;
  return p->c + at * ampc_size_of(p->g->c_type, p->real64);
}

/* The operands of a block: one entry of the batch, m rows and n columns of the tile. */
typedef struct BlockPlace {
  GemmOperands at;
  int64_t m, n;
} BlockPlace;

static BlockPlace place_of(const GemmCall *p, int64_t block)
{
  int64_t j = block % p->blocks_n * p->block_n, x = block / p->blocks_n;
  int64_t i = x % p->blocks_m * p->block_m;
  Panel a = panel_a(p), b = panel_b(p);
  x /= p->blocks_m;
  BlockPlace block_at = {.m = least(p->block_m, p->m - i), .n = least(p->block_n, p->n - j)};
  GemmOperands *at = &block_at.at;
  at->a = panel_at(p, &a, x, a.trans ? 0 : i, a.trans ? i : 0);
  at->b = panel_at(p, &b, x, b.trans ? j : 0, b.trans ? 0 : j);
  at->c = sum_at(p, x, i, j);
  if (p->fused_bias && p->p0 == 0)
    at->bias = p->bias + (p->j0 + j) * ampc_dtype_size(p->g->bias_type);
  return block_at;
}

/* Multiplies doubles, which the library cannot do. Only gradient tests use it, at any speed. */
static void multiply_real64(const GemmCall *p, const BlockPlace *at)
{
  const ampc_gemm *g = p->g;
  const double *a = at->at.a, *b = at->at.b;
  int64_t a_row = g->trans_a ? 1 : g->lda, a_depth = g->trans_a ? g->lda : 1;
  int64_t b_column = g->trans_b ? g->ldb : 1, b_depth = g->trans_b ? 1 : g->ldb;
  for (int64_t i = 0; i < at->m; i++) {
    double *row = (double *)at->at.c + i * g->ldc;
    for (int64_t j = 0; j < at->n && !g->accumulate; j++) row[j] = 0;
    for (int64_t d = 0; d < p->k; d++) {
      double factor = a[i * a_row + d * a_depth];
      for (int64_t j = 0; j < at->n; j++) row[j] += factor * b[d * b_depth + j * b_column];
    }
  }
}

/* With k = 0 the library computes nothing, so this clears the block. */
static void clear_block(const GemmCall *p, const BlockPlace *at)
{
  int64_t ldc = p->tiling.c.used ? p->tiling.c.ld : p->g->ldc;
  for (int64_t r = 0; r < at->m && !p->g->accumulate; r++)
    memset((float *)at->at.c + r * ldc, 0, (size_t)at->n * sizeof(float));
}

/* Multiplies by our own loops. */
static void multiply_own(const GemmCall *p, const BlockPlace *at)
{
  const ampc_gemm *g = p->g;
  const GemmTiling *t = &p->tiling;
  int64_t lda = t->a.used ? t->a.ld : g->lda, ldb = t->b.used ? t->b.ld : g->ldb;
  product_loops_run(&(LoopProduct){.m = at->m,
                                   .n = at->n,
                                   .k = p->k,
                                   .a = at->at.a,
                                   .b = at->at.b,
                                   .a_row = g->trans_a ? 1 : lda,
                                   .a_depth = g->trans_a ? lda : 1,
                                   .b_depth = g->trans_b ? 1 : ldb,
                                   .b_column = g->trans_b ? ldb : 1,
                                   .c = at->at.c,
                                   .c_row = t->c.used ? t->c.ld : g->ldc,
                                   .add = p->p0 > 0 || g->accumulate});
}

/* Runs this lane's blocks: every n_lanes-th block of the tile, in all entries. */
static void multiply_task(void *context, unsigned lane, unsigned n_lanes)
{
  GemmCall *p = context;
  for (int64_t x = lane; x < p->entries * p->blocks_m * p->blocks_n; x += n_lanes) {
    BlockPlace at = place_of(p, x);
    if (p->real64) {
      multiply_real64(p, &at);
    } else if (p->k == 0) {
      clear_block(p, &at);
    } else if (!p->cache->primitives) {
      multiply_own(p, &at);
    } else {
      Primitive *primitive = p->primitive[at.m < p->block_m][at.n < p->block_n];
      int bad = primitive_run(p->cache->primitives, primitive, lane, &at.at);
      if (bad) atomic_store(&p->failed, bad);
    }
  }
}

/* Returns the key of the tile's blocks, without their sizes. */
static PrimitiveKey key_of(const GemmCall *p)
{
  const ampc_gemm *g = p->g;
  const GemmTiling *t = &p->tiling;
  PrimitiveKey key = {.k = p->k,
                      .lda = t->a.used ? t->a.ld : g->lda,
                      .ldb = t->b.used ? t->b.ld : g->ldb,
                      .ldc = t->c.used ? t->c.ld : g->ldc,
                      .trans_a = g->trans_a,
                      .trans_b = g->trans_b,
                      .add = p->p0 > 0 || g->accumulate,
                      .has_bias = p->fused_bias && p->p0 == 0,
                      .type = p->native ? g->a_type : AMPC_F32,
                      .c_type = t->c.used ? AMPC_F32 : g->c_type};
  if (key.has_bias) key.bias_type = g->bias_type;
  return key;
}

/* An axis is divided into `blocks` blocks of size `whole`; the last one has size `last`, which may
 * be smaller. Returns whether there is a smaller block, or if not `smaller` a whole one. */
static bool has_blocks(int64_t blocks, int64_t whole, int64_t last, bool smaller)
{
  return smaller ? last < whole : blocks > 1 || last == whole;
}

/* Finds the primitives of the tile's blocks, at most four: blocks of the last row and of the last
 * column may be smaller. */
static ampc_status find_primitives(GemmCall *p)
{
  if (p->real64 || p->k == 0 || !p->cache->primitives) return AMPC_OK;
  PrimitiveKey key = key_of(p);
  int64_t last_m = p->m - (p->blocks_m - 1) * p->block_m;
  int64_t last_n = p->n - (p->blocks_n - 1) * p->block_n;
  ampc_status status = AMPC_OK;
  for (int i = 0; i < 4 && !status; i++) {
    bool row = i / 2, column = i % 2;
    bool any = has_blocks(p->blocks_m, p->block_m, last_m, row) &&
               has_blocks(p->blocks_n, p->block_n, last_n, column);
    key.m = row ? last_m : p->block_m;
    key.n = column ? last_n : p->block_n;
    if (any) status = primitive_get(p->cache->primitives, &key, &p->primitive[row][column]);
  }
  return status;
}

/* ---- the end of a tile: bias, relu, rounding ---- */

/* Returns the largest number that this type rounds to 0: half of its smallest positive number. */
static float vanishing(ampc_dtype d)
{
  return ampc_is_narrow(d) ? (float)(ampc_type_of(d)->least / 2) : 0;
}

/* Computes the result of a relu after rounding: NaN stays, and a negative number that rounds to -0
 * becomes -0. */
static void relu_chunk(float *s, int64_t n, float least)
{
  for (int64_t j = 0; j < n; j++) {
    float below = s[j] >= -least ? -0.0f : 0.0f;
    s[j] = s[j] < 0 ? below : s[j];
  }
}

/* Stores sums after bias and relu. `sum` is f32: C itself, or a row that is rounded to `to`. */
static void store_chunk(const GemmCall *p, char *sum, char *to, const float *bias, int64_t n)
{
  float *s = (float *)(void *)sum;
  if (bias)
    for (int64_t j = 0; j < n; j++) s[j] += bias[j];
  if (p->g->relu) relu_chunk(s, n, vanishing(p->g->c_type));
  if (p->tiling.c.used) convert_narrow(p->g->c_type, s, to, n);
}

static void store_chunk_real64(const GemmCall *p, char *sum, const double *bias, int64_t n)
{
  double *s = (double *)(void *)sum;
  if (bias)
    for (int64_t j = 0; j < n; j++) s[j] += bias[j];
  if (p->g->relu)
    for (int64_t j = 0; j < n; j++) s[j] = s[j] < 0 ? 0 : s[j];
}

/* Stores columns [j, j + n) of the tile. Rows are numbered over the tiles of all entries. */
static void store_rows(const GemmCall *p, int64_t j, int64_t n, int64_t begin, int64_t end)
{
  const ampc_gemm *g = p->g;
  float wide[CHUNK];
  const char *bias =
      g->has_bias ? p->bias + (p->j0 + j) * ampc_size_of(g->bias_type, p->real64) : NULL;
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

static void store_task(void *context, unsigned part, unsigned n_parts)
{
  const GemmCall *p = context;
  int64_t rows = p->m * p->entries;
  for (int64_t j = 0; j < p->n; j += CHUNK)
    store_rows(p, j, least(CHUNK, p->n - j), rows * part / n_parts, rows * (part + 1) / n_parts);
}

/* ---- the whole ---- */

/* Divides `size` into blocks of about `edge`: multiples of 16, which the library prefers, and as
 * equal in size as these allow; the last block may be smaller. */
static void cut(int64_t size, int64_t edge, int64_t *out_block, int64_t *out_blocks)
{
  int64_t blocks = ceil_div(size, edge);
  *out_block = ceil_div(ceil_div(size, blocks), 16) * 16;
  *out_blocks = ceil_div(size, *out_block);
}

/* Widens and multiplies one piece of k. `shares`: into how many parts the pool divides the work; it
 * does not affect the result. */
static ampc_status run_piece(GemmCall *p, unsigned shares)
{
  Pool *pool = p->cache->pool;
  p->k = least(p->tiling.kt, p->g->k - p->p0);
  ampc_status status = find_primitives(p);
  if (status || p->prepare) return status;
  if (p->cache->primitives) status = primitive_cache_allocate(p->cache->primitives);
  if (status) return status;
  if (p->tiling.a.used || p->tiling.b.used) pool_run(pool, widen_task, p, shares);
  pool_run(pool, multiply_task, p, shares);
  return AMPC_OK;
}

/* Sums one tile of C over all pieces of k, then stores it. Blocks depend only on the shape. */
static ampc_status run_tile(GemmCall *p)
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
    ampc_status status = run_piece(p, shares);
    if (status) return status;
    p->p0 += p->tiling.kt;
  } while (p->p0 < g->k);
  if (p->prepare) return AMPC_OK;
  bool adds = g->has_bias && !p->fused_bias;
  if (p->tiling.c.used || adds || g->relu) pool_run(pool, store_task, p, shares);
  return AMPC_OK;
}

bool cpu_takes(const ampc_dtype *types, int n, bool real64)
{
  bool all = true;
  for (int i = 0; i < n; i++) all &= real64 ? types[i] == AMPC_F32 : ampc_is_float(types[i]);
  return all;
}

/* Checks what the loops rely on, because a plan may come from other sources than the compiler. */
static ampc_status check(const ampc_gemm *g, bool real64)
{
  const ampc_dtype types[] = {g->a_type, g->b_type, g->c_type, g->bias_type};
  if (!cpu_takes(types, g->has_bias ? 4 : 3, real64))
    return ampc_fail(AMPC_RUN_FAILED, "the cpu has no matrix product of %s and %s to %s",
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

GemmCache *gemm_cache_create(Pool *pool, bool real64, bool own)
{
  GemmCache *cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  cache->pool = pool;
  cache->real64 = real64;
  if (!own) cache->primitives = primitive_cache_create(pool_threads(pool));
  if (own || cache->primitives) return cache;
  free(cache);
  return NULL;
}

void gemm_cache_free(GemmCache *cache)
{
  if (!cache) return;
  primitive_cache_free(cache->primitives);
  free(cache);
}

int64_t gemm_cache_bytes(const GemmCache *cache)
{
  return cache->primitives ? primitive_cache_bytes(cache->primitives) : 0;
}

bool gemm_cache_is_own(const GemmCache *cache)
{
  return !cache->primitives;
}

/* Whether the library takes this bias together with operands that are not widened. */
static bool has_fitting_bias(const ampc_gemm *g)
{
  return !g->has_bias || g->bias_type == AMPC_F32 || g->bias_type == g->a_type;
}

/* Decides which types the library takes, and whether it adds the bias. */
static void choose_types(GemmCall *p)
{
  const ampc_gemm *g = p->g;
  bool narrow_c = g->c_type == g->a_type && !g->relu && has_fitting_bias(g);
  p->native =
      p->cache->primitives && library_takes(g->a_type) && g->b_type == g->a_type && g->k > 0;
  ampc_gemm in_place = *g;
  if (p->native) in_place.a_type = in_place.b_type = AMPC_F32, in_place.tf32 = false;
  if (p->native && narrow_c) in_place.c_type = AMPC_F32;
  p->tiling = ampc_gemm_tiling(&in_place, p->real64);
  p->fused_bias = g->has_bias && p->cache->primitives && !p->real64 && g->k > 0 &&
                  !p->tiling.c.used && (p->native ? has_fitting_bias(g) : g->bias_type == AMPC_F32);
}

/* Computes the tiles one after the other, because they share the workspace. */
static ampc_status run_tiles(GemmCall *p)
{
  const ampc_gemm *g = p->g;
  ampc_status status = AMPC_OK;
  choose_types(p);
  for (p->e0 = 0; p->e0 < g->batch; p->e0 += p->tiling.entries) {
    p->entries = least(p->tiling.entries, g->batch - p->e0);
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

/* Whether row_product.c computes the product: not if the library takes 16-bit operands as they are,
 * unless there is one row, and the product is too small for the library to use several threads. In
 * programs without oneDNN each sum has the same order for any number of rows. */
static bool takes_row(const GemmCache *cache, const ampc_gemm *g)
{
  if (!cache->primitives || cache->real64 || !row_product_takes(g)) return false;
  bool native = library_takes(g->b_type) && g->a_type == g->b_type;
  return !native || (g->m == 1 && g->k * g->n < SMALL);
}

ampc_status cpu_gemm_prepare(GemmCache *cache, const ampc_gemm *g)
{
  ampc_status status = check(g, cache->real64);
  if (status || g->m == 0 || g->n == 0) return status;
  if (takes_row(cache, g)) return AMPC_OK;
  GemmCall p = {.g = g, .cache = cache, .real64 = cache->real64, .prepare = true};
  return run_tiles(&p);
}

ampc_status cpu_gemm(GemmCache *cache, const ampc_gemm *g, const GemmOperands *at)
{
  ampc_status status = check(g, cache->real64);
  if (status || g->m == 0 || g->n == 0) return status;
  GemmCall p = {.g = g,
                .cache = cache,
                .real64 = cache->real64,
                .a = at->a,
                .b = at->b,
                .bias = at->bias,
                .c = at->c,
                .workspace = at->workspace};
  if (takes_row(cache, g)) {
    row_product_run(cache->pool, g, at);
    return AMPC_OK;
  }
  status = run_tiles(&p);
  int bad = atomic_load(&p.failed);
  return status || !bad ? status : primitive_failed(bad);
}
