/* oneDNN primitives for blocks of products, in a hash table that only grows. A program needs one
 * for each shape of a block, some dozens.
 *
 * A primitive is made once and run by many lanes (threads of the pool) at the same time. Each lane
 * has its own memory objects and sets their pointers before each run. */
#include "primitive.h"
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include "dnn.h"
#include "common/level.h"
#include "runtime/base/out_of_memory.h"
#include "runtime/plan/types.h"

typedef struct PrimitiveLane { /* made when the lane first runs a block of this kind */
  dnnl_memory_t a, b, bias, c, scratch;
} PrimitiveLane;

struct Primitive {
  PrimitiveKey key;
  dnnl_memory_desc_t a, b, bias, c, scratch;
  dnnl_primitive_t run;
  PrimitiveLane *lane;
};

struct PrimitiveCache {
  dnnl_engine_t engine;
  dnnl_stream_t *stream; /* one per lane */
  unsigned lanes;
  Primitive **table; /* open addressing; `room` is a power of two, at least twice `count` */
  size_t room, count;
  char *scratch; /* `allocated` bytes; each lane uses lane_scratch of them */
  int64_t lane_scratch, allocated;
};

bool library_takes(ampc_dtype t)
{
  unsigned isa = (unsigned)dnnl_get_effective_cpu_isa(), wanted = dnnl_cpu_isa_avx512_core_bf16;
  return t == AMPC_BF16 && ampc_level()->bf16 > 1 && (isa & wanted) == wanted;
}

unsigned library_type(ampc_dtype t)
{
#define LIBRARY_TYPE(KIND, name, SPACE, copy, cpu, ...) [AMPC_##KIND] = cpu,
  static const dnnl_data_type_t types[] = {AMPC_FLOATS(LIBRARY_TYPE)};
  return types[t];
}

/* ---- the table ---- */

PrimitiveCache *primitive_cache_create(unsigned lanes)
{
  PrimitiveCache *cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  cache->lanes = lanes;
  cache->stream = calloc(lanes, sizeof *cache->stream);
  dnnl_status_t bad =
      cache->stream ? dnnl_engine_create(&cache->engine, dnnl_cpu, 0) : dnnl_out_of_memory;
  for (unsigned i = 0; i < lanes && !bad; i++)
    bad = dnnl_stream_create(&cache->stream[i], cache->engine, dnnl_stream_default_flags);
  if (!bad) return cache;
  primitive_cache_free(cache);
  return NULL;
}

static void primitive_free(Primitive *primitive, unsigned lanes)
{
  if (!primitive) return;
  for (unsigned i = 0; primitive->lane && i < lanes; i++) {
    dnnl_memory_destroy(primitive->lane[i].a);
    dnnl_memory_destroy(primitive->lane[i].b);
    dnnl_memory_destroy(primitive->lane[i].bias);
    dnnl_memory_destroy(primitive->lane[i].c);
    dnnl_memory_destroy(primitive->lane[i].scratch);
  }
  dnnl_primitive_destroy(primitive->run);
  free(primitive->lane);
  free(primitive);
}

void primitive_cache_free(PrimitiveCache *cache)
{
  if (!cache) return;
  for (size_t i = 0; i < cache->room; i++) primitive_free(cache->table[i], cache->lanes);
  for (unsigned i = 0; cache->stream && i < cache->lanes; i++)
    dnnl_stream_destroy(cache->stream[i]);
  if (cache->engine) dnnl_engine_destroy(cache->engine);
  free(cache->stream);
  free(cache->table);
  free(cache->scratch);
  free(cache);
}

int64_t primitive_cache_bytes(const PrimitiveCache *cache)
{
  return cache->lane_scratch * cache->lanes;
}

/* Hashes the key's words. The key has no padding: all its members have 8 bytes. */
static uint64_t hash(const PrimitiveKey *key)
{
  const int64_t *word = &key->m;
  uint64_t h = 0;
  for (size_t i = 0; i < sizeof *key / sizeof *word; i++) {
    h = (h ^ (uint64_t)word[i]) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h;
}

/* Returns the entry of the key, or the free entry for it. The table is never full. */
static Primitive **place_of(Primitive **table, size_t room, const PrimitiveKey *key)
{
  size_t at = (size_t)hash(key) & (room - 1);
  while (table[at] && memcmp(&table[at]->key, key, sizeof *key) != 0) at = (at + 1) & (room - 1);
  return &table[at];
}

/* Keeps the table at most half full, so that probing stays short. False: out of memory. */
static bool grow(PrimitiveCache *cache)
{
  if (2 * (cache->count + 1) <= cache->room) return true;
  size_t room = cache->room ? 2 * cache->room : 64;
  Primitive **table = calloc(room, sizeof *table);
  if (!table) return false;
  for (size_t i = 0; i < cache->room; i++)
    if (cache->table[i]) *place_of(table, room, &cache->table[i]->key) = cache->table[i];
  free(cache->table);
  cache->table = table;
  cache->room = room;
  return true;
}

/* Each lane has the largest scratch space of any primitive, because it runs one at a time. */
static void need_scratch(PrimitiveCache *cache, const Primitive *primitive)
{
  int64_t bytes =
      ampc_round_up((int64_t)dnnl_memory_desc_get_size(&primitive->scratch), AMPC_CPU_ALIGN);
  if (bytes > cache->lane_scratch) cache->lane_scratch = bytes;
}

ampc_status primitive_cache_allocate(PrimitiveCache *cache)
{
  int64_t bytes = primitive_cache_bytes(cache);
  if (bytes <= cache->allocated) return AMPC_OK;
  free(cache->scratch);
  cache->scratch = aligned_alloc(AMPC_CPU_ALIGN, (size_t)bytes);
  cache->allocated = cache->scratch ? bytes : 0;
  return cache->scratch ? AMPC_OK
                        : ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
}

/* ---- making ---- */

static dnnl_status_t matrix_desc(dnnl_memory_desc_t *out, int64_t type, int64_t rows,
                                 int64_t columns, int64_t ld, int64_t trans)
{
  dnnl_dims_t size = {rows, columns}, step = {trans ? 1 : ld, trans ? ld : 1};
  return dnnl_memory_desc_init_by_strides(out, 2, size, library_type((ampc_dtype)type), step);
}

/* Describes the key to the library. Strides express transposition. */
static dnnl_status_t describe(Primitive *primitive, dnnl_matmul_desc_t *out)
{
  const PrimitiveKey *k = &primitive->key;
  dnnl_status_t bad = matrix_desc(&primitive->a, k->type, k->m, k->k, k->lda, k->trans_a);
  if (!bad) bad = matrix_desc(&primitive->b, k->type, k->k, k->n, k->ldb, k->trans_b);
  if (!bad) bad = matrix_desc(&primitive->c, k->c_type, k->m, k->n, k->ldc, 0);
  if (!bad && k->has_bias) bad = matrix_desc(&primitive->bias, k->bias_type, 1, k->n, k->n, 0);
  return bad ? bad
             : dnnl_matmul_desc_init(out, &primitive->a, &primitive->b,
                                     k->has_bias ? &primitive->bias : NULL, &primitive->c);
}

/* Makes attributes: the caller provides scratch space; if the key says so, C is added to. */
static dnnl_status_t attributes_of(const PrimitiveKey *key, dnnl_primitive_attr_t *out)
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

static dnnl_status_t make_primitive(PrimitiveCache *cache, Primitive *primitive)
{
  dnnl_matmul_desc_t d;
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_primitive_desc_t desc = NULL;
  dnnl_status_t bad = describe(primitive, &d);
  if (!bad) bad = attributes_of(&primitive->key, &attributes);
  if (!bad) bad = dnnl_primitive_desc_create(&desc, &d, attributes, cache->engine, NULL);
  if (!bad) bad = dnnl_primitive_create(&primitive->run, desc);
  if (!bad) primitive->scratch = *dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  dnnl_primitive_desc_destroy(desc);
  dnnl_primitive_attr_destroy(attributes);
  return bad;
}

static ampc_status make(PrimitiveCache *cache, const PrimitiveKey *key, Primitive **out)
{
  Primitive *primitive = calloc(1, sizeof *primitive);
  if (!primitive) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
  primitive->key = *key;
  primitive->lane = calloc(cache->lanes, sizeof *primitive->lane);
  int threads = dnn_enter();
  bool room = primitive->lane && !out_of_memory_near();
  dnnl_status_t bad = room ? make_primitive(cache, primitive) : dnnl_out_of_memory;
  dnn_leave(threads);
  *out = primitive;
  if (!bad) need_scratch(cache, primitive);
  if (!bad) return AMPC_OK;
  primitive_free(primitive, cache->lanes);
  if (bad == dnnl_out_of_memory) return primitive_failed((int)bad);
  return ampc_fail(
      AMPC_RUN_FAILED,
      "oneDNN cannot do a matrix product [%lld, %lld] x [%lld, %lld]: its status is %d",
      (long long)key->m, (long long)key->k, (long long)key->k, (long long)key->n, (int)bad);
}

ampc_status primitive_get(PrimitiveCache *cache, const PrimitiveKey *key, Primitive **out)
{
  if (!grow(cache)) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
  Primitive **place = place_of(cache->table, cache->room, key);
  if (!*place) {
    Primitive *made = NULL;
    ampc_status status = make(cache, key, &made);
    if (status) return status;
    *place = made;
    cache->count++;
  }
  *out = *place;
  return AMPC_OK;
}

/* ---- running ---- */

ampc_status primitive_failed(int status)
{
  if (status == dnnl_out_of_memory)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for a matrix product");
  return ampc_fail(AMPC_RUN_FAILED, "oneDNN failed in a matrix product: its status is %d", status);
}

/* Makes a lane's objects. Checks the memory first: a lane's first run can generate more kernels. */
static dnnl_status_t make_lane(const PrimitiveCache *cache, const Primitive *primitive,
                               PrimitiveLane *l)
{
  if (out_of_memory_near()) return dnnl_out_of_memory;
  dnnl_engine_t engine = cache->engine;
  dnnl_status_t bad = dnnl_memory_create(&l->a, &primitive->a, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->b, &primitive->b, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->c, &primitive->c, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->bias, &primitive->bias, engine, DNNL_MEMORY_NONE);
  if (!bad) bad = dnnl_memory_create(&l->scratch, &primitive->scratch, engine, DNNL_MEMORY_NONE);
  return bad;
}

/* Runs a block. The first run of a lane makes its memory objects, which only this lane accesses. */
int primitive_run(PrimitiveCache *cache, Primitive *primitive, unsigned lane,
                  const GemmOperands *at)
{
  PrimitiveLane *l = &primitive->lane[lane];
  dnnl_status_t bad = l->scratch ? dnnl_success : make_lane(cache, primitive, l);
  if (!bad) bad = dnnl_memory_set_data_handle(l->a, (void *)at->a);
  if (!bad) bad = dnnl_memory_set_data_handle(l->b, (void *)at->b);
  if (!bad) bad = dnnl_memory_set_data_handle(l->c, at->c);
  if (!bad && at->bias) bad = dnnl_memory_set_data_handle(l->bias, (void *)at->bias);
  char *scratch = cache->scratch ? cache->scratch + lane * cache->lane_scratch : NULL;
  if (!bad) bad = dnnl_memory_set_data_handle(l->scratch, scratch);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, l->a},
                            {DNNL_ARG_WEIGHTS, l->b},
                            {DNNL_ARG_DST, l->c},
                            {DNNL_ARG_SCRATCHPAD, l->scratch},
                            {DNNL_ARG_BIAS, l->bias}};
  if (bad) return (int)bad;
  int threads = dnn_enter();
  bad = dnnl_primitive_execute(primitive->run, cache->stream[lane], at->bias ? 5 : 4, args);
  dnn_leave(threads);
  return (int)bad;
}
