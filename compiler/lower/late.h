/* Values of the language whose numbers are known only when the program runs, as they are during
 * elaboration. */
#pragma once
#include "compiler/graph/ops.h"

typedef struct Schedule {
  OpKind op; /* schedule_linear, ...: `step` is its first input, the others name the arguments */
  const double *args; /* the inputs after `step`; of a repeated op, all but the last input */
  uint32_t own;       /* bit i: argument i is the number of steps of the block */
  uint32_t n_args, n_each;
  /* the op runs for each number of its last input `each`; input 1 is the result before */
  bool repeated;
  const double *each;
  const struct Plateau *plateau; /* set for a schedule that waits for a metric, which has no op */
  /* Set for arithmetic in a setting, `0.1 * cosine_schedule(..)`, by an op of the op table. */
  const struct Datum *operand; /* numbers and schedules; NULL: no arithmetic */
  uint32_t n_operands;
  const Attr *attr; /* attributes of the op */
} Schedule;

typedef struct Statistics {
  Value values;        /* shape [n]: counts of this body, which the run sums */
  uint32_t kind;       /* ampc_metric_kind */
  const char *name;    /* name of the function that returned it */
  const char *classes; /* as in ampc_metric_desc */
} Statistics;
