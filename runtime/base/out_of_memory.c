#include "out_of_memory.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ampc_rt.h"

/* Bytes. The code of a kernel and what oneDNN needs to make it stay below 1 MB, but each thread may
 * be making one, and a thread that allocates for the first time reserves some for itself. */
enum { HEADROOM = 8 << 20 };

bool out_of_memory_near(void)
{
  void *at = mmap(NULL, HEADROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return true;
  munmap(at, HEADROOM);
  return false;
}

static const char *running; /* the name of the program */
static struct sigaction before_segv, before_abort;

/* Calls only what a handler may call. */
static void on_crash(int number)
{
  static const char text[] = ": error: out of memory\n";
  if (out_of_memory_near()) {
    ssize_t ignored = write(STDERR_FILENO, running, strlen(running));
    ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(AMPC_RUN_FAILED);
  }
  sigaction(number, number == SIGSEGV ? &before_segv : &before_abort, NULL);
  raise(number); /* is delivered when this handler returns */
}

/* A stack that cannot grow leaves no room for a handler. */
static void set_stack(void)
{
  static char stack[16 << 10];
  stack_t now;
  if (sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE)
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

void out_of_memory_catch(const char *program)
{
  struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  running = program;
  set_stack();
  sigaction(SIGSEGV, &action, &before_segv);
  sigaction(SIGABRT, &action, &before_abort);
}
