/* The command that builds an object or a program from an emitted file. It contains paths of the
 * user: each must be one word of the shell and must not look like an option of the compiler. */
#include "build_line.h"
#include "common/shown.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the first of `places`, folders relative to that of this program, that contains `file`. */
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
    *strrchr(path, '/') = 0; /* the folder of the link itself, because the neighbours are there */
    if (realpath(path, out)) return true;
  }
  fprintf(stderr, "ampc: error: %s is not installed next to this program in %s\n", file, self);
  return false;
}

/* Prints a word in single quotes. Characters that cannot be printed or pasted are written as a call
 * of printf, which every shell has. $() drops newlines at the end, but path_fits has rejected such
 * names. */
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

/* Returns the path of the emitted file: -o, or the job's name in the working directory. */
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

/* Adds `flag` and then the quoted word. */
static void add_word(Text *out, const char *flag, const char *word)
{
  text_printf(out, " %s", flag);
  shell_word(out, word);
}

/* The pieces of the command. */
typedef struct Build {
  const Target *target;
  bool object; /* builds an object file, not a program */
  bool named;  /* the emitted file has the target's suffix, so the compiler needs no -x */
  const char *path, *result;
  char include[PATH_MAX], library[PATH_MAX];
} Build;

static bool find_parts(const CommandLine *cmd, Arena *arena, Build *b)
{
  static const char *const include_places[] = {"include", "../include", NULL};
  static const char *const library_places[] = {".", "../" AMPC_LIBDIR, NULL};
  const char *suffix = b->target->suffix;
  b->path = text_path(cmd, suffix, arena);
  b->named = has_suffix(b->path, suffix);
  int stem = (int)(strlen(b->path) - (b->named ? strlen(suffix) : 0));
  b->result = arena_printf(arena, "%.*s%s", stem, b->path,
                           b->object  ? ".o"
                           : b->named ? ""
                                      : ".out");
  if (!path_fits(b->path) || !path_fits(b->result) ||
      !find_beside(include_places, "ampc_rt.h", b->include) || !path_fits(b->include))
    return false;
  return b->object ||
         (find_beside(library_places, "libampcrt.a", b->library) && path_fits(b->library));
}

bool build_line(const CommandLine *cmd, Text *out)
{
  const Target *target = target_of(cmd->options.target);
  Build b = {.target = target, .object = cmd->library};
  if (!find_parts(cmd, out->arena, &b)) return false;
  text_printf(out, "%s%s", target->build[0], b.object ? " -c" : "");
  for (const char *const *flag = target->build + 1; *flag; flag++) text_printf(out, " %s", *flag);
  if (!target->arch) text_printf(out, " -march=%s", target_march(&cmd->options));
  if (target->arch) text_printf(out, " %s%s", target->arch, cmd->options.target);
  add_word(out, "-I", b.include);
  add_word(out, "-o ", b.result);
  if (!b.named) text_printf(out, " -x %s", target->language);
  add_word(out, "", b.path);
  if (!b.object) {
    if (!b.named) text_puts(out, target->kind == TARGET_cuda ? " -x c" : " -x none");
    add_word(out, "-L", b.library);
    /* the archive, which a program does not need when it runs; a shared library may be there too */
    text_puts(out, " -l:libampcrt.a " AMPC_LIBRARIES);
  }
  text_puts(out, "\n");
  return true;
}
