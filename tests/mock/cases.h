/* Cases of a test of the mock. Each runs in its own process, because a detected misuse ends the
 * process. */
#pragma once
#include "check.h"
#include "mock.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define ABORTS (-SIGABRT)
#define FAULTS (-SIGSEGV)

typedef struct Case {
  const char *name;
  int (*run)(void);
  int status;       /* exit status; minus a signal's number */
  const char *says; /* text in stderr; NULL: any */
} Case;

/* Makes the primary context current. */
static inline void open_context(void)
{
  CuDevice device;
  CuContext context;
  MUST(cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0);
  MUST(cuDevicePrimaryCtxRetain(&context, device) == 0 && cuCtxSetCurrent(context) == 0);
}

static inline int in_child(const Case *c, void (*open)(void), int result[2], int errors[2])
{
  enum { GAVE_UP = 10000 };
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    dup2(errors[1], STDERR_FILENO);
    open();
    int status = c->run();
    ssize_t n = write(result[1], &status, sizeof status);
    _exit(n != sizeof status);
  }
  close(result[1]);
  close(errors[1]);
  int how, status;
  MUST(waitpid(child, &how, 0) == child);
  if (WIFSIGNALED(how)) return -WTERMSIG(how);
  return read(result[0], &status, sizeof status) == sizeof status ? status : GAVE_UP;
}

static inline void run_case(const Case *c, void (*open)(void))
{
  int result[2], errors[2];
  char said[4096];
  MUST(pipe(result) == 0 && pipe(errors) == 0);
  int status = in_child(c, open, result, errors);
  ssize_t n = read(errors[0], said, sizeof said - 1);
  said[n > 0 ? n : 0] = 0;
  close(result[0]);
  close(errors[0]);
  CHECK_MSG(status == c->status, "%s: status %d, expected %d\n%s", c->name, status, c->status,
            said);
  CHECK_MSG(!c->says || strstr(said, c->says), "%s: says \"%s\", expected \"%s\"", c->name, said,
            c->says);
}
