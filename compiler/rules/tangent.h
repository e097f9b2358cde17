/* What rules of tangents are written with: Note [tangents] in tangent.c. */
#pragma once
#include "gradient.h"

typedef struct Forward {
  Back b;          /* to build with; without dy */
  const Value *v;  /* by input: its tangent; {0}: it has none */
  const Value *of; /* by id of a node that stands before it: the same */
} Forward;

/* The tangent of the node, in its shape. */
typedef Value TangentRule(Forward *f);

Value tangent_sum(Forward *f, Value a, Value b);          /* either may be {0} */
Value tangent_filled(Forward *f, Value x, double number); /* that number, in shape and type of x */
Value tangent_shaped(Forward *f, Value v);                /* in the shape of the node */

/* Written out in files of their own. */
TangentRule tangent_prod, tangent_cumprod, tangent_line_sums;
TangentRule tangent_batch_norm, tangent_batch_norm_eval, tangent_max_pool2d;
TangentRule tangent_attention;
/* passes/own_tangent.c: value 0 after a message too */
TangentRule tangent_own; /* of each output */
