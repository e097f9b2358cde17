/* Threads that work on one task at a time.
 *
 * Note [dispatch]
 * A step consists of hundreds of tasks of some microseconds each. After a task, a worker briefly
 * spins for the next one, on a cache line of its own; then it sleeps. The caller works, too, then
 * waits for the workers: first it spins, later it yields the processor. If a task has fewer parts
 * than there are threads, the other workers are not woken. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include "pool.h"
#include "runtime/base/out_of_memory.h"
#include "runtime/base/signals.h"
#include "common/clock.h"
#include "common/machine.h"
#include "runtime/profile.h"

enum { SPINS = 2000, LINE = 64, MAX_THREADS = PROFILE_THREADS };

typedef struct Worker {
  _Alignas(LINE) atomic_uint ticket; /* incremented by the caller: work, or the end */
  atomic_bool asleep;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  pthread_t thread;
  unsigned index; /* from 1 on; the caller has index 0 */
  Pool *pool;
} Worker;

struct Pool {
  _Alignas(LINE) atomic_uint pending; /* workers that have not finished the task */
  _Alignas(LINE) PoolTask *task;      /* written before tickets are raised */
  void *context;
  Profile *profile; /* NULL: no times are kept */
  unsigned n_parts, threads;
  bool quit;
  Worker *workers; /* [threads - 1] */
};

/* Runs the parts of thread i: i, i + threads, ... */
static void run_share(const Pool *pool, unsigned index)
{
  for (unsigned part = index; part < pool->n_parts; part += pool->threads)
    pool->task(pool->context, part, pool->n_parts);
}

/* Waits for a ticket. The worker sets `asleep` before it reads the ticket again. The caller
 * increments the ticket before it reads `asleep`. So at least one sees the other's write. */
static void await_ticket(Worker *w, unsigned seen)
{
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(&w->ticket, memory_order_acquire) != seen) return;
    machine_relax();
  }
  pthread_mutex_lock(&w->mutex);
  atomic_store(&w->asleep, true);
  while (atomic_load(&w->ticket) == seen) pthread_cond_wait(&w->wake, &w->mutex);
  atomic_store(&w->asleep, false);
  pthread_mutex_unlock(&w->mutex);
}

static void raise_ticket(Worker *w)
{
  atomic_fetch_add(&w->ticket, 1);
  if (!atomic_load(&w->asleep)) return;
  pthread_mutex_lock(&w->mutex);
  pthread_cond_signal(&w->wake);
  pthread_mutex_unlock(&w->mutex);
}

/* Runs tasks until the pool ends. Tickets count up, so no ticket is missed. */
static void *work(void *arg)
{
  Worker *w = arg;
  Pool *pool = w->pool;
  char crash_stack[CRASH_STACK];
  out_of_memory_stack(crash_stack);
  for (unsigned seen = 0;; seen++) {
    await_ticket(w, seen);
    if (pool->quit) return NULL;
    Profile *p = pool->profile;
    double begin = p ? seconds_now() : 0;
    run_share(pool, w->index);
    if (p) time_add(&p->thread[w->index], (TimeSpan){begin, seconds_now(), TIME_share, 0});
    atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
  }
}

/* Waits for the workers. */
static void join(Pool *pool)
{
  for (int i = 0; atomic_load_explicit(&pool->pending, memory_order_acquire) > 0; i++) {
    if (i < SPINS) {
      machine_relax();
    } else {
      sched_yield();
    }
  }
}

void pool_run(Pool *pool, PoolTask *task, void *context, unsigned n_parts)
{
  unsigned helpers = n_parts < pool->threads ? n_parts : pool->threads;
  helpers = helpers > 0 ? helpers - 1 : 0;
  pool->task = task;
  pool->context = context;
  pool->n_parts = n_parts;
  atomic_store_explicit(&pool->pending, helpers, memory_order_relaxed);
  for (unsigned i = 0; i < helpers; i++) raise_ticket(&pool->workers[i]);
  run_share(pool, 0);
  double begin = pool->profile && helpers ? seconds_now() : 0;
  join(pool);
  if (begin > 0)
    time_add(&pool->profile->thread[0], (TimeSpan){begin, seconds_now(), TIME_wait, 0});
}

void pool_profile(Pool *pool, Profile *p)
{
  pool->profile = p;
  if (p) p->threads = pool->threads;
}

/* Starts a thread. False: the system has no more threads; the pool is then smaller. */
static bool worker_start(Worker *w, Pool *pool, unsigned index)
{
  w->index = index;
  w->pool = pool;
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->wake, NULL);
  if (signals_thread(&w->thread, work, w) == 0) return true;
  pthread_mutex_destroy(&w->mutex);
  pthread_cond_destroy(&w->wake);
  return false;
}

/* Allocates zeroed memory in whole cache lines, so that no two threads write to one line. */
static void *zeroed_lines(size_t bytes)
{
  bytes = (bytes + LINE - 1) / LINE * LINE;
  char *memory = aligned_alloc(LINE, bytes);
  for (size_t i = 0; memory && i < bytes; i++) memory[i] = 0;
  return memory;
}

Pool *pool_create(unsigned threads)
{
  threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
  Pool *pool = zeroed_lines(sizeof *pool);
  if (!pool) return NULL;
  pool->threads = 1;
  pool->workers = zeroed_lines(threads * sizeof *pool->workers);
  if (!pool->workers) {
    free(pool);
    return NULL;
  }
  unsigned started = 0; /* workers read `threads` only after their first ticket */
  while (started + 1 < threads && worker_start(&pool->workers[started], pool, started + 1))
    started++;
  pool->threads = started + 1;
  return pool;
}

void pool_free(Pool *pool)
{
  if (!pool) return;
  pool->quit = true;
  for (unsigned i = 0; i + 1 < pool->threads; i++) {
    Worker *w = &pool->workers[i];
    raise_ticket(w);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->wake);
  }
  free(pool->workers);
  free(pool);
}

unsigned pool_threads(const Pool *pool)
{
  return pool->threads;
}
