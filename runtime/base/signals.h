/* Signals are kept away from threads that compute.
 *
 * Note [signals]
 * Kernels that oneDNN makes use the stack pointer as one more pointer into data. A handler that
 * runs on such a thread puts its frame there: numbers are lost, or the process is. So threads that
 * we start take no signals, whoever calls ampc_run_step takes none while the CPU computes (the
 * device's `step`), and while ampc_train runs a thread that only waits takes them at once. What the
 * processor itself raises (SIGSEGV and its kind) cannot be put off: its handlers run on a stack of
 * their own, which each of these threads has (out_of_memory.h). */
#pragma once
#include <pthread.h>
#include <signal.h>

/* No signal is delivered to this thread until signals_release, but those that tell of a crash. */
void signals_hold(sigset_t *before);
void signals_release(const sigset_t *before);
/* pthread_create for a thread that takes no signals. */
int signals_thread(pthread_t *out, void *(*work)(void *), void *context);
