/* Threads that work on one task at a time. The elements of a part depend only on the part's number,
 * so results do not depend on the number of threads. */
#pragma once

typedef struct Pool Pool;
typedef struct Profile Profile;
typedef void PoolTask(void *context, unsigned part, unsigned n_parts);

/* Creates a pool. `threads` includes the caller, who works, too. If the system refuses threads, the
 * pool is smaller. Returns NULL if memory runs out. */
Pool *pool_create(unsigned threads);
void pool_free(Pool *pool);
unsigned pool_threads(const Pool *pool);
/* Later calls of pool_run add spans to p->thread; p NULL: they do not. */
void pool_profile(Pool *pool, Profile *p);
/* Calls task(context, part, n_parts) once for each part below n_parts and returns when all are
 * done. */
void pool_run(Pool *pool, PoolTask *task, void *context, unsigned n_parts);
