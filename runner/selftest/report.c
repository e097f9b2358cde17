/* Counts the cases of each op and proof, checks coverage, and prints the table or JSON. */
#include "run.h"
#include "ops/table.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- counting ---- */

/* suites run in parallel */
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

/* Returns the options to compile a job of a suite. It has no file: diagnostics name it selftest. */
Options test_options(const TestRun *run, int optimize)
{
  return (Options){.input = "selftest",
                   .target = run->target,
                   .optimize = optimize,
                   .error_limit = 20,
                   .as_cuda = jit_runs_cuda(run->target)};
}

Options test_job_options(Arena *a, const TestRun *run, const char *path, const char *precision,
                         const ampc_program *of)
{
  Options options = test_options(run, 2);
  uint32_t most = run->job.n_settings + 1 + (of ? of->n_optimizers : 0);
  Assignment *settings = arena_array(a, Assignment, most);
  for (uint32_t i = 0; i < run->job.n_settings; i++)
    settings[options.n_settings++] = run->job.settings[i];
  if (precision) settings[options.n_settings++] = (Assignment){"precision", precision};
  for (uint32_t i = 0; of && i < of->n_optimizers; i++)
    settings[options.n_settings++] =
        (Assignment){arena_printf(a, "%s.accumulate", of->optimizers[i].name), "2"};
  options.input = path;
  options.settings = settings;
  options.consts = run->job.consts;
  options.n_consts = run->job.n_consts;
  return options;
}

/* True if the run's kernels run on a GPU: all targets but cpu do. */
bool test_on_gpu(const TestRun *run)
{
  return strcmp(run->target, "cpu") != 0;
}

TestRun test_on_cpu(const TestRun *run)
{
  return (TestRun){
      .device = "cpu", .target = "cpu", .filter = run->filter, .seed = run->seed, .job = run->job};
}

bool test_share(const char *filter, unsigned *share, unsigned *shares)
{
  char more;
  return sscanf(filter, "%u/%u%c", share, shares, &more) == 2;
}

bool test_wanted(const TestRun *run, OpKind op)
{
  unsigned share, shares;
  if (run->filter && test_share(run->filter, &share, &shares)) return op % shares == share - 1;
  return !run->filter || strcmp(run->filter, op_row(op)->name) == 0;
}

bool test_wants_any(const TestRun *run, const OpKind *ops, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (test_wanted(run, ops[i])) return true;
  return false;
}

/* ---- coverage ---- */

/* True if the op needs forward cases. Leaves run no kernel; the ops that read a leaf test it. An op
 * that a job declares computes what its own text says: tests/cli/own.sh. Exchanges need several
 * members: tests/ranks. */
static bool needs_forward(OpKind op)
{
  OpTemplate tmpl = op_row(op)->tmpl;
  return tmpl != TMPL_leaf && tmpl != TMPL_own && tmpl != TMPL_exchange;
}

static bool needs_backward(OpKind op)
{
  return op_row(op)->gradient != grad_none && needs_forward(op);
}

/* Counts an op as failed if its suite did not run or its cases have disappeared. */
void test_coverage(TestRun *run)
{
  for (uint32_t i = 0; i < OP_COUNT; i++) {
    OpKind op = (OpKind)i;
    if (!test_wanted(run, op)) continue;
    if (needs_forward(op) && run->tally[op][PROOF_forward].cases == 0)
      test_report(run, op, PROOF_forward, AMPC_F32, INFINITY, "the op has no case");
    if (test_on_gpu(run) && needs_forward(op) && op_test_find(op)->cases &&
        run->tally[op][PROOF_twin].cases == 0)
      test_report(run, op, PROOF_twin, AMPC_F32, INFINITY, "the op has no case on both devices");
    if (needs_backward(op) && run->tally[op][PROOF_backward].cases == 0)
      test_report(run, op, PROOF_backward, AMPC_F32, INFINITY, "the gradient has no case");
  }
}

/* ---- printing ---- */

static const char *types_text(Arena *arena, uint32_t types)
{
  Text t = text_new(arena);
  for (uint32_t d = 0; d < AMPC_DTYPE_COUNT; d++)
    if (types >> d & 1) text_printf(&t, "%s%s", t.n ? " " : "", ampc_dtype_name((ampc_dtype)d));
  return t.at;
}

static void add_op(const TestRun *run, OpKind op, Table *t)
{
  const Tally *f = &run->tally[op][PROOF_forward], *b = &run->tally[op][PROOF_backward];
  const Tally *w = &run->tally[op][PROOF_twin];
  if (f->cases + b->cases + w->cases == 0) return;
  TableCell cells[9] = {{op_row(op)->name}, {types_text(t->arena, f->types | b->types | w->types)}};
  const Tally *const proofs[] = {f, b, w};
  for (int i = 0; i < 3; i++) { /* number of cases and largest error; dashes if there are none */
    const Tally *p = proofs[i];
    cells[2 + 2 * i].text = p->cases ? arena_printf(t->arena, "%u", p->cases) : "-";
    cells[3 + 2 * i].text = p->cases ? arena_printf(t->arena, "%.3f", p->worst) : "-";
  }
  cells[8].text = f->failed + b->failed + w->failed ? "FAILED" : "pass";
  table_row(t, 0, cells);
}

static void print_table(const TestRun *run, uint32_t passed, uint32_t failed)
{
  Arena *arena = arena_create();
  Table t;
  table_open(&t, arena, NULL, &(TableView){0},
             "op:<16|types:<9|cases:number|worst:number|grads:number|worst:number|twins:number|"
             "worst:number|");
  for (uint32_t op = 0; op < OP_COUNT; op++) add_op(run, (OpKind)op, &t);
  if (t.rows.n) table_put(&t);
  table_say(&t, 0, "worst: largest error of the passed cases, in units of the bound");
  if (test_on_gpu(run))
    table_say(
        &t, 0,
        "twins: %s compared with the cpu; elementwise kernels and moves must give the same bits",
        run->target);
  table_say(&t, 0, "%u passed, %u failed", passed, failed);
  table_close(&t);
  arena_destroy(arena);
}

/* Prints the numbers of the table as JSON, for scripts. */
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

uint32_t test_print(const TestRun *run)
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
