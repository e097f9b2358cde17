/* The command that makes an object or a program of an emitted file. Paths in it are the user's:
 * each is one word of the shell and never an option of the compiler. */
#include "build_line.h"
#include "runtime/plan/shown.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A word in single quotes; where the line could not be shown or pasted so, printf makes the word,
 * which every shell has. $() drops newlines at the end: path_fits sees to it that there are none.
 */
static void add_quoted(Text *out, const char *word)
{
  bool plain = ampc_is_plain(word, strlen(word));
  text_puts(out, plain ? "'" : "\"$(printf '");
  for (; *word; word++) {
    if (*word == '\'')
      text_puts(out, "'\\''");
    else if (plain)
      text_add(out, word, 1);
    else if (*word == '%')
      text_puts(out, "%%");
    else if (*word == '\\')
      text_puts(out, "\\\\");
    else if (*word >= ' ' && *word < 0x7f)
      text_add(out, word, 1);
    else
      text_printf(out, "\\%03o", (unsigned char)*word);
  }
  text_puts(out, plain ? "'" : "')\"");
}

void shell_word(Text *out, const char *word)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-+=./,:@%";
  if (*word && word[strspn(word, plain)] == 0)
    text_puts(out, word);
  else
    add_quoted(out, word);
}

static bool has_suffix(const char *path, const char *suffix)
{
  size_t n = strlen(path), m = strlen(suffix);
  return n > m && path[n - m - 1] != '/' && strcmp(path + n - m, suffix) == 0;
}

static const char *operand(Arena *arena, const char *path)
{
  size_t room = strlen(path) + sizeof "./";
  return ampc_path_argument(arena_alloc(arena, room, 1), room, path);
}

/* The emitted file: -o, or the job's name in the working directory. */
static const char *text_path(const CommandLine *cmd, const char *suffix, Arena *arena)
{
  if (cmd->output && strcmp(cmd->output, "-") != 0) return operand(arena, cmd->output);
  const char *slash = strrchr(cmd->options.input, '/');
  const char *name = slash ? slash + 1 : cmd->options.input;
  int stem = (int)(strlen(name) - (has_suffix(name, ".amp") ? 4 : 0));
  return operand(arena, arena_printf(arena, "%.*s%s", stem, name, suffix));
}

static bool path_fits(const char *path)
{
  if (path[strlen(path) - 1] != '\n') return true;
  fprintf(stderr, "ampc: error: no build line for a file whose name ends in a newline\n");
  return false;
}

bool build_line(const CommandLine *cmd, Text *out)
{
  static const char *const include_places[] = {"include", "../include", NULL};
  static const char *const library_places[] = {".", "../lib", "../lib/x86_64-linux-gnu",
                                               "../lib/aarch64-linux-gnu", NULL};
  const Target *target = target_of(cmd->options.target);
  const bool object = cmd->library;
  const char *suffix = target->suffix, *path = text_path(cmd, suffix, out->arena);
  bool named = has_suffix(path, suffix);
  int stem = (int)(strlen(path) - (named ? strlen(suffix) : 0));
  const char *end = object ? ".o" : named ? "" : ".out";
  const char *result = arena_printf(out->arena, "%.*s%s", stem, path, end);
  char include[PATH_MAX], library[PATH_MAX];
  if (!path_fits(path) || !path_fits(result)) return false;
  if (!find_beside(include_places, "ampc_rt.h", include) || !path_fits(include)) return false;
  if (!object && (!find_beside(library_places, "libampcrt.a", library) || !path_fits(library)))
    return false;
  text_puts(out, target->build[0]);
  if (object) text_puts(out, " -c");
  for (const char *const *flag = target->build + 1; *flag; flag++) text_printf(out, " %s", *flag);
  if (target->arch) text_printf(out, " %s%s", target->arch, cmd->options.target);
  text_puts(out, " -I");
  shell_word(out, include);
  text_puts(out, " -o ");
  shell_word(out, result);
  text_puts(out, " ");
  if (!named) text_printf(out, "-x %s ", target->language);
  shell_word(out, path);
  if (!object) {
    text_puts(out, named ? " -L" : target->kind == TARGET_cuda ? " -x c -L" : " -x none -L");
    shell_word(out, library);
    text_puts(out, " -lampcrt -lz -ldnnl -lgomp -ljansson -lxxhash -lpthread -ldl -lm");
  }
  text_puts(out, "\n");
  return true;
}
