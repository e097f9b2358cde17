/* The thread pool: it runs every block once, results do not depend on the number of threads,
 * sleeping workers wake up, and workers receive no signals. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include "check.h"
#include "runtime/cpu/pool.h"
#include "common/processors.h"
#include "runtime/profile.h"

enum { N = 1000 };

typedef struct Shares {
  int runs[N];
  double sum[N];
} Shares;

static void task(void *context, unsigned block, unsigned n_blocks)
{
  Shares *s = context;
  s->runs[block]++;
  for (unsigned i = block; i < 10000; i += n_blocks) s->sum[block] += 1.0 / (1.0 + i);
}

static void check_pool(unsigned threads)
{
  static Shares one, many;
  Pool *alone = pool_create(1), *pool = pool_create(threads);
  MUST(alone && pool);
  CHECK(pool_threads(pool) == threads);
  for (unsigned blocks = 0; blocks < N; blocks = blocks * 3 + 1) {
    memset(&one, 0, sizeof one);
    memset(&many, 0, sizeof many);
    pool_run(alone, task, &one, blocks);
    pool_run(pool, task, &many, blocks);
    CHECK(memcmp(&one, &many, sizeof one) == 0);
    for (unsigned b = 0; b < N; b++) CHECK(many.runs[b] == (b < blocks));
  }
  pool_free(alone);
  pool_free(pool);
}

/* Records bits about the thread that runs a block. 1: it is a worker; 2: signals are blocked; 4:
 * crash signals are not blocked; 8: handlers have a stack of their own. */
static void look_at_thread(void *context, unsigned block, unsigned n_blocks)
{
  int *seen = context;
  sigset_t mask;
  stack_t stack = {.ss_flags = SS_DISABLE};
  (void)n_blocks;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  sigaltstack(NULL, &stack);
  bool held = sigismember(&mask, SIGINT) && sigismember(&mask, SIGHUP) &&
              sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGCHLD);
  seen[block] = (block > 0) | held << 1 | !sigismember(&mask, SIGSEGV) << 2 |
                !(stack.ss_flags & SS_DISABLE) << 3;
}

/* Checks Note [signals] in runtime/base/signals.h. */
static void check_signals(void)
{
  int seen[4] = {0};
  Pool *pool = pool_create(4);
  MUST(pool);
  pool_run(pool, look_at_thread, seen, 4);
  for (int i = 1; i < 4; i++) CHECK_MSG(seen[i] == 15, "worker %d: %d", i, seen[i]);
  pool_free(pool);
}

static void check_sleep(void)
{
  static Shares s;
  Pool *pool = pool_create(3);
  MUST(pool);
  for (int i = 0; i < 2000; i++) pool_run(pool, task, &s, 3);
  for (int i = 0; i < 20; i++) {
    nanosleep(&(struct timespec){.tv_nsec = (i % 5) * 200000}, NULL);
    pool_run(pool, task, &s, 3);
  }
  for (int b = 0; b < 3; b++) CHECK(s.runs[b] == 2020);
  pool_free(pool);
}

/* With a profile, each worker notes when it computes, and the caller when it waits. */
static void check_profile(void)
{
  static Shares s;
  Pool *pool = pool_create(3);
  Profile *p = profile_create();
  MUST(pool && p);
  pool_profile(pool, p);
  for (int i = 0; i < 500; i++) pool_run(pool, task, &s, 3);
  pool_run(pool, task, &s, 1); /* the caller alone */
  pool_profile(pool, NULL);
  pool_run(pool, task, &s, 3);
  CHECK(p->threads == 3 && !profile_lost(p));
  for (int i = 0; i < 3; i++) {
    const TimeSpans *own = &p->thread[i];
    CHECK_MSG(own->n == 500, "thread %d: %zu spans", i, own->n);
    for (size_t k = 0; k < own->n; k++) {
      CHECK(own->at[k].kind == (i ? TIME_share : TIME_wait));
      CHECK(own->at[k].begin <= own->at[k].end && (!k || own->at[k - 1].end <= own->at[k].begin));
    }
  }
  profile_free(p);
  pool_free(pool);
}

int main(void)
{
  for (unsigned threads = 1; threads <= 5; threads++) check_pool(threads);
  check_signals();
  check_sleep();
  check_profile();
  pool_free(NULL);
  setenv("OMP_NUM_THREADS", "1", 1);
  CHECK(ampc_processors() == 1);
  setenv("OMP_NUM_THREADS", "1,4", 1);
  CHECK(ampc_processors() == 1);
  setenv("OMP_NUM_THREADS", "junk", 1);
  CHECK(ampc_processors() >= 1);
  return check_done();
}
