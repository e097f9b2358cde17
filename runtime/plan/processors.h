/* How many threads compute. */
#pragma once

/* Returns the number of processors that this process may use; OMP_NUM_THREADS lowers it. */
unsigned ampc_processors(void);
