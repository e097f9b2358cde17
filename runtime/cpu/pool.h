/* A few threads that share one task at a time. Which elements belong to a part depends on its
 * number alone, so results do not depend on the number of threads. */
#pragma once

typedef struct Pool Pool;
typedef void PoolTask(void *context, unsigned part, unsigned n_parts);

/* `threads` counts the caller, who works too. Fewer threads come up where the system refuses more;
 * NULL only without memory. */
Pool *pool_create(unsigned threads);
void pool_free(Pool *pool);
unsigned pool_threads(const Pool *pool);
/* Calls task(context, part, n_parts) once for each part below n_parts and returns when all are
 * done. */
void pool_run(Pool *pool, PoolTask *task, void *context, unsigned n_parts);
