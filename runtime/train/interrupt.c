/* Signals become requests that the loop asks for after each step. */
#include "interrupt.h"
#include <signal.h>

static volatile sig_atomic_t requested, save_requested;
static struct sigaction before[4];
static const int signals[4] = {SIGINT, SIGTERM, SIGUSR1, SIGPIPE};

static void note_request(int number)
{
  if (number == SIGUSR1)
    save_requested = 1;
  else
    requested = 1;
}

/* A second Ctrl-C ends the process as if nothing caught it; SIGUSR1 can come as often as it likes;
 * a reader of our lines that goes away is no reason to lose a run. */
void interrupt_catch(void)
{
  requested = save_requested = 0;
  for (int i = 0; i < 4; i++) {
    bool once = signals[i] == SIGINT || signals[i] == SIGTERM;
    struct sigaction action = {.sa_handler = signals[i] == SIGPIPE ? SIG_IGN : note_request,
                               .sa_flags = (int)((once ? (unsigned)SA_RESETHAND : 0) | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    sigaction(signals[i], &action, &before[i]);
  }
}

bool interrupt_requested(void)
{
  return requested;
}

bool interrupt_take_save(void)
{
  bool now = save_requested;
  save_requested = 0;
  return now;
}

void interrupt_restore(void)
{
  for (int i = 0; i < 4; i++) sigaction(signals[i], &before[i], NULL);
}
