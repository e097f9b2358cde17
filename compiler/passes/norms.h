/* options.norms: norms of gradients, weights and updates, for logs. Part of pass gradient. */
#pragma once
#include "compiler/graph/ir.h"

/* Returns, by group, the partial sums of the optimizer's gradients, in nodes that precede its
 * updates. `partials`: those of all its gradients. */
Value *norms_of_gradients(Compile *c, const Node *minimize, Value scale, Value partials);
/* Appends the nodes that add the norms of an update to metrics; a group's key, such as
 * "opt.group1", has one. `updates`: the update of each group. */
void norms_append(Compile *c, const Node *minimize, const Value *gradients, const Value *updates);
