/* Writes whole files, and knows how the emitted ones are built. */
#include "output.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool complain(const char *path)
{
  fprintf(stderr, "ampc: error: cannot write %s: %s\n", path, strerror(errno));
  return false;
}

/* A signal may cut a write short. */
static bool write_all(int fd, const char *data, size_t size)
{
  for (size_t done = 0; done < size;) {
    ssize_t n = write(fd, data + done, size - done);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) done += (size_t)n;
  }
  return true;
}

/* Devices and pipes cannot be replaced by a rename. */
static bool write_directly(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  if (!f) return complain(path);
  bool good = fwrite(data, 1, size, f) == size;
  if (fclose(f) != 0 || !good) return complain(path);
  return true;
}

/* The temporary file lies in the same folder, for only there a rename is one step. It gets the
 * permissions that a new file would have. */
static bool write_renamed(const char *path, const void *data, size_t size)
{
  char temporary[PATH_MAX];
  if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
    errno = ENAMETOOLONG;
  else
    errno = 0;
  int fd = errno ? -1 : mkstemp(temporary);
  if (fd < 0) return complain(path);
  mode_t mask = umask(0);
  umask(mask);
  bool good = fchmod(fd, 0666 & ~mask) == 0 && write_all(fd, data, size);
  good = close(fd) == 0 && good;
  if (good && rename(temporary, path) == 0) return true;
  complain(path);
  unlink(temporary);
  return false;
}

bool output_write(const char *path, const void *data, size_t size)
{
  if (!path || strcmp(path, "-") == 0) {
    bool good = fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0;
    return good || complain("to stdout");
  }
  struct stat at;
  bool special = stat(path, &at) == 0 && !S_ISREG(at.st_mode);
  return special ? write_directly(path, data, size) : write_renamed(path, data, size);
}

/* ---- build lines ---- */

/* The first of `places`, relative to the folder of this program, that holds `file`. */
static bool find_beside(const char *const *places, const char *file, char *out)
{
  char self[PATH_MAX], path[PATH_MAX + 64];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n < 0) return false;
  self[n] = 0;
  *strrchr(self, '/') = 0;
  for (; *places; places++) {
    snprintf(path, sizeof path, "%s/%s/%s", self, *places, file);
    if (access(path, R_OK) != 0) continue;
    *strrchr(path, '/') = 0; /* the folder: a link's own, where its neighbours are, too */
    if (realpath(path, out)) return true;
  }
  fprintf(stderr, "ampc: error: %s is not installed beside this program in %s\n", file, self);
  return false;
}

/* A word of a shell command, in quotes where it needs them. */
static void add_word(Text *out, const char *word)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-+=./,:@%";
  if (*word && word[strspn(word, plain)] == 0) {
    text_puts(out, word);
    return;
  }
  text_puts(out, "'");
  for (; *word; word++) *word == '\'' ? text_puts(out, "'\\''") : text_add(out, word, 1);
  text_puts(out, "'");
}

static bool has_suffix(const char *path, const char *suffix)
{
  size_t n = strlen(path), m = strlen(suffix);
  return n > m && strcmp(path + n - m, suffix) == 0;
}

/* The emitted file: -o, or the job's name in the working directory. */
static const char *text_path(const CommandLine *cmd, const char *suffix, Arena *arena)
{
  if (cmd->output && strcmp(cmd->output, "-") != 0) return cmd->output;
  const char *slash = strrchr(cmd->options.input, '/');
  const char *name = slash ? slash + 1 : cmd->options.input;
  int stem = (int)(strlen(name) - (has_suffix(name, ".amp") ? 4 : 0));
  return arena_printf(arena, "%.*s%s", stem, name, suffix);
}

bool output_build_line(const CommandLine *cmd, Text *out)
{
  static const char *const include_places[] = {"include", "../include", NULL};
  static const char *const library_places[] = {".", "../lib", "../lib/x86_64-linux-gnu",
                                               "../lib/aarch64-linux-gnu", NULL};
  bool cuda = cmd->kind == OUTPUT_cuda, object = cmd->library;
  const char *suffix = cuda ? ".cu" : ".c", *path = text_path(cmd, suffix, out->arena);
  char include[PATH_MAX], library[PATH_MAX];
  if (!find_beside(include_places, "ampc_rt.h", include)) return false;
  if (!object && !find_beside(library_places, "libampcrt.a", library)) return false;
  if (cuda)
    text_printf(out, "nvcc %s--fmad=false -arch=%s", object ? "-c " : "", cmd->options.target);
  else
    text_printf(out, "cc %s-O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math",
                object ? "-c " : "");
  text_puts(out, " -I");
  add_word(out, include);
  bool named = has_suffix(path, suffix);
  int stem = (int)(strlen(path) - (named ? strlen(suffix) : 0));
  const char *result = object ? ".o" : named ? "" : ".out";
  text_puts(out, " -o ");
  add_word(out, arena_printf(out->arena, "%.*s%s", stem, path, result));
  text_puts(out, named ? " " : cuda ? " -x cu " : " -x c ");
  add_word(out, path);
  if (!object) {
    text_puts(out, named ? " -L" : cuda ? " -x c -L" : " -x none -L");
    add_word(out, library);
    text_puts(out, " -lampcrt -lz -ldnnl -lgomp -ljansson -lxxhash -lpthread -ldl -lm");
  }
  text_puts(out, "\n");
  return true;
}
