#include "signals.h"

void signals_hold(sigset_t *before)
{
  static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  sigset_t held;
  sigfillset(&held);
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) sigdelset(&held, crashes[i]);
  pthread_sigmask(SIG_BLOCK, &held, before);
}

void signals_release(const sigset_t *before)
{
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

int signals_thread(pthread_t *out, void *(*work)(void *), void *context)
{
  sigset_t before;
  signals_hold(&before);
  int failed = pthread_create(out, NULL, work, context);
  signals_release(&before);
  return failed;
}
