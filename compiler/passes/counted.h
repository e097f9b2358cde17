/* Means over the elements that count. */
#pragma once
#include "passes.h"

/* Returns an array, indexed by node id: v is computed from this node. */
bool *needed_for(Compile *c, Value v);
typedef struct Counted Counted; /* what is known of the nodes that pass gradient has appended */
Counted *counted_new(Compile *c);
/* Sets the inputs `empty` and `weight` of a metric. It leaves out means of no elements, and weights
 * batches by the divisors of such means, so that it is a mean over all labels that count. The loss
 * does so only for the bodies of one step. */
void counted_weigh(Counted *p, Node *metric);
/* For the `n` minimize nodes of a loss. If its divisor depends on the data of a body, returns the
 * share of this body in the loss of the bodies so far, and appends nodes that multiply the
 * gradients of the earlier bodies by theirs. {0}: all bodies count alike. */
Value counted_share(Counted *p, const Node *minimize, uint32_t n, Value loss);
