/* Blocks of products as oneDNN's primitives: a hash table that only grows. A program has as many
 * kinds of blocks as its products have shapes. */
#include "block.h"
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include "dnn.h"
#include "runtime/base/out_of_memory.h"

typedef struct BlockLane { /* made when the lane runs its first block of this kind */
  dnnl_memory_t a, b, bias, c, scratch;
} BlockLane;

struct Block {
  BlockKey key;
  dnnl_memory_desc_t a, b, bias, c, scratch;
  dnnl_primitive_t run;
  BlockLane *lane;
};

struct BlockCache {
  dnnl_engine_t engine;
  dnnl_stream_t *stream; /* one a lane */
  unsigned lanes;
  Block **table; /* open addressing; `room` is a power of two, less than half full */
  size_t room, count;
  char *scratch; /* `allocated` bytes, of which a lane uses lane_scratch */
  int64_t lane_scratch, allocated;
};

bool has_native_bf16(void)
{
  unsigned isa = (unsigned)dnnl_get_effective_cpu_isa(), wanted = dnnl_cpu_isa_avx512_core_bf16;
  return (isa & wanted) == wanted;
}

/* ---- the table ---- */

BlockCache *block_cache_create(unsigned lanes)
{
  BlockCache *cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  cache->lanes = lanes;
  cache->stream = calloc(lanes, sizeof *cache->stream);
  dnnl_status_t bad =
      cache->stream ? dnnl_engine_create(&cache->engine, dnnl_cpu, 0) : dnnl_out_of_memory;
  for (unsigned i = 0; i < lanes && !bad; i++)
    bad = dnnl_stream_create(&cache->stream[i], cache->engine, dnnl_stream_default_flags);
  if (!bad) return cache;
  block_cache_free(cache);
  return NULL;
}

static void block_free(Block *block, unsigned lanes)
{
  if (!block) return;
  for (unsigned i = 0; block->lane && i < lanes; i++) {
    dnnl_memory_destroy(block->lane[i].a);
    dnnl_memory_destroy(block->lane[i].b);
    dnnl_memory_destroy(block->lane[i].bias);
    dnnl_memory_destroy(block->lane[i].c);
    dnnl_memory_destroy(block->lane[i].scratch);
  }
  dnnl_primitive_destroy(block->run);
  free(block->lane);
  free(block);
}

void block_cache_free(BlockCache *cache)
{
  if (!cache) return;
  for (size_t i = 0; i < cache->room; i++) block_free(cache->table[i], cache->lanes);
  for (unsigned i = 0; cache->stream && i < cache->lanes; i++)
    dnnl_stream_destroy(cache->stream[i]);
  if (cache->engine) dnnl_engine_destroy(cache->engine);
  free(cache->stream);
  free(cache->table);
  free(cache->scratch);
  free(cache);
}

int64_t block_cache_bytes(const BlockCache *cache)
{
  return cache->lane_scratch * cache->lanes;
}

static uint64_t hash(const BlockKey *key)
{
  const int64_t *word = &key->m;
  uint64_t h = 0;
  for (size_t i = 0; i < sizeof *key / sizeof *word; i++) {
    h = (h ^ (uint64_t)word[i]) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h;
}

/* Where the block is or belongs. The table has room. */
static Block **place_of(Block **table, size_t room, const BlockKey *key)
{
  size_t at = (size_t)hash(key) & (room - 1);
  while (table[at] && memcmp(&table[at]->key, key, sizeof *key) != 0) at = (at + 1) & (room - 1);
  return &table[at];
}

static bool grow(BlockCache *cache)
{
  if (2 * (cache->count + 1) <= cache->room) return true;
  size_t room = cache->room ? 2 * cache->room : 64;
  Block **table = calloc(room, sizeof *table);
  if (!table) return false;
  for (size_t i = 0; i < cache->room; i++)
    if (cache->table[i]) *place_of(table, room, &cache->table[i]->key) = cache->table[i];
  free(cache->table);
  cache->table = table;
  cache->room = room;
  return true;
}

static void need_scratch(BlockCache *cache, const Block *block)
{
  int64_t bytes =
      ampc_round_up((int64_t)dnnl_memory_desc_get_size(&block->scratch), AMPC_CPU_ALIGN);
  if (bytes > cache->lane_scratch) cache->lane_scratch = bytes;
}

ampc_status block_cache_allocate(BlockCache *cache)
{
  int64_t bytes = block_cache_bytes(cache);
  if (bytes <= cache->allocated) return AMPC_OK;
  free(cache->scratch);
  cache->scratch = aligned_alloc(AMPC_CPU_ALIGN, (size_t)bytes);
  cache->allocated = cache->scratch ? bytes : 0;
  return cache->scratch ? AMPC_OK
                        : ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
}

/* ---- making ---- */

static dnnl_data_type_t library_type(int64_t t)
{
  return t == AMPC_BF16 ? dnnl_bf16 : dnnl_f32;
}

static dnnl_status_t matrix_desc(dnnl_memory_desc_t *out, int64_t type, int64_t rows,
                                 int64_t columns, int64_t ld, int64_t trans)
{
  dnnl_dims_t size = {rows, columns}, step = {trans ? 1 : ld, trans ? ld : 1};
  return dnnl_memory_desc_init_by_strides(out, 2, size, library_type(type), step);
}

static dnnl_status_t describe(Block *block, dnnl_matmul_desc_t *out)
{
  const BlockKey *k = &block->key;
  dnnl_status_t bad = matrix_desc(&block->a, k->type, k->m, k->k, k->lda, k->trans_a);
  if (!bad) bad = matrix_desc(&block->b, k->type, k->k, k->n, k->ldb, k->trans_b);
  if (!bad) bad = matrix_desc(&block->c, k->c_type, k->m, k->n, k->ldc, 0);
  if (!bad && k->has_bias) bad = matrix_desc(&block->bias, k->bias_type, 1, k->n, k->n, 0);
  return bad ? bad
             : dnnl_matmul_desc_init(out, &block->a, &block->b, k->has_bias ? &block->bias : NULL,
                                     &block->c);
}

/* Scratch space is ours, and C is added to where the key says so. */
static dnnl_status_t attributes_of(const BlockKey *key, dnnl_primitive_attr_t *out)
{
  dnnl_post_ops_t sum = NULL;
  dnnl_status_t bad = dnnl_primitive_attr_create(out);
  if (!bad) bad = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
  if (bad || !key->add) return bad;
  bad = dnnl_post_ops_create(&sum);
  if (!bad) bad = dnnl_post_ops_append_sum(sum, 1);
  if (!bad) bad = dnnl_primitive_attr_set_post_ops(*out, sum);
  dnnl_post_ops_destroy(sum);
  return bad;
}

static dnnl_status_t make_primitive(BlockCache *cache, Block *block)
{
  dnnl_matmul_desc_t d;
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_primitive_desc_t desc = NULL;
  dnnl_status_t bad = describe(block, &d);
  if (!bad) bad = attributes_of(&block->key, &attributes);
  if (!bad) bad = dnnl_primitive_desc_create(&desc, &d, attributes, cache->engine, NULL);
  if (!bad) bad = dnnl_primitive_create(&block->run, desc);
  if (!bad) block->scratch = *dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  dnnl_primitive_desc_destroy(desc);
  dnnl_primitive_attr_destroy(attributes);
  return bad;
}

static ampc_status make_block(BlockCache *cache, const BlockKey *key, Block **out)
{
  Block *block = calloc(1, sizeof *block);
  if (!block) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
  block->key = *key;
  block->lane = calloc(cache->lanes, sizeof *block->lane);
  int threads = dnn_enter();
  bool room = block->lane && !out_of_memory_near();
  dnnl_status_t bad = room ? make_primitive(cache, block) : dnnl_out_of_memory;
  dnn_leave(threads);
  *out = block;
  if (!bad) need_scratch(cache, block);
  if (!bad) return AMPC_OK;
  block_free(block, cache->lanes);
  if (bad == dnnl_out_of_memory) return block_failed((int)bad);
  return ampc_fail(
      AMPC_RUN_FAILED,
      "oneDNN cannot do a matrix product [%lld, %lld] x [%lld, %lld]: its status is %d",
      (long long)key->m, (long long)key->k, (long long)key->k, (long long)key->n, (int)bad);
}

ampc_status block_get(BlockCache *cache, const BlockKey *key, Block **out)
{
  if (!grow(cache)) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
  Block **place = place_of(cache->table, cache->room, key);
  if (!*place) {
    Block *made = NULL;
    ampc_status status = make_block(cache, key, &made);
    if (status) return status;
    *place = made;
    cache->count++;
  }
  *out = *place;
  return AMPC_OK;
}

/* ---- running ---- */

ampc_status block_failed(int status)
{
  if (status == dnnl_out_of_memory)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
  return ampc_fail(AMPC_RUN_FAILED, "oneDNN failed in a matrix product: its status is %d", status);
}

/* What a lane runs for the first time may make kernels that its creation did not make. */
static dnnl_status_t make_lane(const BlockCache *cache, const Block *block, BlockLane *l)
{
  if (out_of_memory_near()) return dnnl_out_of_memory;
  dnnl_engine_t engine = cache->engine;
  dnnl_status_t bad = dnnl_memory_create(&l->a, &block->a, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->b, &block->b, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->c, &block->c, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->bias, &block->bias, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->scratch, &block->scratch, engine, DNNL_MEMORY_NONE);
  return bad;
}

int block_run(BlockCache *cache, Block *block, unsigned lane, const void *a, const void *b,
              const void *bias, void *c)
{
  BlockLane *l = &block->lane[lane];
  dnnl_status_t bad = l->scratch ? dnnl_success : make_lane(cache, block, l);
  if (!bad) bad = dnnl_memory_set_data_handle(l->a, (void *)a);
  if (!bad) bad = dnnl_memory_set_data_handle(l->b, (void *)b);
  if (!bad) bad = dnnl_memory_set_data_handle(l->c, c);
  if (!bad && bias) bad = dnnl_memory_set_data_handle(l->bias, (void *)bias);
  char *scratch = cache->scratch + lane * cache->lane_scratch;
  if (!bad) bad = dnnl_memory_set_data_handle(l->scratch, scratch);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, l->a},
                            {DNNL_ARG_WEIGHTS, l->b},
                            {DNNL_ARG_DST, l->c},
                            {DNNL_ARG_SCRATCHPAD, l->scratch},
                            {DNNL_ARG_BIAS, l->bias}};
  if (bad) return (int)bad;
  int threads = dnn_enter();
  bad = dnnl_primitive_execute(block->run, cache->stream[lane], bias ? 5 : 4, args);
  dnn_leave(threads);
  return (int)bad;
}
