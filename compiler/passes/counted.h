/* Means over the elements that count. */
#pragma once
#include "passes.h"

/* Returns an array, indexed by node id: v is computed from this node. */
bool *needed_for(Compile *c, Value v);
/* Appends a bool: true if v is computed from a mean of no elements. {0}: v has no such mean. */
Value counted_empty(Compile *c, const Cursor *at, Value v);

/* How the bodies of a step enter its loss: Note [bodies] in counted.c. */
typedef struct Divisor {
  Value of;    /* the divisor of the loss of one body; {0}: all bodies count alike */
  Value count; /* a sum over samples, from which `of` is computed */
  bool mixed;  /* the loss is no mean with one divisor, so the bodies do not give the step's loss */
} Divisor;
Divisor counted_divisor(Compile *c, Value loss);
/* For the `n` minimize nodes of a loss. If its divisor depends on the data of a body, returns the
 * share of this body in the loss of the bodies so far, and appends nodes that multiply the
 * gradients of the earlier bodies by theirs. {0}: all bodies count alike. */
Value counted_share(Compile *c, const Node *minimize, uint32_t n, Value loss);
