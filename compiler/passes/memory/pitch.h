/* Part of pass memory: rows with gaps between them. */
#pragma once
#include "reuse.h"

/* Sets Node.pitch of values whose rows get gaps, and of their views (Note [pitch]). Values that
 * have a place already stay as they are. */
void pitch_rows(Compile *c, const Life *lives);
