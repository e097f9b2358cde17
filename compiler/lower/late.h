/* Values of the language whose numbers are known only when the program runs, as they are while it
 * is elaborated. */
#pragma once
#include "compiler/graph/ops.h"

typedef struct Schedule {
  OpKind op;          /* schedule_linear, ...: its inputs after `step` name the arguments */
  const double *args; /* its inputs after `step`; where it is repeated, all but the last */
  uint32_t own;       /* bit i: argument i is the number of steps that the block itself takes */
  uint32_t n_args, n_each;
  bool repeated; /* applied once for each of `each`, its last input, each time to what it gave */
  const double *each;
  const struct Plateau *plateau; /* one that waits for a metric: then there is no op */
  /* Or it is arithmetic in a setting, `0.1 * cosine_schedule(..)`: an op of the table. */
  const struct Datum *operand; /* numbers and schedules; NULL: it is none */
  uint32_t n_operands;
  const Attr *attr; /* of the op */
} Schedule;

typedef struct Statistics {
  Value values; /* [n]: of this body, to be added up */
  ampc_metric_kind kind;
  const char *name; /* of the function that gave it */
} Statistics;
