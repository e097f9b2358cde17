/* One run of `amp selftest`: its options, its counters, and the suites. */
#pragma once
#include "case.h"
#include "runner/jit/jit.h"

typedef struct Tally {           /* counts of one op */
  uint32_t types, cases, failed; /* types: bit mask */
  double worst;                  /* error in units of the bound */
} Tally;

/* twin: results of a GPU compared with those of the cpu */
typedef enum Proof { PROOF_forward, PROOF_backward, PROOF_twin, PROOF_COUNT } Proof;

typedef struct TestRun {
  const char *device, *filter;   /* filter: name of one op, K/N: share K of N of the ops, or NULL */
  char target[AMPC_TARGET_ROOM]; /* target of the device */
  char **jobs;                   /* job files of the command line */
  uint32_t n_jobs;
  Options job;           /* consts and settings of the jobs */
  uint32_t graphs, seed; /* graphs: number of random graphs, 0: default; seed: that of the first
                            one, and of jobs */
  bool verbose, json, brief;
  TextEdit *edit; /* edits the kernels before they are compiled, for mutations */
  void *edit_data;
  uint32_t edits; /* replacements made */
  Tally tally[OP_COUNT][PROOF_COUNT];
} TestRun;

/* Counts a case. `what` names the comparison; it is printed if the error is not within 0 to 1, or
 * with --verbose. */
void test_report(TestRun *run, OpKind op, Proof proof, DType type, double error, const char *what);
/* Counts a case that passes if `good`. */
void test_check(TestRun *run, OpKind op, DType type, bool good, const char *what);
bool test_share(const char *filter, unsigned *share, unsigned *shares); /* true if it is K/N */
bool test_wanted(const TestRun *run, OpKind op);
/* Adds the forward cases, with expected results, of all wanted ops. */
void cases_make(Arena *a, const TestRun *run, CaseList *out);
bool test_wants_any(const TestRun *run, const OpKind *ops, size_t n);
/* Returns the options to compile a job for the run's device. */
Options test_options(const TestRun *run, int optimize);
/* Returns the options to compile a job of the command line. If `precision` is not NULL, it replaces
 * that of the job. If `of` is not NULL, it is the program of the job: each of its optimizers then
 * accumulates over two bodies, so a first body leaves its gradients, halved, in GRAD. */
Options test_job_options(Arena *a, const TestRun *run, const char *path, const char *precision,
                         const ampc_program *of);
bool test_on_gpu(const TestRun *run);
TestRun test_on_cpu(const TestRun *run);     /* the run with device cpu; its counts are unused */
bool mutation_set(TestRun *run, char *text); /* text: "FROM=>TO", which is kept and cut in two */

/* Coverage and output: report.c. */
void test_coverage(TestRun *run);
uint32_t test_print(const TestRun *run); /* returns the number of failures */

/* Suites. The status reports a failure of the test program itself, such as a failed compile; failed
 * cases are only counted. The arena holds all that a suite allocates. */
typedef ampc_status Suite(Arena *a, TestRun *run);
Suite suite_forward, suite_backward, suite_random, suite_step, suite_running, suite_scaler,
    suite_scan, suite_lookups, suite_probes, suite_sums, suite_layout, suite_layout_random,
    suite_model, suite_twin, suite_jobs, suite_counted, suite_decode;
Suite suite_differences; /* runs alone, on jobs */
