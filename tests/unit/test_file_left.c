/* What a killed writer leaves next to its target, and who removes it. The writer stops at rename(),
 * when its file is complete but does not have the target's name yet. */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>
#include "check.h"
#include "common/file.h"
#include "temp.h"

static int at_rename; /* the signal that a writer raises in rename(); 0: none */

int rename(const char *from, const char *to);

/* Replaces the C library's function: the writer stops here. */
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
    CHECK(parts() == 1); /* also after the third: each writer removes the previous one's file */
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

/* Makes a file of another machine, which may still write it. Its lock may be invisible here. */
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
