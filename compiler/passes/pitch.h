/* Part of pass memory: rows with gaps between them. */
#pragma once
#include "reuse.h"

/* Sets Node.pitch of values whose rows begin at multiples of 16 bytes although their shape does not
 * demand it, and of their views. Values that have a place already stay as they are. */
void pitch_rows(Compile *c, const Life *lives);
