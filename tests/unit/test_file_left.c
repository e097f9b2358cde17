/* What a writer that is killed leaves beside its target, and who removes it. The writer is stopped
 * where its file has a name of its own and not yet that of the target. */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>
#include "check.h"
#include "runtime/plan/file.h"
#include "temp.h"

static int at_rename; /* the signal that a writer gets there; 0: none */

int rename(const char *from, const char *to);

/* The C library's, which ours takes the place of. */
int rename(const char *from, const char *to)
{
  if (at_rename) raise(at_rename);
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static size_t parts(void)
{
  glob_t found;
  size_t n = glob(temp_path("*.new-*"), 0, NULL, &found) == 0 ? found.gl_pathc : 0;
  globfree(&found);
  return n;
}

static pid_t writer(int signal)
{
  pid_t child = fork();
  if (child) return child;
  at_rename = signal;
  _exit(file_write(temp_path("target"), NULL, "child", 5) != AMPC_OK);
}

static void killed(void)
{
  int status;
  for (int i = 0; i < 3; i++) {
    pid_t child = writer(SIGKILL);
    MUST(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(parts() == 1); /* also after the third: each removes what the one before has left */
  }
  CHECK(file_write(temp_path("other"), NULL, "x", 1) == AMPC_OK && parts() == 1);
  CHECK(file_write(temp_path("target"), NULL, "whole", 5) == AMPC_OK && parts() == 0);
}

static void living(void)
{
  int status;
  pid_t child = writer(SIGSTOP);
  MUST(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
  CHECK(parts() == 1);
  CHECK(file_write(temp_path("target"), NULL, "ours", 4) == AMPC_OK && parts() == 1);
  kill(child, SIGCONT);
  MUST(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && parts() == 0);
}

/* Of another machine, which may be writing it: its lock may not be seen here. */
static void foreign(void)
{
  const char *part = temp_path("target.new-0123456789abcdef");
  temp_write(part, "", 0);
  CHECK(file_write(temp_path("target"), NULL, "x", 1) == AMPC_OK && parts() == 1);
  unlink(part);
}

int main(void)
{
  temp_open();
  killed();
  living();
  foreign();
  temp_close();
  return check_done();
}
