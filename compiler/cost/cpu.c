/* How fast this machine's processor is.
 *
 * Note [measured rates]
 * Four loops, each on all threads at once and timed five times, of which the median counts: additions
 * that wait for one another, multiply-adds that do not, and numbers read, added to and written in
 * arrays that a core's cache holds, and in arrays that no cache does. They are compiled for the
 * widest vectors that the processor has, as the compiler of the kernels is told to (-march=native). */
#include "cpu.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "runtime/plan/processors.h"

enum {
  ROUNDS = 5,
  CHAIN = 400000,        /* additions */
  ACCUMULATORS = 16,     /* that do not wait for one another */
  MULTIPLIES = 60000,    /* of each of them */
  NEAR = 1 << 14,        /* elements of an array of a thread */
  NEAR_TIMES = 60,       /* that it is walked */
  FAR = 1 << 24,         /* elements of the arrays of all threads together */
  WIDEST = 16,           /* f32 of a vector */
  MAX_THREADS = 256
};

typedef float Lanes __attribute__((vector_size(WIDEST * sizeof(float))));

typedef struct Work { /* of one thread */
  float *from, *to;
  long elements; /* of the far arrays */
} Work;
typedef void Loop(Work *w);

/* ---- the loops ---- */

#define BODY static inline __attribute__((always_inline)) void

BODY multiply_body(Work *w)
{
  Lanes sum[ACCUMULATORS], factor, term;
  for (int i = 0; i < WIDEST; i++) factor[i] = 0.999f, term[i] = w->from[i];
  for (int a = 0; a < ACCUMULATORS; a++) sum[a] = term * (float)a;
  for (int i = 0; i < MULTIPLIES; i++)
    for (int a = 0; a < ACCUMULATORS; a++) sum[a] = sum[a] * factor + term;
  for (int a = 1; a < ACCUMULATORS; a++) sum[0] += sum[a];
  memcpy(w->to, &sum[0], sizeof sum[0]);
}

BODY add_body(const float *from, float *to, long n)
{
  for (long i = 0; i < n; i += WIDEST) *(Lanes *)(to + i) = *(const Lanes *)(from + i) + 1.0f;
}

BODY near_body(Work *w)
{
  for (int i = 0; i < NEAR_TIMES; i++) {
    add_body(w->from, w->to, NEAR);
    __asm__ volatile("" ::: "memory"); /* each time anew */
  }
}

BODY far_body(Work *w)
{
  add_body(w->from, w->to, w->elements);
}

/* A set for each width of vectors. */
#define LOOPS(name, target)                                                                        \
  target static void multiply_##name(Work *w)                                                      \
  {                                                                                                \
    multiply_body(w);                                                                              \
  }                                                                                                \
  target static void near_##name(Work *w)                                                          \
  {                                                                                                \
    near_body(w);                                                                                  \
  }                                                                                                \
  target static void far_##name(Work *w)                                                           \
  {                                                                                                \
    far_body(w);                                                                                   \
  }                                                                                                \
  static Loop *const loops_##name[] = {multiply_##name, near_##name, far_##name}

LOOPS(plain, );
#if defined __x86_64__
LOOPS(avx2, __attribute__((target("avx2,fma"))));
LOOPS(avx512, __attribute__((target("avx512f"))));
#endif

static void chain(Work *w)
{
  unsigned long x = 0;
  for (int i = 0; i < CHAIN; i++) {
    x++;
    __asm__ volatile("" : "+r"(x)); /* not all at once */
  }
  w->to[0] = (float)x;
}

/* ---- timing ---- */

typedef struct Timing { /* of a thread */
  Loop *loop;
  Work work;
  double us; /* the median of the rounds */
} Timing;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A round is so long that it does not matter when the threads begin. */
static void *time_loop(void *context)
{
  Timing *t = context;
  double us[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    double begin = now();
    t->loop(&t->work);
    us[i] = now() - begin;
  }
  qsort(us, ROUNDS, sizeof *us, ascending);
  t->us = us[ROUNDS / 2];
  return NULL;
}

/* Microseconds of a round, of the slowest thread. Where fewer threads come up than are wanted, they
 * are fewer from here on. */
static double measure(Timing *t, unsigned *threads, Loop *loop)
{
  pthread_t thread[MAX_THREADS];
  unsigned started = 1;
  for (unsigned i = 0; i < *threads; i++) t[i].loop = loop;
  while (started < *threads && pthread_create(&thread[started], NULL, time_loop, &t[started]) == 0)
    started++;
  *threads = started;
  time_loop(&t[0]);
  double most = t[0].us;
  for (unsigned i = 1; i < started; i++) {
    pthread_join(thread[i], NULL);
    if (t[i].us > most) most = t[i].us;
  }
  return most;
}

/* ---- the whole ---- */

static Loop *const *choose_loops(Cpu *cpu)
{
  cpu->lanes = 4;
  cpu->bf16 = 1;
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f")) {
    cpu->lanes = 16;
    cpu->bf16 = __builtin_cpu_supports("avx512bf16") ? 2 : 1;
    return loops_avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    cpu->lanes = 8;
    return loops_avx2;
  }
#endif
  return loops_plain;
}

static void measure_all(Cpu *cpu, Timing *t, float *memory)
{
  Loop *const *loops = choose_loops(cpu);
  long share = FAR / 2 / (long)cpu->threads / WIDEST * WIDEST;
  for (unsigned i = 0; i < cpu->threads; i++) {
    float *from = memory + 2 * share * i;
    t[i].work = (Work){from, from + share, share};
  }
  double us = measure(t, &cpu->threads, chain);
  cpu->mhz = CHAIN / us;
  us = measure(t, &cpu->threads, loops[0]);
  cpu->peak = 2e-3 * cpu->threads * MULTIPLIES * ACCUMULATORS * WIDEST / us;
  us = measure(t, &cpu->threads, loops[1]);
  cpu->near = 2e-3 * cpu->threads * NEAR_TIMES * NEAR * sizeof(float) / us;
  us = measure(t, &cpu->threads, loops[2]);
  cpu->far = 2e-3 * cpu->threads * (double)share * sizeof(float) / us;
}

const Gpu *cpu_measure(Arena *arena)
{
  size_t bytes = FAR * sizeof(float);
  Cpu *cpu = arena_new(arena, Cpu);
  Gpu *row = arena_new(arena, Gpu);
  cpu->threads = ampc_processors();
  if (cpu->threads > MAX_THREADS) cpu->threads = MAX_THREADS;
  Timing *t = arena_array(arena, Timing, cpu->threads);
  float *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) arena_out_of_memory();
  measure_all(cpu, t, memory);
  munmap(memory, bytes);
  *row = (Gpu){.name = "cpu",
               .model = arena_printf(arena, "this CPU, %u thread%s", cpu->threads,
                                     cpu->threads == 1 ? "" : "s"),
               .arch = "cpu",
               .multiprocessors = (int)cpu->threads,
               .mhz = (int)cpu->mhz,
               .dram_peak = cpu->far,
               .dram = cpu->far,
               .cpu = cpu};
  row->lanes_f32 = (int)(cpu->peak * 1e3 / (2 * cpu->mhz * cpu->threads) + 0.5);
  return row;
}
