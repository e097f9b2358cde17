/* Look-up in the tables of all families, and the check that the tables are complete. */
#pragma once
#include "runner/selftest/case.h"

typedef struct OpFamily {
  const char *file;
  const OpTest *tests;
  uint32_t n;
} OpFamily;

/* Returns NULL if the op has no entry. */
const OpTest *op_test_find(OpKind op);

/* Adds a line to `faults` for each op that lacks something that the suites need: exactly one entry;
 * cases, and gradients if it has a gradient rule, or the reason why not; and rows whose attributes
 * the op has. */
void op_tests_check(const OpFamily *const *families, uint32_t n, Text *faults);
/* Checks the entries of all families. */
void op_tests_check_all(Text *faults);
