/* amp selftest: proves every op of the table on this machine. Prints a table and ends with status 0
 * or 5. What is compared with what: selftest_forward.c, selftest_backward.c, selftest_random.c,
 * selftest_step.c, selftest_fusion.c, selftest_model.c, selftest_twin.c,
 * selftest_jobs.c. */
#include "selftest.h"
#include "compiler/option_table.h"
#include "runner/runner.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- counting
 * ------------------------------------------------------------------------------------ */

static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

void test_report(TestRun *run, OpKind op, Proof proof, DType type, double error, const char *what)
{
  bool good = error >= 0 && error <= 1;
  pthread_mutex_lock(&report_lock);
  Tally *t = &run->tally[op][proof];
  t->types |= 1u << type;
  t->cases++;
  t->failed += !good;
  if (good && error > t->worst) t->worst = error;
  if (!good || run->verbose)
    fprintf(stderr, "%s: %s: %s (error %.3g of the bound)\n", good ? "ok" : "FAILED",
            op_row(op)->name, what, error);
  pthread_mutex_unlock(&report_lock);
}

void test_check(TestRun *run, OpKind op, DType type, bool good, const char *what)
{
  test_report(run, op, PROOF_forward, type, good ? 0 : INFINITY, what);
}

Options test_options(const TestRun *run, int optimize)
{
  return (Options){
      .input = "selftest", .target = run->target, .optimize = optimize, .error_limit = 20};
}

bool test_on_gpu(const TestRun *run)
{
  return strcmp(run->target, "cpu") != 0;
}

TestRun test_on_cpu(const TestRun *run)
{
  return (TestRun){.device = "cpu", .target = "cpu", .filter = run->filter};
}

bool test_wanted(const TestRun *run, OpKind op)
{
  return !run->filter || strcmp(run->filter, op_row(op)->name) == 0;
}

/* ---- coverage
 * --------------------------------------------------------------------------------------- */

/* Leaves run nothing; those that stand for numbers are checked through the ops that read them. */
static bool needs_forward(OpKind op)
{
  return op_row(op)->tmpl != TMPL_leaf;
}

static bool needs_backward(OpKind op)
{
  return op_row(op)->gradient != grad_none;
}

/* Cases of one op; the optimizer's and the scaler's kernels are compared in whole models. */
static bool has_rows(OpKind op)
{
  for (uint32_t i = 0; i < n_case_rows; i++)
    if (case_rows[i].op == op) return true;
  return false;
}

static void check_coverage(TestRun *run)
{
  for (uint32_t i = 0; i < OP_COUNT; i++) {
    OpKind op = (OpKind)i;
    if (!test_wanted(run, op)) continue;
    if (needs_forward(op) && run->tally[op][PROOF_forward].cases == 0)
      test_report(run, op, PROOF_forward, AMPC_F32, INFINITY, "the op has no case");
    if (test_on_gpu(run) && needs_forward(op) && has_rows(op) &&
        run->tally[op][PROOF_twin].cases == 0)
      test_report(run, op, PROOF_twin, AMPC_F32, INFINITY, "the op has no case on both devices");
    if (needs_backward(op) && run->tally[op][PROOF_backward].cases == 0)
      test_report(run, op, PROOF_backward, AMPC_F32, INFINITY, "the gradient has no case");
  }
}

/* ---- printing
 * --------------------------------------------------------------------------------------- */

static void print_types(uint32_t types)
{
  char text[64] = "";
  for (uint32_t d = 0; d < AMPC_DTYPE_COUNT; d++) {
    if (!(types >> d & 1)) continue;
    if (*text) strcat(text, " ");
    strcat(text, ampc_dtype_name((ampc_dtype)d));
  }
  printf("%-28s", text);
}

static void print_proof(const Tally *t)
{
  if (t->cases)
    printf(" %6u %6.3f", t->cases, t->worst);
  else
    printf(" %6s %6s", "-", "-");
}

static void print_op(const TestRun *run, OpKind op)
{
  const Tally *f = &run->tally[op][PROOF_forward], *b = &run->tally[op][PROOF_backward];
  const Tally *t = &run->tally[op][PROOF_twin];
  if (f->cases + b->cases + t->cases == 0) return;
  printf("%-26s ", op_row(op)->name);
  print_types(f->types | b->types | t->types);
  print_proof(f);
  print_proof(b);
  if (test_on_gpu(run)) print_proof(t);
  printf("  %s\n", f->failed + b->failed + t->failed ? "FAILED" : "pass");
}

static void print_table(const TestRun *run, uint32_t passed, uint32_t failed)
{
  printf("%-26s %-28s %6s %6s %6s %6s", "op", "types", "cases", "worst", "grads", "worst");
  if (test_on_gpu(run)) printf(" %6s %6s", "twins", "worst");
  printf("\n");
  for (uint32_t op = 0; op < OP_COUNT; op++) print_op(run, (OpKind)op);
  printf("worst: largest error of what passed, in units of its bound\n");
  if (test_on_gpu(run))
    printf("twins: %s against cpu; elementwise kernels and moves must have the same bits\n",
           run->target);
  printf("%u passed, %u failed\n", passed, failed);
}

static void print_json(const TestRun *run, uint32_t passed, uint32_t failed)
{
  const char *separator = "";
  printf("{\"device\": \"%s\", \"passed\": %u, \"failed\": %u, \"ops\": [", run->device, passed,
         failed);
  for (uint32_t op = 0; op < OP_COUNT; op++) {
    const Tally *f = &run->tally[op][PROOF_forward], *b = &run->tally[op][PROOF_backward];
    const Tally *t = &run->tally[op][PROOF_twin];
    if (f->cases + b->cases + t->cases == 0) continue;
    printf("%s\n  {\"op\": \"%s\", \"cases\": %u, \"worst\": %.4g, \"gradients\": %u, "
           "\"gradients_worst\": %.4g, ",
           separator, op_row(op)->name, f->cases, f->worst, b->cases, b->worst);
    if (test_on_gpu(run)) printf("\"twins\": %u, \"twins_worst\": %.4g, ", t->cases, t->worst);
    printf("\"failed\": %u}", f->failed + b->failed + t->failed);
    separator = ",";
  }
  printf("\n]}\n");
}

static uint32_t print_result(const TestRun *run)
{
  uint32_t cases = 0, failed = 0;
  for (uint32_t op = 0; op < OP_COUNT; op++) {
    for (int p = 0; p < PROOF_COUNT; p++) {
      cases += run->tally[op][p].cases;
      failed += run->tally[op][p].failed;
    }
  }
  if (run->json)
    print_json(run, cases - failed, failed);
  else
    print_table(run, cases - failed, failed);
  return failed;
}

/* ---- suites
 * ----------------------------------------------------------------------------------------- */

typedef struct SuiteThread { /* the C compiler takes most of the time: suites run side by side */
  ampc_status (*suite)(Arena *a, TestRun *run);
  TestRun *run;
  pthread_t thread;
  ampc_status status;
  char message[512];
} SuiteThread;

static void *run_suite(void *data)
{
  SuiteThread *s = data;
  Arena *a = arena_create();
  s->status = s->suite(a, s->run);
  snprintf(s->message, sizeof s->message, "%s", ampc_last_error());
  arena_destroy(a);
  return NULL;
}

static ampc_status run_suites(TestRun *run)
{
  SuiteThread threads[] = {{.suite = suite_forward}, {.suite = suite_backward},
                           {.suite = suite_random},  {.suite = suite_step},
                           {.suite = suite_running}, {.suite = suite_layout},
                           {.suite = suite_fusion},  {.suite = suite_model},
                           {.suite = suite_twin},    {.suite = suite_jobs}};
  enum { COUNT = sizeof threads / sizeof *threads };
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < COUNT; i++) {
    threads[i].run = run;
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

/* ---- options
 * ---------------------------------------------------------------------------------------- */

static bool known_op(const char *name)
{
  for (uint32_t op = 0; op < OP_COUNT; op++) {
    if (strcmp(op_row(op)->name, name) == 0) return true;
  }
  return false;
}

static int read_filter(const OptionGiven *given)
{
  if (!known_op(given->value))
    return usage_error(given->program, "no op %s; `ampc --list-ops` lists them", given->value);
  ((TestRun *)given->into)->filter = given->value;
  return OPTIONS_GO_ON;
}

static int read_mutation(const OptionGiven *given)
{
  if (mutation_set(given->into, arena_strdup(given->arena, given->value))) return OPTIONS_GO_ON;
  return option_wrong(given, "expected FROM=>TO");
}

static const OptionRow selftest_options[] = {
    {"device", 0, "DEVICE",
     "where the kernels run: cpu (default), cuda or auto; what a GPU computes is also compared "
     "with the cpu, jobs too: three steps of each",
     .kind = OPTION_text, .field = offsetof(TestRun, device)},
    {"filter", 0, "NAME", "one op only", .kind = OPTION_call, .read = read_filter},
    {"json", 0, NULL, "the result as JSON", .kind = OPTION_flag, .field = offsetof(TestRun, json)},
    {"verbose", 0, NULL, "every case", .kind = OPTION_flag, .field = offsetof(TestRun, verbose)},
    {"mutate", 0, "FROM=>TO", "replace text of the kernels first: the tests must then fail",
     .kind = OPTION_call, .read = read_mutation},
    {0}};

static const OptionTable selftest_verb = {
    .program = "amp selftest",
    .usage = "[options] [job.amp ...]",
    .groups = (const OptionGroup[]){{selftest_options, 0}, {NULL, 0}},
    .notes = "exit status: 0 all passed, 5 something failed"};

/* `arena` keeps words of the command line for as long as the run needs them. */
static int test(Arena *arena, int argc, char **argv)
{
  static TestRun run = {.device = "cpu"};
  const char *program = selftest_verb.program;
  Operands jobs;
  int wrong;
  if (!options_read(&selftest_verb, arena, argc, argv, &run, &jobs, &wrong)) return wrong;
  run.jobs = jobs.at;
  run.n_jobs = (uint32_t)jobs.n;
  ampc_status status = ampc_device_target(run.device, run.target);
  if (status) return fprintf(stderr, "amp: error: %s\n", ampc_last_error()), status;
  if (run.n_jobs && !test_on_gpu(&run))
    return usage_error(program, "jobs are compared between a GPU and the cpu: --device cuda");
  status = run_suites(&run);
  if (status) return status;
  if (run.edit && !run.edits) return usage_error(program, "--mutate: no such text");
  check_coverage(&run);
  return print_result(&run) ? AMPC_RUN_FAILED : AMPC_OK;
}

int selftest_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  int status = test(arena, argc, argv);
  arena_destroy(arena);
  return status;
}
