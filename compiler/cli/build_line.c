/* The command that builds an object or a program from an emitted file. It contains paths of the
 * user: each must be one word of the shell and must not look like an option of the compiler. */
#include "build_line.h"
#include "common/shown.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const cross_names[] = {"aarch64", NULL};
const CrossTarget cross_targets[] = {{"armv8-a", "aarch64-linux-gnu", "arm64"}};

/* Finds the first of `places`, folders relative to `self`, that contains `file`. */
static bool find_file(const char *self, const char *const *places, const char *file, char *out)
{
  char path[PATH_MAX + 64];
  for (; *places; places++) {
    snprintf(path, sizeof path, "%s/%s/%s", self, *places, file);
    if (access(path, R_OK) != 0) continue;
    *strrchr(path, '/') = 0; /* the folder of the link itself, because the neighbours are there */
    if (realpath(path, out)) return true;
  }
  return false;
}

/* The same, with the error if there is none. */
static bool find_beside(const char *self, const char *const *places, const char *file, char *out)
{
  if (find_file(self, places, file, out)) return true;
  fprintf(stderr, "ampc: error: %s is not installed next to this program in %s\n", file, self);
  return false;
}

/* Finds the archive of another machine. */
static bool find_cross(const char *self, const CrossTarget *cross, Arena *arena, char *out)
{
  const char *name = cross_names[cross - cross_targets];
  const char *installed = arena_printf(arena, "../lib/%s", cross->triplet);
  const char *built = arena_printf(arena, "../build-%s", name);
  if (find_file(self, (const char *[]){installed, built, NULL}, "libampcrt.a", out)) return true;
  fprintf(
      stderr,
      "ampc: error: libampcrt.a for %s is neither in %s/%s nor in %s/%s. The preset %s of ampc's "
      "CMakeLists.txt builds the latter. To take it from a package: dpkg --fsys-tarfile "
      "ampc_" AMPC_VERSION "_%s.deb | tar -x -C '%s/..' --strip-components=2 ./usr/lib/%s\n",
      name, self, installed, self, built, name, cross->debian, self, cross->triplet);
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
  const CrossTarget *cross; /* NULL: for this machine */
  bool object;              /* builds an object file, not a program */
  bool named; /* the emitted file has the target's suffix, so the compiler needs no -x */
  const char *path, *result;
  char include[PATH_MAX], library[PATH_MAX];
} Build;

static bool find_parts(const CommandLine *cmd, Arena *arena, Build *b)
{
  static const char *const include_places[] = {"include", "../include", NULL};
  static const char *const library_places[] = {".", "../" AMPC_LIBDIR, NULL};
  const char *suffix = b->target->suffix;
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  b->path = text_path(cmd, suffix, arena);
  b->named = has_suffix(b->path, suffix);
  int stem = (int)(strlen(b->path) - (b->named ? strlen(suffix) : 0));
  b->result = arena_printf(arena, "%.*s%s", stem, b->path,
                           b->object  ? ".o"
                           : b->named ? ""
                                      : ".out");
  if (!path_fits(b->path) || !path_fits(b->result) || n < 0) return false;
  self[n] = 0;
  *strrchr(self, '/') = 0;
  if (!find_beside(self, include_places, "ampc_rt.h", b->include) || !path_fits(b->include))
    return false;
  if (b->object) return true;
  bool found = b->cross ? find_cross(self, b->cross, arena, b->library)
                        : find_beside(self, library_places, "libampcrt.a", b->library);
  return found && path_fits(b->library);
}

/* Adds the compiler and its flags. */
static void add_compiler(const CommandLine *cmd, const Build *b, Text *out)
{
  const Target *target = b->target;
  if (b->cross)
    text_printf(out, "%s-gcc", b->cross->triplet);
  else
    text_puts(out, target->build[0]);
  if (b->object) text_puts(out, " -c");
  for (const char *const *flag = target->build + 1; *flag; flag++) text_printf(out, " %s", *flag);
  if (target->arch)
    text_printf(out, " %s%s", target->arch, cmd->options.target);
  else
    text_printf(out, " -march=%s",
                b->cross && !cmd->options.march ? b->cross->march : target_march(&cmd->options));
}

bool build_line(const CommandLine *cmd, Text *out)
{
  const Target *target = target_of(cmd->options.target);
  Build b = {.target = target, .object = cmd->library};
  if (cmd->cross) b.cross = &cross_targets[cmd->cross - 1];
  if (!find_parts(cmd, out->arena, &b)) return false;
  add_compiler(cmd, &b, out);
  if (cmd->is_static) text_puts(out, " -static -Wl,--wrap=dlopen");
  add_word(out, "-I", b.include);
  add_word(out, "-o ", b.result);
  if (!b.named) text_printf(out, " -x %s", target->language);
  add_word(out, "", b.path);
  if (!b.object) {
    if (!b.named) text_puts(out, target->kind == TARGET_cuda ? " -x c" : " -x none");
    add_word(out, "-L", b.library);
    /* the archive, which a program does not need when it runs; a shared library may be there too */
    text_printf(out, " -l:libampcrt.a %s", cmd->is_static ? "-l:libampcstatic.a " : "");
    text_printf(out, "%s" AMPC_TEXT_LIBRARIES " ",
                target->kind == TARGET_cuda ? "-Xlinker " : "-Wl,");
    text_puts(out, cmd->options.no_onednn ? AMPC_OWN_LIBRARIES : AMPC_LIBRARIES);
  }
  text_puts(out, "\n");
  return true;
}
