/* Inside pass recompute. */
#pragma once
#include "compiler/graph/ir.h"

/* Returns the last gradient that backward node `old_id` reads: a clone for it runs after that. */
Value recompute_after(const Rewrite *r, uint32_t old_id);
/* Lets backward widen frozen weights again. */
void recompute_widenings(Compile *c);
/* Lets the backward of batch norms compute their results again. */
void recompute_norms(Compile *c);
