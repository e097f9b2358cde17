/* One run of `amp selftest`: its options, what it counts, and the suites that it calls. */
#pragma once
#include "case.h"
#include "runner/jit/jit.h"

typedef struct Tally {           /* of one op */
  uint32_t types, cases, failed; /* types: bit mask */
  double worst;                  /* error in units of the bound */
} Tally;

/* twin: a GPU's results against those of the cpu */
typedef enum Proof { PROOF_forward, PROOF_backward, PROOF_twin, PROOF_COUNT } Proof;

typedef struct TestRun {
  const char *device, *filter;   /* filter: name of one op, or NULL */
  char target[AMPC_TARGET_ROOM]; /* that runs on the device */
  char **jobs;                   /* to be compared whole */
  uint32_t n_jobs;
  uint32_t graphs, seed; /* random ones of a suite: how many, 0: as it thinks fit; the first */
  bool verbose, json, brief;
  TextEdit *edit; /* changes the kernels before they are built: mutations */
  void *edit_data;
  uint32_t edits; /* how many were made */
  Tally tally[OP_COUNT][PROOF_COUNT];
} TestRun;

/* Counts a case. `what` says in words what was compared; printed when error is not within 0 to 1.
 */
void test_report(TestRun *run, OpKind op, Proof proof, DType type, double error, const char *what);
/* Something that holds or does not. */
void test_check(TestRun *run, OpKind op, DType type, bool good, const char *what);
bool test_wanted(const TestRun *run, OpKind op);
bool test_wants_any(const TestRun *run, const OpKind *ops, size_t n);
/* For a job that is compiled for the run's device. */
Options test_options(const TestRun *run, int optimize);
bool test_on_gpu(const TestRun *run);
TestRun test_on_cpu(const TestRun *run);     /* the same on the cpu, counting nothing */
bool mutation_set(TestRun *run, char *text); /* "FROM=>TO"; keeps and cuts the text */

/* What was counted, and what should have been counted and was not: report.c. */
void test_coverage(TestRun *run);
uint32_t test_print(const TestRun *run); /* returns how many failed */

/* Suites; a status is a failure of the machinery, not of a case. Arena: for all that they keep. */
typedef ampc_status Suite(Arena *a, TestRun *run);
Suite suite_forward, suite_backward, suite_random, suite_step, suite_running, suite_scaler,
    suite_scan, suite_lookups, suite_probes, suite_sums, suite_layout, suite_layout_random,
    suite_model, suite_twin, suite_jobs;
Suite suite_differences; /* of jobs, and nothing else */
