/* Runs the C compiler; see toolchain.h. Text goes in and messages come out through files in
 * memory, so a run that is killed leaves nothing behind. */
#include "toolchain.h"
#include "runtime/plan/shown.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each kernel gives the same bits whatever stands beside it in the file: no contraction, no
 * reordering, no flush to zero. Neither of the last two flags changes a value: math functions do
 * not set errno, and nobody looks at the floating-point exceptions. */
#define FLAGS      "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"
#define FLAGS_TEXT "-O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math"

extern char **environ;

/* An anonymous file with this content, at its start; -1 with errno. */
static int memory_file(const char *text, size_t size)
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

/* The child's exit status (128 + signal when it was killed), or -1 with errno. */
static int run(char *const argv[], char **environment, int input, int output)
{
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t child;
  int failed = posix_spawn(&child, argv[0], &actions, NULL, argv, environment), status = 0;
  posix_spawn_file_actions_destroy(&actions);
  if (failed) {
    errno = failed;
    return -1;
  }
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- finding ---- */

static bool find_in_path(const char *name, char out[PATH_MAX])
{
  const char *path = getenv("PATH");
  if (!path) path = "/usr/local/bin:/usr/bin:/bin";
  while (*path) {
    size_t n = strcspn(path, ":");
    /* an empty or relative entry would mean the working directory: not for a program we run */
    if (*path == '/' && snprintf(out, PATH_MAX, "%.*s/%s", (int)n, path, name) < PATH_MAX &&
        access(out, X_OK) == 0)
      return true;
    path += n + (path[n] == ':');
  }
  return false;
}

/* The first line of `compiler --version`. */
static void read_version(char *compiler, char *out, size_t size)
{
  int input = memory_file("", 0), output = memory_file("", 0);
  ssize_t n = 0;
  if (input >= 0 && output >= 0 &&
      run((char *[]){compiler, "--version", NULL}, environ, input, output) == 0)
    n = pread(output, out, size - 1, 0);
  out[n > 0 ? n : 0] = 0;
  out[strcspn(out, "\n")] = 0;
  if (input >= 0) close(input);
  if (output >= 0) close(output);
}

/* What -march=native depends on: the description of the first processor but for its clock. */
static void read_processor(char *out, size_t size)
{
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[8192];
  size_t used = 0;
  out[0] = 0;
  while (f && fgets(line, sizeof line, f) && line[0] != '\n') {
    static const char *const wanted[] = {"vendor_id", "cpu family",      "model",    "stepping",
                                         "flags",     "CPU implementer", "CPU part", "Features"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
      if (strncmp(line, wanted[i], strlen(wanted[i])) == 0 && used < size) {
        used += (size_t)snprintf(out + used, size - used, "%s", line);
        break;
      }
  }
  if (f) fclose(f);
}

static Toolchain the_toolchain;

static void find_once(void)
{
  static const char *const names[] = {"cc", "gcc", "clang"};
  static char path[PATH_MAX], identity[PATH_MAX + 32768];
  char version[256], processor[16384];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (!find_in_path(names[i], path)) continue;
    read_version(path, version, sizeof version);
    read_processor(processor, sizeof processor);
    snprintf(identity, sizeof identity, "%s\n%s\n%s\n%s", path, version, FLAGS_TEXT, processor);
    the_toolchain = (Toolchain){path, identity};
    return;
  }
}

ampc_status toolchain_find(const Toolchain **out)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_once);
  *out = &the_toolchain;
  if (the_toolchain.compiler) return AMPC_OK;
  return ampc_fail(AMPC_NO_COMPILER, "no C compiler: PATH has none of cc, gcc and clang; "
                                     "install one, for example with: apt-get install gcc");
}

/* ---- building ---- */

typedef struct Environment {
  char **at; /* malloced; NULL: out of memory */
  char temporary[PATH_MAX + 8];
} Environment;

/* Ours, but for two: messages are in English, for find_full reads them, and temporary files may
 * have a place. */
static void make_environment(const char *scratch, Environment *out)
{
  static char english[] = "LC_ALL=C";
  size_t n = 0, kept = 0;
  while (environ[n]) n++;
  out->at = calloc(n + 3, sizeof *out->at);
  for (size_t i = 0; i < n && out->at; i++) {
    bool other = strncmp(environ[i], "LC_ALL=", 7) == 0 ||
                 (scratch && strncmp(environ[i], "TMPDIR=", 7) == 0);
    if (!other) out->at[kept++] = environ[i];
  }
  if (!out->at) return;
  out->at[kept++] = english;
  snprintf(out->temporary, sizeof out->temporary, "TMPDIR=%s", scratch ? scratch : "");
  if (scratch) out->at[kept] = out->temporary;
}

enum { MESSAGES = 4096 /* bytes of the compiler's messages that are read */ };

/* The line that tells of a disk without room, as a string; NULL: there is none. */
static const char *find_full(char *messages)
{
  static const char *const reasons[] = {"No space left on device", "Disk quota exceeded"};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
    char *at = strcasestr(messages, reasons[i]);
    if (!at) continue;
    at[strcspn(at, "\n")] = 0;
    while (at > messages && at[-1] != '\n') at--;
    return at;
  }
  return NULL;
}

/* Why the compiler refused, in its own words. */
static ampc_status refused(const Toolchain *t, int fd, int status)
{
  char text[MESSAGES + 1];
  ssize_t n = pread(fd, text, MESSAGES, 0);
  text[n > 0 ? n : 0] = 0;
  const char *full = find_full(text);
  if (full) return ampc_fail(AMPC_BAD_FILE, "%s", full);
  char log[MESSAGES + PATH_MAX + 100];
  snprintf(log, sizeof log, "%s failed on the kernels with exit status %d\n%s", t->compiler, status,
           text);
  return ampc_fail_log(AMPC_NO_COMPILER, log);
}

ampc_status toolchain_build(const Toolchain *t, const char *text, size_t size, const char *path,
                            const char *scratch)
{
  char *compiler = (char *)(uintptr_t)t->compiler, result[PATH_MAX + 2];
  ampc_path_argument(result, sizeof result, path);
  char *argv[] = {compiler, FLAGS, "-std=gnu11", "-w", "-shared", "-fPIC", "-x", "c",
                  "-",      "-x",  "none",       "-o", result,    "-lm",   NULL};
  Environment environment;
  make_environment(scratch, &environment);
  int input = memory_file(text, size), messages = memory_file("", 0);
  bool ready = environment.at && input >= 0 && messages >= 0;
  int status = ready ? run(argv, environment.at, input, messages) : -1;
  ampc_status result_status = AMPC_OK;
  if (status < 0)
    result_status = ampc_fail(AMPC_NO_COMPILER, "cannot run %s: %s", t->compiler, strerror(errno));
  else if (status > 0)
    result_status = refused(t, messages, status);
  if (input >= 0) close(input);
  if (messages >= 0) close(messages);
  free(environment.at);
  return result_status;
}
