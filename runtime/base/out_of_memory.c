#include "out_of_memory.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ampc_rt.h"

/* Bytes. The code of a kernel and what oneDNN needs to generate it take less than 1 MB. But each
 * thread may generate one, and a thread reserves some memory for itself at its first allocation. */
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

/* Handles a crash. Calls only functions that a signal handler may call. */
static void on_crash(int number, siginfo_t *info, void *context)
{
  static const char text[] = ": error: out of memory\n";
  bool sent = info->si_code <= 0 && info->si_code != SI_TKILL; /* abort() sends SI_TKILL */
  (void)context;
  if (!sent && out_of_memory_near()) {
    ssize_t ignored = write(STDERR_FILENO, running, strlen(running));
    ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(AMPC_RUN_FAILED);
  }
  sigaction(number, number == SIGSEGV ? &before_segv : &before_abort, NULL);
  raise(number); /* delivered when this handler returns */
}

void out_of_memory_stack(char stack[CRASH_STACK])
{
  stack_t now;
  if (sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE)
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = CRASH_STACK}, NULL);
}

void out_of_memory_catch(const char *program)
{
  static char stack[CRASH_STACK];
  struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_ONSTACK | SA_SIGINFO};
  sigemptyset(&action.sa_mask);
  running = program;
  out_of_memory_stack(stack);
  sigaction(SIGSEGV, &action, &before_segv);
  sigaction(SIGABRT, &action, &before_abort);
}
