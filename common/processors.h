/* Which processors this process may use, and how many threads compute. */
#pragma once

enum { AMPC_PROCESSORS = 1024 }; /* the most that a mask tells */

/* Returns the number of processors that this process may use; OMP_NUM_THREADS lowers it. */
unsigned ampc_processors(void);
/* Sets bit i of `out` if this process may use processor i. */
void ampc_processors_get(unsigned char out[AMPC_PROCESSORS / 8]);
/* Restricts this thread, and those that it starts, to part `index` of `count` equal parts of its
 * processors, or to one processor if there are fewer. Processors that share a core or a socket are
 * adjacent. */
void ampc_processors_take(unsigned index, unsigned count);
