/* The helpers that tangent rules use: Note [tangents] in tangent.c. */
#pragma once
#include "gradient.h"

typedef struct Forward {
  Back b;          /* builds nodes; its dy is unused */
  const Value *v;  /* indexed by input: its tangent; {0}: it has none */
  const Value *of; /* indexed by node id, below this node: its tangent; {0}: it has none */
} Forward;

/* Returns the tangent of the node, in the node's shape. */
typedef Value TangentRule(Forward *f);
TangentRule *tangent_rule(const OpInfo *op, OpKind kind); /* NULL: the op has no tangent */
/* Makes gradient rules put their nodes into loop `inner`, or resets that. They use `back`, the
 * backward loop of a loop. From `inner`, nodes move out as far as their inputs allow. */
void tangent_turn_loops(Graph *g, uint16_t inner, bool on);

Value tangent_sum(Forward *f, Value a, Value b);          /* a or b may be {0} */
Value tangent_filled(Forward *f, Value x, double number); /* `number` in the shape and type of x */
Value tangent_shaped(Forward *f, Value v);                /* v in the node's shape */

/* Defined in other files. */
TangentRule tangent_prod, tangent_cumprod, tangent_line_sums;
TangentRule tangent_batch_norm, tangent_batch_norm_eval, tangent_max_pool2d;
TangentRule tangent_attention;
/* passes/own_tangent.c; value 0 also after a message */
TangentRule tangent_own; /* tangents of all outputs */
