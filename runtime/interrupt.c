#include <signal.h>
#include "interrupt.h"

static volatile sig_atomic_t requested;
static struct sigaction before[2];
static const int signals[2] = {SIGINT, SIGTERM};

static void note_request(int number)
{
  (void)number;
  requested = 1;
}

void interrupt_catch(void)
{
  struct sigaction action = {.sa_handler = note_request,
                             .sa_flags = (int)((unsigned)SA_RESETHAND | SA_RESTART)};
  requested = 0;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; i++) sigaction(signals[i], &action, &before[i]);
}

bool interrupt_requested(void)
{
  return requested;
}

void interrupt_restore(void)
{
  for (int i = 0; i < 2; i++) sigaction(signals[i], &before[i], NULL);
}
