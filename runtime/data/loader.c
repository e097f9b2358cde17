/* The batches of a block: all its sources advance together through one index. A thread fills a ring
 * of buffers ahead of the consumer; what is in a batch depends on seed and position alone. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"
#include "order.h"
#include "runtime/base/signals.h"
#include "source.h"

/* Three slots: one that the consumer reads, one that is ready, one that is being filled. */
enum { RING = 3, ALIGN = 64 /* bytes */ };

typedef struct Slot {
  char *bytes; /* the block's sources as they lie in INPUT, from the lowest offset on */
  ampc_data_position position;
  int64_t samples; /* below the block's batch at the end of an epoch that keeps its rest */
} Slot;

struct ampc_batches {
  const ampc_program *program;
  const ampc_block *block;
  uint32_t index; /* of the block */
  uint64_t seed;
  DataSource *sources;
  int64_t samples, per_epoch; /* samples and batches of an epoch */
  int64_t base, bytes;        /* what a batch covers of INPUT */
  int64_t *order;             /* of epoch order_epoch, when it is shuffled; the thread's own */
  int64_t order_epoch;        /* -1: none yet */

  pthread_t thread;
  pthread_mutex_t mutex; /* for all below */
  pthread_cond_t changed;
  bool started, quit;
  Slot ring[RING];
  int64_t filled, taken;    /* slots since the last seek */
  bool held;                /* the consumer still reads slot taken - 1 */
  ampc_data_position ahead; /* of the batch that is filled next */
  uint64_t seeks;           /* so far: a batch that was begun before the last one is dropped */
};

/* ---- the thread ---- */

/* What lies behind the samples of a smaller last batch is of an earlier one and is not read. */
static void fill_slot(ampc_batches *b, Slot *slot)
{
  const ampc_block *block = b->block;
  int64_t first = slot->position.batch * block->batch, left = b->samples - first;
  slot->samples = left < block->batch ? left : block->batch;
  if (block->shuffle && b->order_epoch != slot->position.epoch) {
    order_shuffle(b->order, b->samples, b->seed, b->index, slot->position.epoch);
    b->order_epoch = slot->position.epoch;
  }
  for (uint32_t i = 0; i < block->n_sources; i++) {
    const DataSource *s = &b->sources[i];
    char *to = slot->bytes + (s->desc->offset - b->base);
    if (!block->shuffle) source_copy(s, first, slot->samples, to);
    for (int64_t j = 0; block->shuffle && j < slot->samples; j++)
      source_copy(s, b->order[first + j], 1, to + j * s->sample_bytes);
  }
}

/* The slot that the consumer still reads counts as taken, but may not be filled. */
static bool ring_is_full(const ampc_batches *b)
{
  return b->filled - b->taken + b->held >= RING;
}

/* Fills the slot outside the lock. A seek meanwhile makes its content void. */
static void fill_next(ampc_batches *b)
{
  Slot *slot = &b->ring[b->filled % RING];
  uint64_t seeks = b->seeks;
  slot->position = b->ahead;
  pthread_mutex_unlock(&b->mutex);
  fill_slot(b, slot);
  pthread_mutex_lock(&b->mutex);
  if (seeks != b->seeks) return;
  b->filled++;
  if (++b->ahead.batch == b->per_epoch) {
    b->ahead.batch = 0;
    b->ahead.epoch++;
  }
  pthread_cond_broadcast(&b->changed);
}

static void *prefetch(void *arg)
{
  ampc_batches *b = arg;
  pthread_mutex_lock(&b->mutex);
  while (!b->quit) {
    if (ring_is_full(b)) {
      pthread_cond_wait(&b->changed, &b->mutex);
    } else {
      fill_next(b);
    }
  }
  pthread_mutex_unlock(&b->mutex);
  return NULL;
}

/* ---- opening ---- */

static const char *source_name(const DataSource *s)
{
  return s->path ? s->path : "a synthetic source";
}

/* Whether the samples of the files make the batches that the block was compiled for. With `samples`
 * unknown at compile time (shape=) this is the first place where they are counted. */
static ampc_status check_counts(ampc_batches *b)
{
  const ampc_block *block = b->block;
  if (block->n_sources == 0)
    return ampc_fail(AMPC_BAD_USAGE, "block `%s` has no data", block->name);
  const DataSource *first = &b->sources[0];
  for (uint32_t i = 1; i < block->n_sources; i++)
    if (b->sources[i].count != first->count)
      return ampc_fail(AMPC_BAD_FILE, "%s gives %lld samples, %s gives %lld", source_name(first),
                       (long long)first->count, source_name(&b->sources[i]),
                       (long long)b->sources[i].count);
  b->samples = first->count;
  int64_t rest = b->samples % block->batch;
  b->per_epoch = b->samples / block->batch + (rest && !block->drop_last);
  if (b->per_epoch == 0)
    return ampc_fail(AMPC_BAD_FILE, "%s gives %lld samples, too few for one batch of %lld",
                     source_name(first), (long long)b->samples, (long long)block->batch);
  bool fits =
      !rest || block->drop_last || (block->n_variants == 2 && block->variant[1].batch == rest);
  if (!fits)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s gives %lld samples: the last batch has %lld, for which block `%s` was not "
                     "compiled; compile it again with the data in place",
                     source_name(first), (long long)b->samples, (long long)rest, block->name);
  return AMPC_OK;
}

static ampc_status open_sources(ampc_batches *b, const char *data_dir)
{
  const ampc_block *block = b->block;
  b->sources = calloc(block->n_sources + 1, sizeof *b->sources);
  if (!b->sources) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < block->n_sources && !status; i++)
    status = source_open(b->program, &b->program->sources[block->first_source + i], data_dir,
                         b->seed, &b->sources[i]);
  return status ? status : check_counts(b);
}

/* Slots begin zeroed: gaps between sources are copied to the device and stay the same bytes. */
static ampc_status open_ring(ampc_batches *b)
{
  int64_t end = 0;
  b->base = INT64_MAX;
  for (uint32_t i = 0; i < b->block->n_sources; i++) {
    const DataSource *s = &b->sources[i];
    int64_t last = s->desc->offset + b->block->batch * s->sample_bytes;
    if (s->desc->offset < b->base) b->base = s->desc->offset;
    if (last > end) end = last;
  }
  b->bytes = (end - b->base + ALIGN - 1) / ALIGN * ALIGN;
  for (int i = 0; i < RING; i++) {
    b->ring[i].bytes = aligned_alloc(ALIGN, (size_t)b->bytes);
    if (!b->ring[i].bytes) return ampc_fail(AMPC_RUN_FAILED, "out of memory for batches");
    memset(b->ring[i].bytes, 0, (size_t)b->bytes);
  }
  b->order = b->block->shuffle ? malloc((size_t)b->samples * sizeof *b->order) : NULL;
  b->order_epoch = -1;
  if (b->block->shuffle && !b->order)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for the order of samples");
  return AMPC_OK;
}

/* Also what a failed batches_open leaves: each part is freed if it was made. */
static void batches_close(ampc_batches *b)
{
  if (!b) return;
  if (b->started) {
    pthread_mutex_lock(&b->mutex);
    b->quit = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->mutex);
    pthread_join(b->thread, NULL);
  }
  pthread_mutex_destroy(&b->mutex);
  pthread_cond_destroy(&b->changed);
  for (uint32_t i = 0; b->sources && i < b->block->n_sources; i++) source_close(&b->sources[i]);
  for (int i = 0; i < RING; i++) free(b->ring[i].bytes);
  free(b->sources);
  free(b->order);
  free(b);
}

static ampc_status batches_open(const ampc_program *p, uint32_t block, const char *data_dir,
                                uint64_t seed, ampc_batches **out)
{
  *out = NULL;
  ampc_batches *b = calloc(1, sizeof *b);
  if (!b) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  b->program = p;
  b->block = &p->blocks[block];
  b->index = block;
  b->seed = seed;
  b->ahead.block = block;
  pthread_mutex_init(&b->mutex, NULL);
  pthread_cond_init(&b->changed, NULL);
  ampc_status status = open_sources(b, data_dir);
  if (!status) status = open_ring(b);
  if (!status) {
    b->started = signals_thread(&b->thread, prefetch, b) == 0;
    if (!b->started) status = ampc_fail(AMPC_RUN_FAILED, "cannot start the loader thread");
  }
  if (status) {
    batches_close(b);
  } else {
    *out = b;
  }
  return status;
}

/* ---- reading ---- */

static int64_t batches_per_epoch(const ampc_batches *b)
{
  return b->per_epoch;
}

/* Empties the ring. The position behind the last batch of an epoch, as a checkpoint may hold it, is
 * the beginning of the next epoch. */
static ampc_status batches_seek(ampc_batches *b, ampc_data_position to)
{
  if (to.epoch < 0 || to.batch < 0 || to.batch > b->per_epoch)
    return ampc_fail(
        AMPC_BAD_FILE, "no batch %lld in epoch %lld: an epoch of block `%s` has %lld batches",
        (long long)to.batch, (long long)to.epoch, b->block->name, (long long)b->per_epoch);
  if (to.batch == b->per_epoch) to = (ampc_data_position){.epoch = to.epoch + 1};
  pthread_mutex_lock(&b->mutex);
  b->ahead = (ampc_data_position){to.epoch, to.batch, b->index};
  b->filled = b->taken = 0;
  b->held = false;
  b->seeks++;
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->mutex);
  return AMPC_OK;
}

/* Lets go of the slot handed out before, so that the thread can fill it, and waits for the next. */
static ampc_status batches_next(ampc_batches *b, const void **out_base, int64_t *out_samples,
                                ampc_data_position *out_position)
{
  pthread_mutex_lock(&b->mutex);
  b->held = false;
  pthread_cond_broadcast(&b->changed);
  while (b->filled == b->taken) pthread_cond_wait(&b->changed, &b->mutex);
  const Slot *slot = &b->ring[b->taken++ % RING];
  b->held = true;
  *out_base = slot->bytes;
  *out_samples = slot->samples;
  *out_position = slot->position;
  pthread_mutex_unlock(&b->mutex);
  return AMPC_OK;
}

/* Samples are looked at one after the other, which takes as long as an epoch does to read. */
static bool batches_find_lost(const ampc_batches *b, char *text, size_t size)
{
  for (uint32_t i = 0; i < b->block->n_sources; i++) {
    int64_t sample;
    double value;
    if (!source_find_lost(&b->sources[i], &sample, &value)) continue;
    snprintf(text, size, "sample %lld of %s holds %s", (long long)sample, b->sources[i].path,
             isnan(value) ? "nan"
             : value < 0  ? "-inf"
                          : "inf");
    return true;
  }
  return false;
}

const ampc_data_interface ampc_data = {
    .open = batches_open,
    .per_epoch = batches_per_epoch,
    .seek = batches_seek,
    .next = batches_next,
    .find_lost = batches_find_lost,
    .close = batches_close,
};
