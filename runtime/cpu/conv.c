/* Convolutions by oneDNN, or in programs without it by loops of our own.
 *
 * Note [shares]
 * As for products (Note [library threads]), our pool distributes the work and the library computes
 * each share with one thread. A share is some images of the batch. Forward and data: the result of
 * an image does not depend on others. Weight: a fixed number of partial sums, each over fixed
 * images, is added in order. If there are many weights, threads compute slices of the result
 * instead. So the bits do not depend on the number of threads.
 *
 * A lane is a part of a pool task that has space of its own: Note [convolution workspace].
 *
 * Primitives and memory objects are made once for each convolution and kept: see ConvPlan. The
 * library's scratch space is in the workspace. If it does not fit there, the cache allocates one
 * block for all convolutions at the first use. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "conv_plan.h"
#include "conv_product.h"
#include "runtime/base/convert.h"
#include "runtime/plan/conv_sizes.h"

struct ConvCache {
  Pool *pool;
  GemmCache *products;
  bool real64;
  dnnl_engine_t engine;
  ConvPlan **plans;
  size_t n_plans, room, last; /* last: index of the plan that was used last */
  char *scratch;
  int64_t scratch_bytes, allocated; /* bytes that the plans need; bytes of `scratch` */
};

/* ---- what is kept ---------------------------------------------------------------------------- */

ConvCache *conv_cache_create(Pool *pool, GemmCache *products, bool real64)
{
  ConvCache *cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  cache->pool = pool;
  cache->products = products;
  cache->real64 = real64;
  return cache;
}

void conv_cache_free(ConvCache *cache)
{
  if (!cache) return;
  for (size_t i = 0; i < cache->n_plans; i++) conv_plan_free(cache->plans[i]);
  if (cache->engine) dnnl_engine_destroy(cache->engine);
  free(cache->plans);
  free(cache->scratch);
  free(cache);
}

int64_t conv_cache_bytes(const ConvCache *cache)
{
  return cache->scratch_bytes;
}

static bool same_sizes(const ampc_conv *a, const ampc_conv *b)
{
  bool same = a->n == b->n && a->c == b->c && a->k == b->k && a->groups == b->groups &&
              a->spatial == b->spatial;
  for (uint32_t i = 0; same && i < a->spatial; i++)
    same = a->in[i] == b->in[i] && a->kernel[i] == b->kernel[i] && a->out[i] == b->out[i] &&
           a->stride[i] == b->stride[i] && a->pad[i] == b->pad[i] &&
           a->dilation[i] == b->dilation[i];
  return same;
}

static bool same(const ampc_conv *a, const ampc_conv *b)
{
  return a->kind == b->kind && same_sizes(a, b) && a->accumulate == b->accumulate &&
         a->tf32 == b->tf32 && a->has_bias == b->has_bias && a->x_type == b->x_type &&
         a->w_type == b->w_type && a->y_type == b->y_type && a->bias_type == b->bias_type &&
         a->workspace == b->workspace;
}

/* Finds a plan. A step calls them in a fixed order, so the search begins after the last one. */
static ConvPlan *find(ConvCache *cache, const ampc_conv *d)
{
  for (size_t i = 0; i < cache->n_plans; i++) {
    size_t at = (cache->last + 1 + i) % cache->n_plans;
    if (!same(&cache->plans[at]->desc, d)) continue;
    cache->last = at;
    return cache->plans[at];
  }
  return NULL;
}

/* Returns how many lanes run. In a weight gradient, each has a partial sum: the plan sets their
 * number independently of the threads, because it affects the bits. Else threads limit it. */
static int64_t lanes_of(const ConvCache *cache, const ConvPlan *plan)
{
  int64_t threads = pool_threads(cache->pool);
  bool partial = plan->desc.kind == AMPC_CONV_WEIGHT && plan->tiling.slices == 1;
  return plan->lanes < threads || partial ? plan->lanes : threads;
}

/* Whether a weight gradient is computed for a slice of the output channels at a time, because it
 * has many weights. These channels of y are first copied so that they are contiguous. */
static bool is_sliced(const ConvPlan *plan)
{
  return plan->filters < plan->desc.k;
}

/* Whether the library accesses x (or y) in place. Otherwise it is widened, or a slice of it is
 * copied, into the lane's space. */
static bool in_place(const ConvPlan *plan, bool is_x)
{
  const ConvTiling *t = &plan->tiling;
  bool wide = is_x ? t->wide_x : t->wide_y;
  if (!is_x && is_sliced(plan)) return false;
  return !wide || (is_x ? plan->x_type : plan->y_type) != AMPC_F32;
}

/* Whether the library's scratch space fits into the lane's space for copies of x and y. That space
 * is free if the library accesses both x and y in place. */
static bool scratch_fits_images(const ConvPlan *plan)
{
  const ConvTiling *t = &plan->tiling;
  return in_place(plan, true) && in_place(plan, false) && plan->scratch <= t->x + t->y;
}

/* Whether this cache allocates the library's scratch space, which library_bytes then counts. Its
 * size is known only on the machine where it runs; the plan may have reserved less. */
static bool scratch_is_outside(const ConvPlan *plan)
{
  return plan->scratch > plan->tiling.scratch && !scratch_fits_images(plan);
}

static void need_scratch(ConvCache *cache, const ConvPlan *plan)
{
  int64_t bytes = lanes_of(cache, plan) * plan->scratch;
  if (scratch_is_outside(plan) && bytes > cache->scratch_bytes) cache->scratch_bytes = bytes;
}

static ampc_status allocate_scratch(ConvCache *cache)
{
  if (cache->allocated == cache->scratch_bytes) return AMPC_OK;
  free(cache->scratch);
  cache->allocated = 0;
  cache->scratch = aligned_alloc(64, (size_t)cache->scratch_bytes);
  if (!cache->scratch) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a convolution");
  cache->allocated = cache->scratch_bytes;
  return AMPC_OK;
}

/* Adds a plan, which is kept until the cache is freed: a program has few different convolutions. */
static ampc_status add(ConvCache *cache, const ampc_conv *d)
{
  if (cache->n_plans == cache->room) {
    size_t room = cache->room ? 2 * cache->room : 16;
    ConvPlan **plans = realloc(cache->plans, room * sizeof *plans);
    if (!plans) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a convolution");
    cache->plans = plans;
    cache->room = room;
  }
  bool own = gemm_cache_is_own(cache->products);
  if (!own && !cache->engine && dnnl_engine_create(&cache->engine, dnnl_cpu, 0) != dnnl_success)
    return ampc_fail(AMPC_RUN_FAILED, "oneDNN does not start on this machine");
  ampc_status status = conv_plan_create(cache->engine, d, &cache->plans[cache->n_plans]);
  if (status) return status;
  cache->last = cache->n_plans++;
  need_scratch(cache, cache->plans[cache->last]);
  return AMPC_OK;
}

/* ---- one share ---- */

typedef struct Work {
  ConvCache *cache;
  ConvPlan *plan;
  char *x, *w, *y;
  char *lanes; /* the lanes' space: Note [convolution workspace] */
  int64_t n_lanes;
  atomic_int failed; /* the library's status, if not success */
} Work;

typedef struct Rooms { /* addresses in the space of one lane */
  char *x, *y, *sum, *part, *scratch;
} Rooms;

static Rooms rooms_of(const Work *work, int64_t lane)
{
  const ConvTiling *t = &work->plan->tiling;
  Rooms r = {.x = work->lanes + lane * t->lane};
  r.y = r.x + t->x;
  r.sum = r.y + t->y;
  r.part = r.sum + t->sum;
  r.scratch = r.part + t->part;
  if (work->plan->scratch <= t->scratch) return r;
  r.scratch =
      scratch_fits_images(work->plan) ? r.x : work->cache->scratch + lane * work->plan->scratch;
  return r;
}

/* Converts to f32 in `to`. An f32 operand is converted only for tf32, so it is rounded to tf32. */
static void widen(ampc_dtype type, const void *from, char *to, int64_t n)
{
  float *wide = (float *)(void *)to;
  if (type == AMPC_F32) {
    convert_tf32(from, wide, n);
  } else {
    convert_widen(type, from, wide, n);
  }
}

/* Copies the channels of a slice for `rows` pixels of y. Widens them if the library needs f32. */
static void take_slice(const ConvPlan *plan, int64_t slice, const char *y, char *to, int64_t rows)
{
  const ampc_conv *d = &plan->desc;
  int64_t size = ampc_dtype_size(d->y_type), n = plan->filters;
  int64_t step = n * ampc_dtype_size(plan->y_type);
  for (int64_t r = 0; r < rows; r++) {
    const char *from = y + (r * d->k + slice * n) * size;
    if (plan->tiling.wide_y && plan->y_type == AMPC_F32) {
      widen(d->y_type, from, to + r * step, n);
    } else {
      memcpy(to + r * step, from, (size_t)step);
    }
  }
}

/* Computes one share of the batch: widens operands, calls the library, narrows the result. For a
 * weight gradient, `w` is the destination of the share's result in `slice`. */
static void run_share(Work *work, int64_t lane, int64_t share, int64_t slice, char *w)
{
  ConvPlan *plan = work->plan;
  const ampc_conv *d = &plan->desc;
  int64_t first = share * plan->tiling.images;
  int64_t images = share == plan->tiling.shares - 1 ? plan->rest : plan->tiling.images;
  int64_t x_size = conv_in_elements(d), y_size = conv_out_elements(d);
  Rooms r = rooms_of(work, lane);
  char *x = work->x + first * x_size * ampc_dtype_size(d->x_type), *x_used = x;
  char *y = work->y + first * y_size * ampc_dtype_size(d->y_type), *y_used = y;
  if (!in_place(plan, true)) x_used = r.x;
  if (!in_place(plan, false)) y_used = r.y;
  if (x_used != x && d->kind != AMPC_CONV_DATA) widen(d->x_type, x, x_used, images * x_size);
  if (is_sliced(plan)) {
    take_slice(plan, slice, y, y_used, images * conv_out_pixels(d));
  } else if (y_used != y && d->kind != AMPC_CONV_FORWARD) {
    widen(d->y_type, y, y_used, images * y_size);
  }
  /* In a weight gradient of bf16, oneDNN 2.6 reads scratch space that it has not written. It
   * multiplies what it reads by 0, so a NaN there makes the gradient NaN. */
  if (d->kind == AMPC_CONV_WEIGHT && plan->x_type == AMPC_BF16)
    memset(r.scratch, 0, (size_t)plan->scratch);
  const ConvOperands at = {.x = x_used, .w = w, .y = y_used, .workspace = r.scratch};
  dnnl_status_t bad = conv_plan_run(plan, lane, images, &at);
  if (bad) atomic_store(&work->failed, (int)bad);
  if (x_used != x && d->kind == AMPC_CONV_DATA)
    convert_narrow(d->x_type, (float *)(void *)x_used, x, images * x_size);
  if (y_used != y && d->kind == AMPC_CONV_FORWARD)
    convert_narrow(d->y_type, (float *)(void *)y_used, y, images * y_size);
}

/* ---- forward and data ---- */

/* Computes every n_lanes-th share. Which lane computes a share affects no result. */
static void image_task(void *context, unsigned lane, unsigned n_lanes)
{
  Work *work = context;
  for (int64_t s = lane; s < work->plan->tiling.shares; s += n_lanes)
    run_share(work, lane, s, 0, NULL);
}

typedef struct Widening {
  ampc_dtype type;
  const char *from;
  char *to;
  int64_t n;
} Widening;

static void widen_task(void *context, unsigned block, unsigned n_blocks)
{
  const Widening *k = context;
  int64_t begin = k->n * block / n_blocks, end = k->n * (block + 1) / n_blocks;
  widen(k->type, k->from + begin * ampc_dtype_size(k->type), k->to + begin * (int64_t)sizeof(float),
        end - begin);
}

/* Packs all weights, a slice at a time, because the f32 copy holds only one slice. */
static int pack_weights(Work *work, char *packed)
{
  ConvPlan *plan = work->plan;
  const ampc_conv *d = &plan->desc;
  const ConvTiling *t = &plan->tiling;
  int64_t n = conv_weights(d) / t->slices;
  dnnl_status_t bad = dnnl_success;
  for (int64_t s = 0; s < t->slices && !bad; s++) {
    char *w = work->w + s * n * ampc_dtype_size(d->w_type);
    if (t->wide_w && plan->w_type == AMPC_F32) {
      Widening all = {d->w_type, w, work->lanes + t->plain_at, n};
      pool_run(work->cache->pool, widen_task, &all, pool_threads(work->cache->pool));
      w = all.to;
    }
    bad = conv_plan_pack(plan, s, w, packed);
  }
  return (int)bad;
}

static int run_images(Work *work, const void *bias, char *room)
{
  ConvPlan *plan = work->plan;
  const ampc_conv *d = &plan->desc;
  const ConvTiling *t = &plan->tiling;
  char *packed = room + t->bias;
  if (t->bias > 0) {
    convert_widen(d->bias_type, bias, (float *)(void *)room, d->k);
    bias = room;
  }
  int bad = pack_weights(work, packed);
  if (bad) return bad;
  bad = (int)conv_plan_operands(plan, packed, bias);
  if (bad) return bad;
  pool_run(work->cache->pool, image_task, work, (unsigned)work->n_lanes);
  return atomic_load(&work->failed);
}

/* ---- weight ---- */

static void add_floats(const char *from, char *to, int64_t bytes)
{
  const float *part = (const float *)(const void *)from;
  float *sum = (float *)(void *)to;
  int64_t n = bytes / (int64_t)sizeof(float);
  for (int64_t i = 0; i < n; i++) sum[i] += part[i];
}

/* Sums this lane's range of shares. The first share is written to `sum`. Each later one is written
 * to `part`, then added to `sum`. */
static void sum_task(void *context, unsigned lane, unsigned n_lanes)
{
  Work *work = context;
  const ConvTiling *t = &work->plan->tiling;
  Rooms r = rooms_of(work, lane);
  int64_t begin = t->shares * lane / n_lanes, end = t->shares * (lane + 1) / n_lanes;
  for (int64_t s = begin; s < end; s++) {
    run_share(work, lane, s, 0, s == begin ? r.sum : r.part);
    if (s > begin) add_floats(r.part, r.sum, t->sum);
  }
}

/* Adds the partial sums of the other lanes to the sum of lane 0, in their order. `block` adds one
 * of `n_blocks` ranges of the weights. */
static void join_task(void *context, unsigned block, unsigned n_blocks)
{
  const Work *work = context;
  int64_t lines = work->plan->tiling.sum / 64;
  int64_t begin = lines * block / n_blocks * 64, end = lines * (block + 1) / n_blocks * 64;
  char *to = rooms_of(work, 0).sum + begin;
  for (int64_t lane = 1; lane < work->n_lanes; lane++)
    add_floats(rooms_of(work, lane).sum + begin, to, end - begin);
}

typedef struct Finish {
  const ampc_conv *d;
  const char *from;
  char *to;
  int64_t n;
} Finish;

/* Adds an unpacked weight gradient to `to`, or rounds it to the type of `to`. */
static void finish_task(void *context, unsigned block, unsigned n_blocks)
{
  const Finish *f = context;
  const ampc_conv *d = f->d;
  int64_t begin = f->n * block / n_blocks, end = f->n * (block + 1) / n_blocks;
  const char *from = f->from + begin * (int64_t)sizeof(float);
  char *to = f->to + begin * ampc_dtype_size(d->w_type);
  if (d->accumulate) {
    add_floats(from, to, (end - begin) * (int64_t)sizeof(float));
  } else {
    convert_narrow(d->w_type, (const float *)(const void *)from, to, end - begin);
  }
}

/* Computes one slice of a weight gradient on one lane: sums all shares, then unpacks the sum. */
static void run_slice(Work *work, int64_t lane, int64_t slice)
{
  ConvPlan *plan = work->plan;
  const ampc_conv *d = &plan->desc;
  const ConvTiling *t = &plan->tiling;
  Rooms r = rooms_of(work, lane);
  bool direct = d->w_type == AMPC_F32 && !d->accumulate;
  int64_t n = conv_weights(d) / t->slices;
  for (int64_t s = 0; s < t->shares; s++) {
    run_share(work, lane, s, slice, s == 0 ? r.sum : r.part);
    if (s > 0) add_floats(r.part, r.sum, t->sum);
  }
  Finish finish = {d, r.part, work->w + slice * n * ampc_dtype_size(d->w_type), n};
  dnnl_status_t bad = conv_plan_unpack(plan, lane, r.sum, direct ? finish.to : r.part);
  if (bad) atomic_store(&work->failed, (int)bad);
  if (!direct) finish_task(&finish, 0, 1);
}

static void slice_task(void *context, unsigned lane, unsigned n_lanes)
{
  Work *work = context;
  for (int64_t s = lane; s < work->plan->tiling.slices; s += n_lanes) run_slice(work, lane, s);
}

/* Computes a weight gradient: each lane computes slices, or a partial sum, which are then added. */
static int run_weight(Work *work)
{
  ConvPlan *plan = work->plan;
  const ampc_conv *d = &plan->desc;
  Pool *pool = work->cache->pool;
  bool direct = d->w_type == AMPC_F32 && !d->accumulate;
  char *plain = work->lanes + plan->tiling.plain_at;
  if (plan->tiling.slices > 1) {
    pool_run(pool, slice_task, work, (unsigned)work->n_lanes);
    return atomic_load(&work->failed);
  }
  pool_run(pool, sum_task, work, (unsigned)work->n_lanes);
  if (atomic_load(&work->failed)) return atomic_load(&work->failed);
  pool_run(pool, join_task, work, pool_threads(pool));
  dnnl_status_t bad = conv_plan_unpack(plan, 0, rooms_of(work, 0).sum, direct ? work->w : plain);
  if (bad || direct) return (int)bad;
  Finish finish = {d, plain, work->w, conv_weights(d)};
  pool_run(pool, finish_task, &finish, pool_threads(pool));
  return 0;
}

/* ---- the whole ---- */

/* Checks the types, because a plan may come from other sources than the compiler. */
static ampc_status check_types(const ampc_conv *d, bool real64)
{
  const ampc_dtype types[] = {d->x_type, d->w_type, d->y_type, d->bias_type};
  if (!cpu_takes(types, d->has_bias ? 4 : 3, real64))
    return ampc_fail(AMPC_RUN_FAILED, "the cpu has no convolution of %s by %s to %s",
                     ampc_dtype_name(d->x_type), ampc_dtype_name(d->w_type),
                     ampc_dtype_name(d->y_type));
  if (d->accumulate && (d->kind != AMPC_CONV_WEIGHT || d->w_type != AMPC_F32))
    return ampc_fail(AMPC_RUN_FAILED, "only a weight gradient in f32 can be accumulated");
  if (d->has_bias && d->kind != AMPC_CONV_FORWARD)
    return ampc_fail(AMPC_RUN_FAILED, "only a forward convolution has a bias");
  return AMPC_OK;
}

static bool axis_fits(const ampc_conv *d, uint32_t i)
{
  int64_t span = d->in[i] + 2 * d->pad[i] - d->dilation[i] * (d->kernel[i] - 1) - 1;
  return d->in[i] > 0 && d->kernel[i] > 0 && d->stride[i] > 0 && d->pad[i] >= 0 &&
         d->dilation[i] > 0 && span >= 0 && d->out[i] == span / d->stride[i] + 1;
}

static bool sizes_fit(const ampc_conv *d)
{
  bool fits = d->spatial > 0 && d->spatial <= AMPC_MAX_SPATIAL && d->n > 0 && d->groups > 0 &&
              d->c > 0 && d->k > 0 && d->c % d->groups == 0 && d->k % d->groups == 0;
  for (uint32_t i = 0; fits && i < d->spatial; i++) fits = axis_fits(d, i);
  return fits;
}

static ampc_status check(const ampc_conv *d, bool real64)
{
  ampc_status status = check_types(d, real64);
  if (status) return status;
  if (!sizes_fit(d))
    return ampc_fail(AMPC_RUN_FAILED,
                     "broken plan: a convolution over %u dimensions of %lld images from %lld to "
                     "%lld channels in %lld groups, whose sizes do not fit",
                     d->spatial, (long long)d->n, (long long)d->c, (long long)d->k,
                     (long long)d->groups);
  int64_t need = ampc_conv_workspace_cpu(d, real64);
  if (d->workspace < need)
    return ampc_fail(AMPC_RUN_FAILED, "a convolution has %lld bytes of workspace, needs %lld",
                     (long long)d->workspace, (long long)need);
  return AMPC_OK;
}

ampc_status cpu_conv_prepare(ConvCache *cache, const ampc_conv *d)
{
  ampc_status status = check(d, cache->real64);
  if (status) return status;
  if (ampc_conv_tiling(d, cache->real64).product)
    return conv_by_product_prepare(cache->products, cache->real64, d);
  return find(cache, d) ? AMPC_OK : add(cache, d);
}

ampc_status cpu_conv_implementation(ConvCache *cache, const ampc_conv *d, const char **out)
{
  ampc_status status = cpu_conv_prepare(cache, d);
  const ConvPlan *plan = status ? NULL : find(cache, d);
  *out = plan ? plan->name : "product";
  return status;
}

ampc_status cpu_conv(ConvCache *cache, const ampc_conv *d, const ConvOperands *at)
{
  ConvPlan *plan = find(cache, d);
  ampc_status status = plan ? AMPC_OK : check(d, cache->real64);
  if (status) return status;
  if (!plan && ampc_conv_tiling(d, cache->real64).product)
    return conv_by_product(cache->pool, cache->products, cache->real64, d, at);
  if (!plan) status = cpu_conv_prepare(cache, d);
  if (!status) status = allocate_scratch(cache);
  if (status) return status;
  plan = cache->plans[cache->last];
  const ConvTiling *t = &plan->tiling;
  Work work = {.cache = cache, .plan = plan, .x = at->x, .w = at->w, .y = at->y};
  work.lanes = (char *)at->workspace + t->bias + t->packed;
  work.n_lanes = lanes_of(cache, plan);
  int bad =
      d->kind == AMPC_CONV_WEIGHT ? run_weight(&work) : run_images(&work, at->bias, at->workspace);
  if (!bad) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED, "oneDNN failed in a convolution: its status is %d", bad);
}
