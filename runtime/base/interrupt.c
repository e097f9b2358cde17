/* See interrupt.h.
 *
 * Threads that compute take no signals (Note [signals]). So the training loop starts a thread that
 * only waits for them: a second Ctrl-C then works in the middle of a step. */
#include "interrupt.h"
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ampc_rt.h"
#include "signals.h"

enum {
  REQUESTS = 4, /* the first 4 of `signals` are requests; the others are ignored */
  SIGNALS = 6,
  STACK = 256 << 10 /* bytes; handlers need little */
};
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGXFSZ};
static const long long twice = 300000000; /* ns; a second request within this time does not count */

static const char *running; /* the program's name; NULL: main() belongs to another program */
static bool terminal, prompt;
static atomic_bool asked, requested, save_requested;
static atomic_int held;
static atomic_llong ending; /* time of the first request to end, ns; 0: no request */
static struct sigaction before[SIGNALS];
static pthread_t listener;
static bool listening;
static sem_t over;

/* ---- the handler: only async-signal-safe calls ---- */

static void end_process(int number)
{
  static const char text[] = ": interrupted\n";
  if (!running) { /* the signal's default action follows the handler */
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  ssize_t ignored =
      terminal ? write(STDERR_FILENO, "\n", 1) : 0; /* after ^C or the progress line */
  ignored = write(STDERR_FILENO, running, strlen(running));
  ignored = write(STDERR_FILENO, text, sizeof text - 1);
  (void)ignored;
  _exit(AMPC_INTERRUPTED);
}

/* Whether the process ends once nothing is held: the program does not check for requests. */
static bool at_once(void)
{
  return running && !asked;
}

static void ask_end(int number)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  long long now = time.tv_sec * 1000000000LL + time.tv_nsec, first = 0;
  bool again = !atomic_compare_exchange_strong(&ending, &first, now) && now - first > twice;
  requested = true;
  if (!held && (again || at_once())) end_process(number);
}

static void take(int number)
{
  int error = errno;
  if (number == SIGUSR1)
    save_requested = true;
  else if (prompt && number == SIGINT)
    requested = true;
  else
    ask_end(number);
  errno = error;
}

/* ---- catching ---- */

static void install(int first, int end, int flags)
{
  for (int i = first; i < end; i++) {
    struct sigaction action = {.sa_handler = i < REQUESTS ? take : SIG_IGN, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(signals[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
  }
}

void interrupt_begin(const char *program)
{
  running = program;
  terminal = isatty(STDERR_FILENO);
  install(0, REQUESTS, SA_RESTART);
}

void interrupt_ask(void)
{
  asked = true;
}

void interrupt_prompt(bool on_terminal)
{
  prompt = true;
  install(0, REQUESTS, on_terminal ? SA_RESTART : 0);
  interrupt_ask();
}

static void *wait_for_signals(void *nothing)
{
  while (sem_wait(&over) != 0) {} /* a handler ran */
  return nothing;
}

/* Starts the thread that accepts the caller's signals, which otherwise wait for the step's end. */
static void start_listener(void)
{
  pthread_attr_t small;
  sem_init(&over, 0, 0);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK);
  listening = pthread_create(&listener, &small, wait_for_signals, NULL) == 0;
  pthread_attr_destroy(&small);
}

void interrupt_catch(void)
{
  if (!running) {
    requested = save_requested = false;
    ending = 0;
  }
  install(running ? REQUESTS : 0, SIGNALS, SA_RESTART);
  start_listener();
}

void interrupt_restore(void)
{
  if (listening) {
    sem_post(&over);
    pthread_join(listener, NULL);
  }
  sem_destroy(&over);
  for (int i = running ? REQUESTS : 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
}

/* ---- holding ---- */

static _Thread_local int own; /* how often this thread is counted in `held` */

void interrupt_hold(void)
{
  own++;
  held++;
}

/* Releases. The last release ends the process if that was requested. Until then each thread that
 * releases waits here, so that it starts no new work. */
void interrupt_release(void)
{
  if (--held == 0 && requested && at_once()) end_process(SIGINT);
  if (--own == 0)
    while (requested && at_once()) pause();
}

/* ---- requests ---- */

bool interrupt_requested(void)
{
  return requested;
}

bool interrupt_ending(void)
{
  return ending != 0;
}

void interrupt_calm(void)
{
  if (!ending) requested = false;
}

bool interrupt_take_save(void)
{
  return atomic_exchange(&save_requested, false);
}
