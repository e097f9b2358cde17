/* Measures the time that `amp train` adds to a step: compares the loop of ampc_train with a bare
 * loop on the same job, quiet, with lines, with a log and with JSON.
 *   bench_loop [JOB [ROUNDS [STEPS]]]
 * Times are taken when a loop requests the next batch, so opening the data and evaluations do not
 * count. The variants run in turn; the best and the median round are printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "compiler/driver.h"
#include "runner/jit/jit.h"

enum { WARM = 60, MAX_ROUNDS = 50 };
static int64_t steps = 400; /* timed steps, after the first WARM */

/* ---- a clock in the data ---- */

/* The clocks: wall time, and processor time of the thread that runs the loop. With
 * OMP_NUM_THREADS=1 this thread does all the work, and other programs disturb its time less. */
enum { CLOCKS = 2 };
static const clockid_t clocks[CLOCKS] = {CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID};
static double begin[CLOCKS], end[CLOCKS];
static int64_t calls;

static void look(double out[CLOCKS])
{
  for (int i = 0; i < CLOCKS; i++) {
    struct timespec t;
    clock_gettime(clocks[i], &t);
    out[i] = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
  }
}

static ampc_status timed_next(ampc_batches *b, const void **base, int64_t *samples,
                              ampc_data_position *at)
{
  calls++;
  if (calls == WARM) look(begin);
  if (calls == WARM + steps) look(end);
  return ampc_data.next(b, base, samples, at);
}

/* ---- the ways ---- */

typedef struct Job {
  ampc_runtime *rt;
  ampc_data_interface data;
  uint32_t block; /* the train block */
  const char *folder, *logs;
} Job;

static ampc_status run_bare(Job *j)
{
  ampc_batches *from = NULL;
  ampc_status status = ampc_init_params(j->rt, 0);
  if (!status) status = j->data.open(ampc_program_of(j->rt), j->block, j->folder, 0, &from);
  int64_t samples;
  for (int64_t i = 0; i < WARM + steps && !status; i++)
    status = ampc_run_batch(j->rt, &j->data, from, j->block, 0, &samples);
  if (!status) status = ampc_wait(j->rt);
  if (from) j->data.close(from);
  return status;
}

static ampc_status run_train(Job *j, bool quiet, bool log, bool json)
{
  char folder[4096];
  static int runs;
  snprintf(folder, sizeof folder, "%s/%d", j->logs, runs++);
  ampc_train_options o = {.device = "cpu",
                          .data_dir = j->folder,
                          .steps = WARM + steps,
                          .quiet = quiet,
                          .json = json,
                          .log_dir = log ? folder : NULL};
  return ampc_train(j->rt, &j->data, &o);
}

static ampc_status run_way(Job *j, int way)
{
  calls = 0;
  if (way == 0) return run_bare(j);
  return run_train(j, way == 1, way == 3, way == 4);
}

static const char *const ways[] = {"bare loop", "--quiet", "lines", "lines and --log-dir",
                                   "--json"};
enum { WAYS = sizeof ways / sizeof *ways };

static int by_size(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void put_table(FILE *out, double times[CLOCKS][WAYS][MAX_ROUNDS], int rounds)
{
  static const char *const names[CLOCKS] = {"wall", "processor"};
  for (int c = 0; c < CLOCKS; c++) {
    fprintf(out, "%-20s %12s %8s %12s %8s\n", names[c], "best", "", "median", "");
    for (int w = 0; w < WAYS; w++) {
      qsort(times[c][w], (size_t)rounds, sizeof(double), by_size);
      double best = times[c][w][0], median = times[c][w][rounds / 2];
      fprintf(out, "%-20s %9.1f us %+7.2f%% %9.1f us %+7.2f%%\n", ways[w], 1e6 * best,
              100 * (best / times[c][0][0] - 1), 1e6 * median,
              100 * (median / times[c][0][rounds / 2] - 1));
    }
  }
}

static int measure(Job *j, int rounds, FILE *out)
{
  static double times[CLOCKS][WAYS][MAX_ROUNDS];
  for (int r = 0; r < rounds; r++)
    for (int w = 0; w < WAYS; w++) {
      ampc_status status = run_way(j, w);
      if (status) return (int)status;
      for (int c = 0; c < CLOCKS; c++) times[c][w][r] = (end[c] - begin[c]) / (double)steps;
    }
  put_table(out, times, rounds);
  return 0;
}

/* ---- set-up ---- */

static int run_job(Compile *c, int rounds)
{
  char logs[] = "/tmp/bench-loop-XXXXXX";
  Jit *jit = NULL;
  Job j = {.data = ampc_data, .folder = ".", .logs = mkdtemp(logs)};
  j.data.next = timed_next;
  int status = j.logs ? (int)jit_load(c, &jit) : 5;
  if (!status) status = (int)ampc_create(c->program, "cpu", &j.rt);
  while (!status && c->program->blocks[j.block].kind != AMPC_TRAIN) j.block++;
  FILE *out = fdopen(dup(STDOUT_FILENO), "w"); /* the lines of the runs are dropped */
  if (!status && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr) || !out))
    status = 3;
  if (!status) status = measure(&j, rounds, out);
  if (status && out) fprintf(out, "bench_loop: %s\n", ampc_last_error());
  if (out && fclose(out) != 0 && !status) status = AMPC_BAD_FILE; /* the results are lost */
  ampc_free(j.rt);
  jit_unload(jit);
  return status;
}

int main(int argc, char **argv)
{
  const char *job = argc > 1 ? argv[1] : "models/fashion_mnist/mlp.amp";
  int rounds = argc > 2 ? atoi(argv[2]) : 9;
  if (argc > 3) steps = atoll(argv[3]);
  Options options = {.input = job, .target = "cpu", .optimize = 2, .error_limit = 20};
  Compile *c = compile_create(&options);
  int status = compile_job(c) ? run_job(c, rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds) : 1;
  compile_destroy(c);
  return status;
}
