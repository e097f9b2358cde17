/* Part of pass fuse: nodes that need no command because their readers do their work. */
#pragma once
#include "command.h"

/* Sets Node.folded. stretch: see Note [fences] in fuse.c. */
void fold_nodes(Compile *c, const uint32_t *stretch);
