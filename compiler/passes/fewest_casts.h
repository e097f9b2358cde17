/* Part of pass precision: the ops that run in 16 bits for `fewest_casts(true)`. */
#pragma once
#include "compiler/graph/ir.h"

/* Looks at the graph with the types of autocast, and sets `why` of old nodes to WHY_fewest whose op
 * shall run in 16 bits. Returns true if it has set one, so that the types must be found again. */
bool fewest_casts(Compile *c, const Rewrite *r);
