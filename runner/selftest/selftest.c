/* amp selftest: tests every op of the op table on this machine. Prints a table and exits with
 * status 0 or 5. README.md lists the suites and what they compare. */
#include "run.h"
#include "ops/table.h"
#include "compiler/cli/options.h"
#include "runner/runner.h"
#include "runtime/base/out_of_memory.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- suites ---- */

typedef struct SuiteThread { /* suites run in parallel, as the C compiler takes most of the time */
  Suite *suite;
  TestRun *run;
  pthread_t thread;
  ampc_status status;
  char message[512];
} SuiteThread;

static void *run_suite(void *data)
{
  SuiteThread *s = data;
  char crash_stack[CRASH_STACK]; /* stack of crash handlers: Note [signals] */
  out_of_memory_stack(crash_stack);
  Arena *a = arena_create();
  s->status = s->suite(a, s->run);
  snprintf(s->message, sizeof s->message, "%s", ampc_last_error());
  arena_destroy(a);
  return NULL;
}

/* Joins all threads, then returns the error of one that failed. */
static ampc_status run_suites(TestRun *run)
{
  static Suite *const suites[] = {
      suite_forward, suite_backward, suite_random, suite_step,          suite_running, suite_scan,
      suite_lookups, suite_probes,   suite_layout, suite_layout_random, suite_model,   suite_twin,
      suite_jobs,    suite_scaler,   suite_sums,   suite_counted,       suite_decode};
  enum { COUNT = sizeof suites / sizeof *suites };
  SuiteThread threads[COUNT];
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < COUNT; i++) {
    threads[i] = (SuiteThread){.suite = suites[i], .run = run};
    if (pthread_create(&threads[i].thread, NULL, run_suite, &threads[i]) != 0)
      return ampc_fail(AMPC_RUN_FAILED, "cannot start a thread");
  }
  for (uint32_t i = 0; i < COUNT; i++) {
    pthread_join(threads[i].thread, NULL);
    if (threads[i].status && !status) fprintf(stderr, "amp: %s\n", threads[i].message);
    if (threads[i].status) status = threads[i].status;
  }
  return status;
}

/* ---- options ---- */

enum { MOST_SHARES = 32 }; /* so that each has ops with cases */

/* Reads a filter. An unknown name is an error: otherwise the run would pass without a case. */
static int read_filter(const OptionGiven *given)
{
  unsigned share, shares;
  ((TestRun *)given->into)->filter = given->value;
  if (test_share(given->value, &share, &shares)) {
    if (share >= 1 && share <= shares && shares <= MOST_SHARES) return OPTIONS_GO_ON;
    return usage_error(given->program, "--filter=%s: K/N is share K of at most %d shares",
                       given->value, MOST_SHARES);
  }
  for (uint32_t op = 0; op < OP_COUNT; op++)
    if (strcmp(op_row(op)->name, given->value) == 0) return OPTIONS_GO_ON;
  return usage_error(given->program, "no op %s; `ampc --list-ops` lists them", given->value);
}

static int read_no_cudnn(const OptionGiven *given)
{
  (void)given;
  ampc_use_cudnn(false);
  return OPTIONS_GO_ON;
}

static int read_mutation(const OptionGiven *given)
{
  if (mutation_set(given->into, arena_strdup(given->arena, given->value))) return OPTIONS_GO_ON;
  return option_wrong(given, "expected FROM=>TO");
}

/* These rows fill run.job. */
static const OptionRow job_rows[] = {
    {"set", 0, "KEY=VALUE", "replace a setting of the jobs: train.batch=64 precision=bf16",
     .kind = OPTION_call, .read = options_setting},
    {NULL, 'D', "NAME=VALUE", "replace a const of the jobs", .kind = OPTION_call,
     .read = options_const},
    {0}};

static const OptionRow selftest_options[] = {
    {"device", 0, "DEVICE",
     "where the kernels run: cpu (default), cuda, cuda:1 or auto. The results of a GPU are also "
     "compared with the cpu's. Given jobs are compared, too: losses of three steps, gradients, "
     "first updates. On the cpu only their gradients are tested, in doubles, against differences "
     "of the loss",
     .kind = OPTION_text, .field = offsetof(TestRun, device)},
    {"cuda-path", 0, "DIR", "look for NVIDIA's libraries in DIR first", .kind = OPTION_call,
     .read = options_cuda_path},
    {"no-cudnn", 0, NULL, "run convolutions with the program's own kernels even if cuDNN is found",
     .kind = OPTION_call, .read = read_no_cudnn},
    {"filter", 0, "NAME", "test only this op; K/N: the Kth of N shares of the ops",
     .kind = OPTION_call, .read = read_filter},
    {"graphs", 0, "N", "number of random graphs of images (default: a few)", .kind = OPTION_number,
     .field = offsetof(TestRun, graphs), .least = 1},
    {"seed", 0, "N", "seed of the first random graph, and of jobs on a GPU (default 1)",
     .kind = OPTION_number, .field = offsetof(TestRun, seed)},
    {"brief", 0, NULL,
     "run each case once: no runs without fusion, no differences of the loss, no jvp",
     .kind = OPTION_flag, .field = offsetof(TestRun, brief)},
    {"json", 0, NULL, "print the result as JSON", .kind = OPTION_flag,
     .field = offsetof(TestRun, json)},
    {"verbose", 0, NULL, "print every case", .kind = OPTION_flag,
     .field = offsetof(TestRun, verbose)},
    {"mutate", 0, "FROM=>TO", "replace text in the kernels first; the tests must then fail",
     .kind = OPTION_call, .read = read_mutation},
    {0}};

const OptionTable selftest_verb = {
    .program = "amp selftest",
    .usage = "[options] [job.amp ...]",
    .groups =
        (const OptionGroup[]){{selftest_options, 0}, {job_rows, offsetof(TestRun, job)}, {NULL, 0}},
    .notes = "exit status: 0 all passed, 5 something failed"};

/* True if the tables are complete. Else nothing runs: it would test less than it claims. */
static bool tables_whole(void)
{
  Arena *a = arena_create();
  Text faults = text_new(a);
  op_tests_check_all(&faults);
  if (faults.n) fputs(faults.at, stderr);
  bool whole = faults.n == 0;
  arena_destroy(a);
  return whole;
}

/* Tests the gradients of jobs on the cpu, and no single ops. */
static int test_jobs(Arena *arena, TestRun *run)
{
  if (run->filter)
    return usage_error(
        selftest_verb.program,
        "--filter picks ops, and a job on the cpu has no cases of single ops: leave it out");
  ampc_status status = suite_differences(arena, run);
  if (status) return fprintf(stderr, "amp: error: %s\n", ampc_last_error()), (int)status;
  return test_print(run) ? AMPC_RUN_FAILED : AMPC_OK;
}

/* Runs the tests. `arena` holds words of the command line until the run ends. */
static int test(Arena *arena, int argc, char **argv)
{
  static TestRun run = {.device = "cpu", .seed = 1};
  Operands jobs = {argv, argc};
  int wrong;
  if (!options_read(&selftest_verb, arena, &jobs, &run, &wrong)) return wrong;
  run.jobs = jobs.at;
  run.n_jobs = (uint32_t)jobs.n;
  if (!run.n_jobs && (run.job.n_settings || run.job.n_consts))
    return usage_error(selftest_verb.program, "--set and -D change jobs, and there is none");
  if (!tables_whole()) return AMPC_RUN_FAILED;
  ampc_status status = ampc_device_target(run.device, run.target);
  if (status) return fprintf(stderr, "amp: error: %s\n", ampc_last_error()), (int)status;
  if (run.n_jobs && !test_on_gpu(&run)) return test_jobs(arena, &run);
  status = run_suites(&run);
  if (status) return (int)status;
  if (run.edit && !run.edits) return usage_error(selftest_verb.program, "--mutate: no such text");
  test_coverage(&run);
  return test_print(&run) ? AMPC_RUN_FAILED : AMPC_OK;
}

int selftest_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  int status = test(arena, argc, argv);
  arena_destroy(arena);
  return status;
}
