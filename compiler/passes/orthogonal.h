/* Changes of matrices: Note [muon] in compiler/graph/optimizers.def. Part of pass gradient. */
#pragma once
#include "compiler/graph/ir.h"

/* Accumulates the change of each parameter of the group in its slot, which is 0 before. `first` is
 * the result of the first op of the update. Products run in the precision of the block: the
 * outermost region of the loss. */
void orthogonal_append(Compile *c, const Cursor *at, Value loss, Value first, int64_t optimizer,
                       uint32_t group);
