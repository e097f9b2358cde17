/* Parts of pass fuse. */
#pragma once
#include "compiler/command/command.h"

/* constants.c: results and operands of products that are numbers get a node that writes them. */
void write_constants(Compile *c);
/* fold.c: nodes that need no command because their readers do their work. Sets Node.folded.
 * phase: see Note [fences] in fuse.c. */
void fold_nodes(Compile *c, const uint32_t *phase);
