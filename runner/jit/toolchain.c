/* Runs the C compiler; see toolchain.h. */
#include "toolchain.h"
#include "child.h"
#include "compiler/base/target.h"
#include "runtime/base/interrupt.h"
#include "common/shown.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* ---- finding ---- */

/* Reads the first line of `compiler --version`. */
static void read_version(char *compiler, char *out, size_t size)
{
  int input = child_file("", 0), output = child_file("", 0);
  ssize_t n = 0;
  if (input >= 0 && output >= 0 &&
      child_run((char *[]){compiler, "--version", NULL}, NULL, input, output) == 0)
    n = pread(output, out, size - 1, 0);
  out[n > 0 ? n : 0] = 0;
  out[strcspn(out, "\n")] = 0;
  if (input >= 0) close(input);
  if (output >= 0) close(output);
}

/* Reads the fields of the first processor in /proc/cpuinfo on which -march=native depends. */
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

static void find(void)
{
  static const char *const names[] = {"cc", "gcc", "clang"};
  static char path[PATH_MAX], identity[PATH_MAX + 32768];
  char version[256], processor[16384];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (!child_find(names[i], path)) continue;
    read_version(path, version, sizeof version);
    if (interrupt_requested()) return; /* the version may be incomplete */
    read_processor(processor, sizeof processor);
    snprintf(identity, sizeof identity, "%s\n%s\n%s", path, version, processor);
    const char *const *flag = target_of("cpu")->build + 1;
    for (size_t n = strlen(identity); *flag; n += strlen(*flag++))
      snprintf(identity + n, sizeof identity - n, "%s", *flag);
    the_toolchain = (Toolchain){path, identity, "native"};
    return;
  }
}

ampc_status toolchain_find(const Toolchain **out)
{
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one);
  if (!the_toolchain.compiler) find();
  pthread_mutex_unlock(&one);
  *out = &the_toolchain;
  if (the_toolchain.compiler) return AMPC_OK;
  if (interrupt_requested()) return ampc_fail(AMPC_INTERRUPTED, "interrupted");
  return ampc_fail(AMPC_NO_COMPILER, "no C compiler: PATH has none of cc, gcc and clang; "
                                     "install one, for example with: apt-get install gcc");
}

/* ---- building ---- */

typedef struct Environment {
  char **at; /* malloced; NULL: out of memory */
  char temporary[PATH_MAX + 8];
} Environment;

/* Makes the environment of this process with two changes. LC_ALL=C makes messages English, because
 * find_full searches them. TMPDIR is `scratch`, unless that is NULL. */
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

enum { MESSAGES = 4096 /* bytes read of the compiler's messages */ };

/* Returns the line of the messages that reports a full disk, NUL-terminated; NULL: no such line. */
static const char *find_full(char *messages)
{
  static const char *const reasons[] = {"No space left on device", "Disk quota exceeded",
                                        "File too large"};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
    char *at = strcasestr(messages, reasons[i]);
    if (!at) continue;
    at[strcspn(at, "\n")] = 0;
    while (at > messages && at[-1] != '\n') at--;
    return at;
  }
  return NULL;
}

/* Reports the compiler's own messages. */
static ampc_status refused(const Toolchain *t, int fd, int status)
{
  char text[MESSAGES + 1];
  ssize_t n = pread(fd, text, MESSAGES, 0);
  text[n > 0 ? n : 0] = 0;
  const char *full = find_full(text);
  if (full) return ampc_fail(AMPC_BAD_FILE, "%s", full);
  char log[MESSAGES + PATH_MAX + 100];
  snprintf(log, sizeof log, "%s cannot compile the kernels; its exit status is %d\n%s", t->compiler,
           status, text);
  return ampc_fail_log(AMPC_NO_COMPILER, log);
}

ampc_status toolchain_build(const Toolchain *t, const char *text, size_t size, const char *path,
                            const char *scratch)
{
  char *compiler = (char *)(uintptr_t)t->compiler, result[PATH_MAX + 2], march[64];
  ampc_path_argument(result, sizeof result, path);
  snprintf(march, sizeof march, "-march=%s", t->march);
  char *argv[] = {
      compiler, TARGET_CPU_FLAGS, march, "-std=gnu11", "-w",  "-shared", "-fPIC", "-x", "c", "-",
      "-x",     "none",           "-o",  result,       "-lm", NULL};
  Environment environment;
  make_environment(scratch, &environment);
  int input = child_file(text, size), messages = child_file("", 0);
  bool ready = environment.at && input >= 0 && messages >= 0;
  int status = ready ? child_run(argv, environment.at, input, messages) : -1;
  ampc_status result_status = AMPC_OK;
  if (status < 0)
    result_status = ampc_fail(AMPC_NO_COMPILER, "cannot run %s: %s", t->compiler, strerror(errno));
  else if (status > 0 && interrupt_requested())
    result_status = ampc_fail(AMPC_INTERRUPTED, "interrupted");
  else if (status > 0)
    result_status = refused(t, messages, status);
  if (input >= 0) close(input);
  if (messages >= 0) close(messages);
  free(environment.at);
  return result_status;
}
