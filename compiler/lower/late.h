/* Values of the language whose numbers are known only when the program runs, in the form that they
 * have during elaboration. */
#pragma once
#include "compiler/graph/ops.h"

typedef struct Schedule {
  OpKind op; /* schedule_linear, ...: `step` is its first input, the others name the arguments */
  const double *args; /* the inputs after `step`; of a repeated op, all but the last input */
  uint32_t own;       /* bit i: argument i is the block's own number of steps */
  uint32_t n_args, n_each;
  bool repeated; /* once for each of `each`, its last input; input 1 is the previous result */
  const double *each;
  const struct Plateau *plateau; /* a schedule that waits for a metric; it has no op */
  /* Or arithmetic in a setting, `0.1 * cosine_schedule(..)`: an op of the op table. */
  const struct Datum *operand; /* numbers and schedules; NULL: no arithmetic */
  uint32_t n_operands;
  const Attr *attr; /* of the op */
} Schedule;

typedef struct Statistics {
  Value values; /* [n]: counts of this body, which the run sums */
  ampc_metric_kind kind;
  const char *name; /* of the function that returned it */
} Statistics;
