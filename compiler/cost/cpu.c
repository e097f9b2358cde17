/* Measures how fast the processor of this machine is.
 *
 * Note [measured rates]
 * All threads run the same loop at once, and the best of several rounds counts. The loops are:
 * dependent additions; independent multiply-adds; and reading, adding to and writing arrays of
 * several sizes, from the first caches of a core up to 64 MB. They are compiled for the widest
 * vectors of the processor, as the kernels are (-march=native). On a busy machine all rounds may be
 * slow. So who sees a command that beats a rate measures again, and the fastest rate counts. On Arm
 * no prediction was ever compared with a measurement: the model says so. */
#include "cpu.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "common/level.h"
#include "common/machine.h"
#include "common/processors.h"

enum {
  ROUNDS = 4,
  PASSES = 4,         /* passes over all loops: a disturbance often lasts longer than a round */
  CHAIN = 400000,     /* dependent additions */
  ACCUMULATORS = 12,  /* independent sums; with the factor and the term they fit 16 registers */
  MULTIPLIES = 60000, /* multiply-adds of each accumulator */
  MOVED = 1 << 24,    /* elements moved in a round; short arrays are walked repeatedly */
  WIDEST = 16,        /* f32 numbers in a vector */
  MAX_THREADS = 256
};

/* The arrays of one thread. */
typedef struct Work {
  float *from, *to;
  long elements, times; /* elements: in each array; times: how often the arrays are walked */
} Work;
typedef void Loop(Work *w);

/* ---- the loops ---- */

/* Defines the loops for vectors of `lanes` numbers: gcc keeps wider ones in memory. */
#define LOOPS(name, target, lanes)                                                                 \
  typedef float Vector_##name __attribute__((vector_size(lanes * sizeof(float))));                 \
  target static void multiply_##name(Work *w)                                                      \
  {                                                                                                \
    Vector_##name sum[ACCUMULATORS], factor, term;                                                 \
    for (int i = 0; i < lanes; i++) factor[i] = 0.999f, term[i] = w->from[i];                      \
    for (int a = 0; a < ACCUMULATORS; a++) sum[a] = term * (float)a;                               \
    for (int i = 0; i < MULTIPLIES; i++)                                                           \
      for (int a = 0; a < ACCUMULATORS; a++) sum[a] = sum[a] * factor + term;                      \
    for (int a = 1; a < ACCUMULATORS; a++) sum[0] += sum[a];                                       \
    memcpy(w->to, &sum[0], sizeof sum[0]);                                                         \
  }                                                                                                \
  target static void move_##name(Work *w)                                                          \
  {                                                                                                \
    for (long i = 0; i < w->times; i++) {                                                          \
      for (long k = 0; k < w->elements; k += lanes)                                                \
        *(Vector_##name *)(w->to + k) = *(const Vector_##name *)(w->from + k) + 1.0f;              \
      __asm__ volatile("" ::: "memory"); /* the compiler must not merge iterations */              \
    }                                                                                              \
  }                                                                                                \
  static Loop *const loops_##name[] = {multiply_##name, move_##name}

LOOPS(any_machine, , 4);
LOOPS(for_v3, FOR_V3, 8);
LOOPS(for_v4, FOR_V4, 16);

/* Runs dependent additions. An iteration has 8 of them, so that its branch costs little. */
static void chain(Work *w)
{
  unsigned long x = 0;
  for (int i = 0; i < CHAIN; i += 8) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
      x++;
      __asm__ volatile("" : "+r"(x)); /* the compiler must not merge the additions */
    }
  }
  w->to[0] = (float)x;
}

/* ---- timing ---- */

/* The measurement of one thread. */
typedef struct Timing {
  Loop *loop;
  Work work;
  struct Meeting *meeting;
  double us[ROUNDS];
} Timing;

typedef struct Meeting {
  pthread_mutex_t gate;  /* locked until the number of threads is known */
  pthread_barrier_t all; /* the threads wait for each other here before a round */
} Meeting;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void *time_loop(void *context)
{
  Timing *t = context;
  pthread_mutex_lock(&t->meeting->gate);
  pthread_mutex_unlock(&t->meeting->gate);
  for (int i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(&t->meeting->all);
    double begin = now();
    t->loop(&t->work);
    t->us[i] = now() - begin;
  }
  return NULL;
}

/* Starts each thread on its own processor if there are enough. Otherwise two threads could run on
 * one processor, and the short rounds would end before the system moves one of them. */
static bool start(pthread_t *thread, Timing *t, unsigned index)
{
  cpu_set_t allowed, own;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    unsigned rest = index % (unsigned)CPU_COUNT(&allowed), cpu = 0;
    while (!CPU_ISSET(cpu, &allowed) || rest--) cpu++;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    pthread_attr_setaffinity_np(&attr, sizeof own, &own);
  }
  bool up = pthread_create(thread, &attr, time_loop, t) == 0;
  pthread_attr_destroy(&attr);
  return up;
}

/* Returns the microseconds of the best round. A round lasts as long as its slowest thread. The best
 * round counts because other programs, and a clock that is still rising, only make rounds longer.
 * If fewer threads can be started than requested, *threads is reduced. */
static double measure(Timing *t, unsigned *threads, Loop *loop)
{
  pthread_t thread[MAX_THREADS];
  Meeting meeting = {.gate = PTHREAD_MUTEX_INITIALIZER};
  unsigned started = 0;
  double least = INFINITY;
  for (unsigned i = 0; i < *threads; i++) t[i].loop = loop, t[i].meeting = &meeting;
  pthread_mutex_lock(&meeting.gate);
  while (started < *threads && start(&thread[started], &t[started], started)) started++;
  if (!started) arena_out_of_memory();
  pthread_barrier_init(&meeting.all, NULL, started);
  pthread_mutex_unlock(&meeting.gate);
  for (unsigned i = 0; i < started; i++) pthread_join(thread[i], NULL);
  pthread_barrier_destroy(&meeting.all);
  for (int i = 0; i < ROUNDS; i++) {
    double most = 0;
    for (unsigned k = 0; k < started; k++) most = fmax(most, t[k].us[i]);
    least = fmin(least, most);
  }
  *threads = started;
  return least;
}

/* ---- the whole ---- */

static Loop *const *choose_loops(Cpu *cpu)
{
  const Level *level = ampc_level();
  cpu->lanes = level->lanes;
  cpu->bf16 = level->bf16;
  return level->lanes == 16 ? loops_for_v4 : level->lanes == 8 ? loops_for_v3 : loops_any_machine;
}

enum { ALL = CPU_LEAST << 3 * (CPU_SIZES - 1) }; /* bytes of the longest arrays */

/* Measures GB/s. `bytes`: size of all arrays together. */
static double measure_moves(Cpu *cpu, Timing *t, Loop *loop, long bytes, float *memory)
{
  long elements = bytes / (long)sizeof(float) / 2 / (long)cpu->threads / WIDEST * WIDEST;
  long times = MOVED / 2 / (long)cpu->threads / elements;
  if (times < 1) times = 1;
  for (unsigned i = 0; i < cpu->threads; i++) {
    float *from = memory + 2 * elements * i;
    t[i].work = (Work){from, from + elements, elements, times};
  }
  double us = measure(t, &cpu->threads, loop);
  return 2e-3 * cpu->threads * (double)(times * elements) * sizeof(float) / us;
}

static void measure_all(Cpu *cpu, Timing *t, float *memory)
{
  Loop *const *loops = choose_loops(cpu);
  for (int pass = 0; pass < PASSES; pass++) {
    for (unsigned i = 0; i < cpu->threads; i++)
      t[i].work = (Work){.from = memory, .to = memory + (i + 1) * WIDEST};
    double us = measure(t, &cpu->threads, loops[0]);
    cpu->peak = fmax(cpu->peak, 2e-3 * cpu->threads * MULTIPLIES * ACCUMULATORS * cpu->lanes / us);
    cpu->mhz = fmax(cpu->mhz, CHAIN / measure(t, &cpu->threads, chain));
    for (int i = 0; i < CPU_SIZES; i++) {
      double moves = measure_moves(cpu, t, loops[1], (long)CPU_LEAST << 3 * i, memory);
      cpu->moves[i] = fmax(cpu->moves[i], moves);
    }
  }
}

double cpu_moves(const Cpu *cpu, double bytes)
{
  double at = log2(fmax(bytes, CPU_LEAST) / CPU_LEAST) / 3;
  int i = (int)fmin(at, CPU_SIZES - 1);
  if (i == CPU_SIZES - 1) return cpu->moves[i];
  return cpu->moves[i] * pow(cpu->moves[i + 1] / cpu->moves[i], at - i);
}

const Gpu *cpu_measure(Arena *arena)
{
  return cpu_measure_again(arena, NULL);
}

const Gpu *cpu_measure_again(Arena *arena, const Gpu *before)
{
  size_t bytes = ALL;
  Cpu *cpu = arena_new(arena, Cpu);
  Gpu *row = arena_new(arena, Gpu);
  if (before) *cpu = *before->cpu;
  cpu->threads = ampc_processors();
  if (cpu->threads > MAX_THREADS) cpu->threads = MAX_THREADS;
  Timing *t = arena_array(arena, Timing, cpu->threads);
  float *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) arena_out_of_memory();
  measure_all(cpu, t, memory);
  munmap(memory, bytes);
  *row = (Gpu){.name = "cpu",
               .model = arena_printf(arena, "this CPU, %u thread%s%s", cpu->threads,
                                     cpu->threads == 1 ? "" : "s",
                                     ampc_level()->is_arm ? " (on Arm a guess)" : ""),
               .arch = "cpu",
               .multiprocessors = (int)cpu->threads,
               .mhz = (int)cpu->mhz,
               .dram_peak = cpu->moves[CPU_SIZES - 1],
               .dram = cpu->moves[CPU_SIZES - 1],
               .node = 2, /* microseconds to wake the threads and wait for the last one */
               .cpu = cpu};
  /* At least one lane. On a busy processor the measured rates may result in less than one. */
  row->lanes_f32 = (int)fmax(1, cpu->peak * 1e3 / (2 * cpu->mhz * cpu->threads) + 0.5);
  return row;
}
