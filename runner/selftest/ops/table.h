/* The tables of all families as one: look-up, and the check that they are whole. */
#pragma once
#include "runner/selftest/case.h"

typedef struct OpFamily {
  const char *file;
  const OpTest *tests;
  uint32_t n;
} OpFamily;

/* NULL: the op has no entry. */
const OpTest *op_test_find(OpKind op);

/* Adds a line to `faults` for each op that lacks what the suites need: an entry, exactly one;
 * cases, and gradients if it has a gradient rule, or the reason why not; rows that the op can read.
 */
void op_tests_check(const OpFamily *const *families, uint32_t n, Text *faults);
/* The same of all families. */
void op_tests_check_all(Text *faults);
