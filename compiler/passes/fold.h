/* Parts of pass fuse. */
#pragma once
#include "compiler/command/command.h"

/* constants.c: adds nodes that write numbers to memory, for readers that need tensors. */
void write_constants(Compile *c);
/* fold.c: sets Node.folded of nodes that need no command because their readers do their work.
 * phase: see Note [fences] in fuse.c. */
void fold_nodes(Compile *c, const uint32_t *phase);
