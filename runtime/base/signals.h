/* Keeps signals away from threads that compute.
 *
 * Note [signals]
 * oneDNN's kernels use the stack pointer as one more pointer into data. A signal handler on such a
 * thread would put its frame there: it would overwrite numbers or crash the process. So threads
 * that the runtime starts block signals, and the caller of ampc_run_step blocks them while the CPU
 * computes (the device's `step`). While ampc_train runs, a thread that only waits accepts them at
 * once. Signals that the processor raises, such as SIGSEGV, cannot be deferred. Their handlers run
 * on a separate stack, which each of these threads has (out_of_memory.h). */
#pragma once
#include <pthread.h>
#include <signal.h>

/* Blocks all signals of this thread until signals_release, except signals that report a crash. */
void signals_hold(sigset_t *before);
void signals_release(const sigset_t *before);
/* Does pthread_create for a thread that takes no signals. */
int signals_thread(pthread_t *out, void *(*work)(void *), void *context);
