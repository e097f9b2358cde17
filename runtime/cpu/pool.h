/* A few threads that share one task at a time. Which share a block gets depends on its number
 * alone, so results do not depend on the number of threads. */
#pragma once

typedef struct Pool Pool;
typedef void PoolTask(void *context, unsigned block, unsigned n_blocks);

/* `threads` counts the caller, who works too. Fewer threads come up where the system refuses more;
 * NULL only without memory. */
Pool *pool_create(unsigned threads);
void pool_free(Pool *pool);
unsigned pool_threads(const Pool *pool);
/* Calls task(context, b, n_blocks) once for each b below n_blocks and returns when all are done. */
void pool_run(Pool *pool, PoolTask *task, void *context, unsigned n_blocks);
/* Processors that this process may use; OMP_NUM_THREADS lowers it. */
unsigned pool_default_threads(void);
