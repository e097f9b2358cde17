/* Runs another program; see child.h. Its input and output are files in memory, so no file is left
 * over if this process is killed. */
#include "child.h"
#include "notice.h"
#include "runtime/base/interrupt.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LOOK = 2, PATIENCE = 2000 /* ms: polling interval; time from SIGTERM to SIGKILL */ };

int child_file(const char *text, size_t size)
{
  int fd = memfd_create("ampc", MFD_CLOEXEC);
  for (size_t done = 0; fd >= 0 && done < size;) {
    ssize_t n = write(fd, text + done, size - done);
    if (n < 0 && errno != EINTR) {
      close(fd);
      return -1;
    }
    if (n > 0) done += (size_t)n;
  }
  if (fd >= 0) lseek(fd, 0, SEEK_SET);
  return fd;
}

/* Starts the child in its own process group, so Ctrl-C on the terminal does not reach it. Only
 * wait_for terminates it, and gives it time to remove its files. */
static int spawn(pid_t *out, char *const argv[], char **environment, int input, int output)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t group;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_init(&group);
  posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
  int failed =
      posix_spawn(out, argv[0], &actions, &group, argv, environment ? environment : environ);
  posix_spawnattr_destroy(&group);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

/* Waits for the child, and terminates it after an interrupt. False: waitpid failed. */
static bool wait_for(pid_t child, int *out_status)
{
  pid_t ended;
  for (int asked = 0; (ended = waitpid(child, out_status, WNOHANG)) != child; poll(NULL, 0, LOOK)) {
    if (ended < 0 && errno != EINTR) return false;
    notice_tick(0);
    if (!interrupt_requested()) continue;
    if (asked == 0) kill(-child, SIGTERM);
    if (asked >= PATIENCE) kill(-child, SIGKILL);
    asked += LOOK;
  }
  return true;
}

/* Runs a program. Until it ends, signals do not end this process: wait_for terminates it first. */
int child_run(char *const argv[], char **environment, int input, int output)
{
  pid_t child;
  int status = 0;
  interrupt_hold();
  errno = spawn(&child, argv, environment, input, output);
  bool ran = !errno && wait_for(child, &status);
  interrupt_release();
  if (!ran) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool child_find(const char *name, char out[PATH_MAX])
{
  const char *path = getenv("PATH");
  if (!path) path = "/usr/local/bin:/usr/bin:/bin";
  while (*path) {
    size_t n = strcspn(path, ":");
    /* skip empty and relative entries: they depend on the working directory */
    if (*path == '/' && snprintf(out, PATH_MAX, "%.*s/%s", (int)n, path, name) < PATH_MAX &&
        access(out, X_OK) == 0)
      return true;
    path += n + (path[n] == ':');
  }
  return false;
}
