/* The batches of a block: all its sources advance together. Threads fill a ring of buffers ahead of
 * the consumer. The contents of a batch depend on seed and position only, not on the number of
 * threads. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ampc_rt.h"
#include "order.h"
#include "runtime/base/data_threads.h"
#include "runtime/base/signals.h"
#include "source.h"
#include "common/needs.h"

/* A slot is a buffer of the ring. The consumer reads one, one is ready, one is being filled. */
enum { RING = 3, ALIGN = 64 /* bytes */, MOST_THREADS = AMPC_MOST_DATA_THREADS, WHY = 1024 };
enum { MOST_UNASKED = 16 /* threads, if their number is not set */ };

typedef struct Slot {
  char *bytes; /* the block's sources in the layout of INPUT, from the lowest offset on */
  ampc_data_position position;
  int64_t samples;     /* fewer than the block's batch for an epoch's last batch that is kept */
  int64_t from, own;   /* the slot has samples [from, from + own) of these: those of this process */
  int64_t *index;      /* indices of the slot's samples, if they are shuffled */
  int64_t begun, done; /* samples that threads have begun; samples that are done */
} Slot;

struct ampc_batches {
  const ampc_program *program;
  const ampc_block *block;
  uint32_t index; /* index of the block */
  uint64_t seed;
  DataSource *sources;
  int64_t samples, per_epoch; /* samples and batches of an epoch */
  int64_t base, bytes;        /* the range of INPUT that a batch covers */
  int64_t first, end, shares; /* of each batch, this process reads shares [first, end) */
  int64_t piece;              /* samples that a thread takes at once */
  int64_t *order; /* order of the samples in epoch order_epoch, if shuffled; used by the thread that
                     opens a slot */
  int64_t order_epoch; /* -1: no order yet */
  Balance balance;     /* of a block that balances classes */

  pthread_t threads[MOST_THREADS];
  int n_threads;
  pthread_mutex_t mutex; /* protects all fields below */
  pthread_cond_t changed;
  bool quit, seeking, opening; /* opening: one thread prepares the next slot */
  int busy;                    /* threads that fill samples */
  Slot ring[RING];
  int64_t opened, filled, taken; /* number of slots since the last seek */
  bool held;                     /* the consumer still reads slot taken - 1 */
  ampc_data_position ahead;      /* position of the slot that is opened next */
  ampc_status failed; /* status of a failed sample; after a failure no new samples begin */
  int64_t failed_at;  /* the first failed sample, counted since the last seek */
  char why[WHY];
};

/* ---- the threads ---- */

/* Fills samples [first, first + n) of the slot, from all sources. They belong to one share, which
 * begins at `share` in the slot, and are sample `at` of it and the following ones. */
static ampc_status fill_share(const ampc_batches *b, const Slot *slot, char *share, int64_t at,
                              int64_t first, int64_t n)
{
  int64_t epoch = slot->position.epoch;
  int64_t from = slot->position.batch * b->block->batch + slot->from + first;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < b->block->n_sources; i++) {
    const DataSource *s = &b->sources[i];
    char *to = share + (s->desc->offset - b->base) + at * s->sample_bytes;
    if (!slot->index) status = source_copy(s, from, n, epoch, to);
    for (int64_t j = 0; slot->index && j < n && !status; j++)
      status = source_copy(s, slot->index[first + j], 1, epoch, to + j * s->sample_bytes);
    if (status) return status;
  }
  return AMPC_OK;
}

/* Returns where share i begins in a batch of that many samples. */
static int64_t share_begin(const ampc_batches *b, int64_t samples, int64_t i)
{
  return samples * i / b->shares;
}

/* Fills samples [first, first + n) of the slot, share by share. */
static ampc_status fill_samples(const ampc_batches *b, const Slot *slot, int64_t first, int64_t n)
{
  ampc_status status = AMPC_OK;
  for (int64_t i = b->first; i < b->end && !status; i++) {
    int64_t begin = share_begin(b, slot->samples, i) - slot->from;
    int64_t end = share_begin(b, slot->samples, i + 1) - slot->from;
    int64_t from = first > begin ? first : begin, to = first + n < end ? first + n : end;
    if (from < to)
      status = fill_share(b, slot, slot->bytes + (i - b->first) * b->bytes, from - begin, from,
                          to - from);
  }
  return status;
}

/* Keeps the failure that comes first in the order of the data, not in time. */
static void keep_failure(ampc_batches *b, ampc_status status, int64_t at)
{
  if (b->failed && b->failed_at <= at) return;
  b->failed = status;
  b->failed_at = at;
  snprintf(b->why, sizeof b->why, "%s", ampc_last_error());
}

/* Counts the slots that are filled, in their order. */
static void note_filled(ampc_batches *b)
{
  while (b->filled < b->opened && b->ring[b->filled % RING].done == b->ring[b->filled % RING].own)
    b->filled++;
}

/* Fills samples outside the lock. After the samples of a smaller last batch the slot keeps samples
 * of an earlier batch, which are not used. */
static void fill_some(ampc_batches *b)
{
  int64_t number = b->opened - 1;
  Slot *slot = &b->ring[number % RING];
  int64_t first = slot->begun, left = slot->own - first, n = left < b->piece ? left : b->piece;
  slot->begun += n;
  b->busy++;
  pthread_mutex_unlock(&b->mutex);
  ampc_status status = fill_samples(b, slot, first, n);
  pthread_mutex_lock(&b->mutex);
  b->busy--;
  if (status) {
    keep_failure(b, status, number * b->block->batch + first);
  } else {
    slot->done += n;
  }
  note_filled(b);
  pthread_cond_broadcast(&b->changed);
}

/* Opens the next slot. Computes the order of an epoch outside the lock, in one thread at a time. */
static void open_slot(ampc_batches *b)
{
  Slot *slot = &b->ring[b->opened % RING];
  const ampc_block *block = b->block;
  b->opening = true;
  slot->position = b->ahead;
  pthread_mutex_unlock(&b->mutex);
  int64_t first = slot->position.batch * block->batch, left = b->samples - first;
  slot->samples = left < block->batch ? left : block->batch;
  slot->from = share_begin(b, slot->samples, b->first);
  slot->own = share_begin(b, slot->samples, b->end) - slot->from;
  if (block->shuffle && b->order_epoch != slot->position.epoch) {
    if (block->balance)
      order_balance(&b->balance, b->order, b->samples, b->seed, b->index, slot->position.epoch);
    else
      order_shuffle(b->order, b->samples, b->seed, b->index, slot->position.epoch);
    b->order_epoch = slot->position.epoch;
  }
  if (slot->index)
    memcpy(slot->index, b->order + first + slot->from, (size_t)slot->own * sizeof *b->order);
  slot->begun = slot->done = 0;
  pthread_mutex_lock(&b->mutex);
  b->opening = false;
  b->opened++;
  note_filled(b);
  if (++b->ahead.batch == b->per_epoch) {
    b->ahead.batch = 0;
    b->ahead.epoch++;
  }
  pthread_cond_broadcast(&b->changed);
}

/* Whether a sample is left to fill. Only the slot that was opened last can have such samples. */
static bool has_work(const ampc_batches *b)
{
  const Slot *last = &b->ring[(b->opened + RING - 1) % RING];
  return b->opened > b->filled && last->begun < last->own;
}

/* Whether no slot may be filled. The slot that the consumer still reads counts as taken. */
static bool ring_is_full(const ampc_batches *b)
{
  return b->opened - b->taken + b->held >= RING;
}

static void *prefetch(void *arg)
{
  ampc_batches *b = arg;
  pthread_mutex_lock(&b->mutex);
  while (!b->quit) {
    if (b->failed || b->seeking) {
      pthread_cond_wait(&b->changed, &b->mutex);
    } else if (has_work(b)) {
      fill_some(b);
    } else if (!b->opening && !ring_is_full(b)) {
      open_slot(b);
    } else {
      pthread_cond_wait(&b->changed, &b->mutex);
    }
  }
  pthread_mutex_unlock(&b->mutex);
  return NULL;
}

/* ---- opening ---- */

/* Checks that the samples of the files form the batches that the block was compiled for. An infer
 * block accepts any number of samples: results for the padding of its last batch are ignored. If
 * `samples` was unknown at compile time (shape=), they are counted here for the first time. */
static ampc_status check_counts(ampc_batches *b)
{
  const ampc_block *block = b->block;
  const DataSource *first = &b->sources[0];
  b->samples = first->count;
  int64_t rest = b->samples % block->batch;
  b->per_epoch = b->samples / block->batch + (rest && !block->drop_last);
  if (b->per_epoch == 0)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld samples, too few for one batch of %lld",
                     source_path(first), (long long)b->samples, (long long)block->batch);
  bool fits = !rest || block->drop_last || block->kind == AMPC_INFER ||
              block->variant[block->n_variants - 1].batch == rest;
  if (!fits)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has %lld samples: the last batch has %lld, for which block `%s` was not "
                     "compiled; compile it again with the data in place",
                     source_path(first), (long long)b->samples, (long long)rest, block->name);
  return AMPC_OK;
}

static ampc_status open_sources(ampc_batches *b, const char *data_dir)
{
  const ampc_block *block = b->block;
  if (block->n_sources == 0)
    return ampc_fail(AMPC_BAD_USAGE, "block `%s` has no data", block->name);
  ampc_status status = sources_open(b->program, &b->program->sources[block->first_source],
                                    block->n_sources, data_dir, b->seed, &b->sources);
  return status ? status : check_counts(b);
}

/* Allocates zeroed slots: gaps between sources are copied to the device, too, and must not vary. */
static ampc_status open_ring(ampc_batches *b)
{
  b->base = INT64_MAX;
  for (uint32_t i = 0; i < b->block->n_sources; i++)
    if (b->sources[i].desc->offset < b->base) b->base = b->sources[i].desc->offset;
  b->bytes = ampc_share_bytes(b->program, b->index, b->shares);
  size_t bytes = (size_t)(b->bytes * (b->end - b->first));
  for (int i = 0; i < RING; i++) {
    b->ring[i].bytes = aligned_alloc(ALIGN, bytes);
    if (!b->ring[i].bytes) return ampc_fail(AMPC_RUN_FAILED, "out of memory for batches");
    memset(b->ring[i].bytes, 0, bytes);
    if (!b->block->shuffle) continue;
    b->ring[i].index = malloc((size_t)b->block->batch * sizeof *b->order);
    if (!b->ring[i].index) return ampc_fail(AMPC_RUN_FAILED, "out of memory for batches");
  }
  return AMPC_OK;
}

static void close_ring(ampc_batches *b)
{
  for (int i = 0; i < RING; i++) {
    free(b->ring[i].bytes);
    free(b->ring[i].index);
    b->ring[i].bytes = NULL;
    b->ring[i].index = NULL;
  }
}

/* Groups the samples by the labels of the block's source. Labels that losses ignore are no class.
 */
static ampc_status open_balance(ampc_batches *b)
{
  int64_t *label = NULL;
  const DataSource *s = &b->sources[b->block->balance - 1];
  ampc_status status = source_read_labels(s, &label);
  const int64_t *ignored = s->desc->ignored ? &s->desc->ignored : NULL;
  if (!status && !balance_open(&b->balance, label, b->samples, ignored))
    status = ampc_fail(AMPC_RUN_FAILED, "out of memory for the order of samples");
  if (!status && !b->balance.classes)
    status = ampc_fail(AMPC_BAD_FILE, "%s: all labels are ignored, so `balance` finds no class",
                       source_path(s));
  free(label);
  return status;
}

static ampc_status open_order(ampc_batches *b)
{
  b->order_epoch = -1;
  b->order = b->block->shuffle ? malloc((size_t)b->samples * sizeof *b->order) : NULL;
  if (b->block->shuffle && !b->order)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for the order of samples");
  return b->block->balance ? open_balance(b) : AMPC_OK;
}

/* Closes; also frees what a failed batches_open has left. */
static void batches_close(ampc_batches *b)
{
  if (!b) return;
  pthread_mutex_lock(&b->mutex);
  b->quit = true;
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->mutex);
  for (int i = 0; i < b->n_threads; i++) pthread_join(b->threads[i], NULL);
  pthread_mutex_destroy(&b->mutex);
  pthread_cond_destroy(&b->changed);
  sources_close(b->sources, b->block->n_sources);
  close_ring(b);
  free(b->order);
  balance_close(&b->balance);
  free(b);
}

static int threads_that_work(void)
{
  cpu_set_t cpus;
  int asked = data_threads(),
      n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  return asked ? asked : n < MOST_UNASKED ? n : MOST_UNASKED;
}

/* Starts the threads: if samples are costly to produce, one per processor or as many as requested;
 * if samples are only copied, one, because memory is the limit. */
static ampc_status start_threads(ampc_batches *b)
{
  bool works = false;
  for (uint32_t i = 0; i < b->block->n_sources; i++) works = works || b->sources[i].format->works;
  b->piece = works ? 1 : b->block->batch;
  int wanted = works ? threads_that_work() : 1;
  while (b->n_threads < wanted && signals_thread(&b->threads[b->n_threads], prefetch, b) == 0)
    b->n_threads++;
  return b->n_threads ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "cannot start the loader thread");
}

static ampc_status batches_open(const ampc_program *p, uint32_t block, const char *data_dir,
                                uint64_t seed, ampc_batches **out)
{
  NEEDS(p && out && block < p->n_blocks);
  *out = NULL;
  ampc_batches *b = calloc(1, sizeof *b);
  if (!b) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  b->program = p;
  b->block = &p->blocks[block];
  b->index = block;
  b->shares = p->members ? p->members : 1;
  b->end = b->shares;
  b->seed = seed;
  b->ahead.block = block;
  pthread_mutex_init(&b->mutex, NULL);
  pthread_cond_init(&b->changed, NULL);
  ampc_status status = open_sources(b, data_dir);
  if (!status) status = open_order(b);
  if (!status) status = open_ring(b);
  if (!status) status = start_threads(b);
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
  if (!b) return 0;
  return b->per_epoch;
}

/* Empties the ring and continues at `to`. A checkpoint may hold the position after the last batch
 * of an epoch, which is the beginning of the next epoch. */
static ampc_status batches_seek(ampc_batches *b, ampc_data_position to)
{
  NEEDS(b);
  if (to.epoch < 0 || to.batch < 0 || to.batch > b->per_epoch)
    return ampc_fail(
        AMPC_BAD_FILE, "no batch %lld in epoch %lld: an epoch of block `%s` has %lld batches",
        (long long)to.batch, (long long)to.epoch, b->block->name, (long long)b->per_epoch);
  if (to.batch == b->per_epoch) to = (ampc_data_position){.epoch = to.epoch + 1};
  pthread_mutex_lock(&b->mutex);
  b->seeking = true;
  while (b->busy || b->opening) pthread_cond_wait(&b->changed, &b->mutex);
  b->ahead = (ampc_data_position){to.epoch, to.batch, b->index};
  b->opened = b->filled = b->taken = 0;
  b->held = b->seeking = false;
  b->failed = AMPC_OK;
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->mutex);
  return AMPC_OK;
}

/* Allocates slots for other shares, after threads have left the old ones. */
static ampc_status batches_share(ampc_batches *b, int64_t first, int64_t end, int64_t shares)
{
  NEEDS(b && 0 <= first && first < end && end <= shares);
  pthread_mutex_lock(&b->mutex);
  b->seeking = true;
  while (b->busy || b->opening) pthread_cond_wait(&b->changed, &b->mutex);
  b->first = first;
  b->end = end;
  b->shares = shares;
  close_ring(b);
  ampc_status status = open_ring(b);
  pthread_mutex_unlock(&b->mutex);
  return status ? status : batches_seek(b, (ampc_data_position){.block = b->index});
}

/* Releases the previous slot so that it can be filled, and waits for the next one. A failed sample
 * is reported after all batches before its own have been read. */
static ampc_status batches_next(ampc_batches *b, const void **out_base, int64_t *out_samples,
                                ampc_data_position *out_position)
{
  NEEDS(b && out_base && out_samples && out_position);
  pthread_mutex_lock(&b->mutex);
  b->held = false;
  pthread_cond_broadcast(&b->changed);
  while (b->filled == b->taken && !(b->failed && !b->busy))
    pthread_cond_wait(&b->changed, &b->mutex);
  if (b->filled == b->taken) {
    ampc_status status = ampc_fail(b->failed, "%s", b->why);
    pthread_mutex_unlock(&b->mutex);
    return status;
  }
  const Slot *slot = &b->ring[b->taken++ % RING];
  b->held = true;
  *out_base = slot->bytes;
  *out_samples = slot->samples;
  *out_position = slot->position;
  pthread_mutex_unlock(&b->mutex);
  return AMPC_OK;
}

/* Reads the samples one after the other, which takes as long as reading an epoch. */
static bool batches_find_lost(const ampc_batches *b, double limit, char *text, size_t size)
{
  if (!b || !text) return false;
  for (uint32_t i = 0; i < b->block->n_sources; i++) {
    int64_t sample;
    double value;
    if (!source_find_lost(&b->sources[i], limit, &sample, &value)) continue;
    snprintf(text, size, "sample %lld of %s holds %.6g", (long long)sample, b->sources[i].path,
             isnan(value) ? NAN : value); /* without the sign of NaN */
    return true;
  }
  return false;
}

static bool batches_find_column(const ampc_batches *b, double limit, char *text, size_t size)
{
  for (uint32_t i = 0; b && text && i < b->block->n_sources; i++) {
    int64_t column, samples;
    double most;
    const DataSource *s = &b->sources[i];
    if (!source_find_column(s, limit, &column, &samples, &most)) continue;
    snprintf(text, size,
             "column %lld of %s, counted from 0, is at least %.2g in %lld of %lld samples",
             (long long)column, s->path, limit, (long long)samples, (long long)s->count);
    return true;
  }
  return false;
}

/* Few labels of one class are no surprise, and neither are classes that change at every sample. */
static bool batches_find_sorted(const ampc_batches *b, char *text, size_t size)
{
  enum { SURPRISING = 32 };
  for (uint32_t i = 0; b && text && i < b->block->n_sources; i++) {
    const ampc_block *block = b->block;
    Labels l;
    if (!source_labels(&b->sources[i], &l) || l.count < SURPRISING) continue;
    bool train = block->kind == AMPC_TRAIN, sorted = l.changes && l.ascending;
    if (!l.changes)
      snprintf(text, size, "%s: %s %lld labels that block `%s` reads are %.17g%s",
               b->sources[i].path, l.count < b->sources[i].count ? "the first" : "all",
               (long long)l.count, block->name, l.first,
               b->sources[i].count < b->sources[i].samples
                   ? "; `part_seed` with `stratify` gives each part all classes"
                   : "");
    else if (train && !block->shuffle && sorted && l.count / (l.changes + 1) > 1)
      snprintf(text, size,
               "%s: the labels are sorted, and block `%s` has shuffle=false; leave it out, so that "
               "a batch has several classes",
               b->sources[i].path, block->name);
    else
      continue;
    return true;
  }
  return false;
}

static ampc_status batches_measure(const ampc_batches *b, uint32_t source, double *mean,
                                   double *deviation)
{
  NEEDS(b && mean && deviation && source < b->block->n_sources);
  return source_measure(&b->sources[source], mean, deviation);
}

static bool batches_sample_name(const ampc_batches *b, int64_t sample, char *text, size_t size)
{
  if (!b || !text || sample < 0) return false;
  for (uint32_t i = 0; i < b->block->n_sources; i++)
    if (source_sample_name(&b->sources[i], sample, text, size)) return true;
  return false;
}

const ampc_data_interface ampc_data = {
    .open = batches_open,
    .per_epoch = batches_per_epoch,
    .seek = batches_seek,
    .share = batches_share,
    .next = batches_next,
    .find_lost = batches_find_lost,
    .find_column = batches_find_column,
    .find_sorted = batches_find_sorted,
    .sample_name = batches_sample_name,
    .measure = batches_measure,
    .close = batches_close,
};
