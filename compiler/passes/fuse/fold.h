/* Steps of pass fuse that change nodes before groups are made. */
#pragma once
#include "compiler/command/command.h"

/* constants.c: Adds nodes that write numbers to memory, for readers that need tensors. */
void write_constants(Compile *c);
/* fold.c: Sets Node.folded of each node whose readers do its work, so that it needs no command.
 * `phase` maps a node to its phase: see Note [fences] in fuse.c. */
void fold_nodes(Compile *c, const uint32_t *phase);
