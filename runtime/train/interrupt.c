/* Signals become requests that the loop asks for after each step.
 *
 * A thread that computes takes none (Note [signals]), so one that only waits is there for them: a
 * second Ctrl-C need not wait for the end of a step. */
#include "interrupt.h"
#include <semaphore.h>
#include <signal.h>
#include "runtime/base/signals.h"

enum { SIGNALS = 5, STACK = 256 << 10 /* bytes; handlers need little */ };

static volatile sig_atomic_t requested, save_requested;
static struct sigaction before[SIGNALS];
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
static pthread_t listener;
static bool listening;
static sem_t over;

static void note_request(int number)
{
  if (number == SIGUSR1)
    save_requested = 1;
  else
    requested = 1;
}

static void *take_signals(void *nothing)
{
  while (sem_wait(&over) != 0) {} /* a handler ran */
  return nothing;
}

/* The thread takes what the caller takes. Without it signals are late, by a step at most. */
static void start_listener(void)
{
  pthread_attr_t small;
  sem_init(&over, 0, 0);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK);
  listening = pthread_create(&listener, &small, take_signals, NULL) == 0;
  pthread_attr_destroy(&small);
}

/* A second Ctrl-C ends the process as if nothing caught it; SIGUSR1 can come as often as it likes;
 * a reader of our lines that goes away is no reason to lose a run. */
void interrupt_catch(void)
{
  requested = save_requested = 0;
  for (int i = 0; i < SIGNALS; i++) {
    bool once = signals[i] != SIGUSR1 && signals[i] != SIGPIPE;
    struct sigaction action = {.sa_handler = signals[i] == SIGPIPE ? SIG_IGN : note_request,
                               .sa_flags = (int)((once ? (unsigned)SA_RESETHAND : 0) | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    sigaction(signals[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
  }
  start_listener();
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
  if (listening) {
    sem_post(&over);
    pthread_join(listener, NULL);
  }
  sem_destroy(&over);
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
}
