/* Norms of gradients: for clipping and for the test for overflow; and with options.norms also of
 * weights and updates, for logs. Part of pass gradient. */
#pragma once
#include "compiler/graph/ir.h"

/* Appends the partial sums for the norm of all gradients of the optimizer. If members have slices,
 * each has the sums of its own slices, and gets those of the others. */
Value norm_partials(Compile *c, const Node *minimize, Value scale);

/* Returns, by group, the partial sums of the optimizer's gradients, in nodes that precede its
 * updates. `partials`: those of all its gradients. */
Value *norms_of_gradients(Compile *c, const Node *minimize, Value scale, Value partials);
/* Appends the nodes that add the norms of an update to metrics; a group's key, such as
 * "opt.group1", has one. `updates`: the update of each group. */
void norms_append(Compile *c, const Node *minimize, const Value *gradients, const Value *updates);
