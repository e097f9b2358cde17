/* How many threads compute. */
#pragma once

/* Processors that this process may use; OMP_NUM_THREADS lowers it. */
unsigned ampc_processors(void);
