/* From files to trees: reads a job, its imports and the texts of its own ops. */
#include "source.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "compiler/base/limits.h"

Compile *compile_create(const Options *options)
{
  Arena *arena = arena_create();
  Compile *c = arena_new(arena, Compile);
  c->arena = arena;
  c->ast = arena_new(arena, Ast);
  c->options = *options;
  return c;
}

void compile_destroy(Compile *c)
{
  if (c) arena_destroy(c->arena);
}

/* The text is copied to the arena, because messages quote the text. A file larger than MAX_SOURCE
 * is rejected before it fills the memory. */
const char *source_read(Arena *arena, FileRole role, const char *path, uint32_t *size,
                        const char **why)
{
  char *bytes;
  int64_t n;
  *why = file_read_any(role, path, MAX_SOURCE, &bytes, &n);
  if (*why) return NULL;
  Text text = text_new(arena);
  text_add(&text, bytes, (size_t)n);
  free(bytes);
  *size = (uint32_t)n;
  return text.at;
}

/* A file may have several paths, so its identity decides. A new file has only its path. */
const OpenText *source_opened(const Options *options, const char *path)
{
  struct stat file, other;
  for (uint32_t i = 0; i < options->n_open; i++)
    if (strcmp(options->open[i].path, path) == 0) return &options->open[i];
  if (!options->n_open || stat(path, &file)) return NULL;
  for (uint32_t i = 0; i < options->n_open; i++)
    if (stat(options->open[i].path, &other) == 0 && other.st_dev == file.st_dev &&
        other.st_ino == file.st_ino)
      return &options->open[i];
  return NULL;
}

const char *source_text_of(Compile *c, FileRole role, const char *path, uint32_t *size,
                           const char **why)
{
  const OpenText *open = source_opened(&c->options, path);
  if (!open) return source_read(c->arena, role, path, size, why);
  Text text = text_new(c->arena);
  text_add(&text, open->text, open->size);
  *size = open->size;
  return text.at;
}

/* diag_add_source() returns the source's offset among all sources. */
bool source_parse(Compile *c, const char *name, const char *text, uint32_t size, Ast *out)
{
  return ast_parse(c, diag_add_source(c, name, text, size, false), out) && !diag_error_count(c);
}

bool source_parse_file(Compile *c, const char *path, const char *text, uint32_t size, Ast *out)
{
  uint32_t base = diag_add_source(c, path, text, size, false);
  c->sources.at[c->sources.n - 1].file = true;
  return ast_parse(c, base, out) && !diag_error_count(c);
}

/* Finds an imported file by its identity, because it may have several paths ("../b/x.amp" from two
 * folders, a link). So a file that two files import has one entry, its names are declared once, and
 * circular imports end. */
static Import *find_import(Compile *c, const char *path, const struct stat *file)
{
  for (uint32_t i = 0; i < c->imports.n; i++) {
    Import *known = c->imports.at[i];
    bool same = file->st_ino && known->device == file->st_dev && known->inode == file->st_ino;
    if (same || strcmp(known->path, path) == 0) return known;
  }
  return NULL;
}

/* Returns the import at exactly this path, and parses it if it is new. Returns NULL and sets *why
 * if it cannot be read. */
static Import *open_import(Compile *c, const char *path, const char **why)
{
  struct stat file = {.st_ino = 0};
  if (stat(path, &file)) file.st_ino = 0; /* a file that is open, but was never saved */
  Import *known = find_import(c, path, &file);
  if (known) return known;
  uint32_t size;
  const char *text = source_text_of(c, FILE_IMPORT, path, &size, why);
  if (!text) return NULL;
  Import *import = arena_new(c->arena, Import);
  import->path = path;
  import->ast = arena_new(c->arena, Ast);
  import->device = file.st_dev;
  import->inode = file.st_ino;
  vec_push(c->arena, &c->imports, import);
  /* errors are counted; the declarations that could be parsed are used */
  source_parse_file(c, path, text, size, import->ast);
  return import;
}

/* Returns `path` relative to the folder of the file that contains `at`. */
static const char *path_beside(Compile *c, const char *path, Span at)
{
  const Source *from = diag_place(c, at).source;
  const char *slash = from && path[0] != '/' ? strrchr(from->path, '/') : NULL;
  if (!slash) return path;
  return arena_printf(c->arena, "%.*s%s", (int)(slash - from->path) + 1, from->path, path);
}

const char *source_open_text(Compile *c, const char *path, Span at, uint32_t *base, uint32_t *size)
{
  const char *why, *near = path_beside(c, path, at);
  const char *text = source_text_of(c, FILE_IMPORT, near, size, &why);
  if (!text) {
    diag_error(c, E211, at, "cannot read \"%s\": %s", near, why);
    c->cannot_read = true;
    return NULL;
  }
  *base = diag_add_source(c, near, text, *size, false);
  c->sources.at[c->sources.n - 1].file = true;
  return text;
}

/* Searches the folder of the importing file first, so that a project does not depend on -I, then
 * the -I folders in order. An error names the first of these paths. */
const Ast *source_import(Compile *c, const char *path, Span at)
{
  const char *near = path_beside(c, path, at);
  const char *why, *other;
  Import *found = open_import(c, near, &why);
  for (uint32_t i = 0; !found && path[0] != '/' && i < c->options.n_include_dirs; i++)
    found =
        open_import(c, arena_printf(c->arena, "%s/%s", c->options.include_dirs[i], path), &other);
  if (found) return found->ast;
  diag_error(c, E211, at, "cannot read \"%s\": %s", near, why);
  if (path[0] != '/') diag_help(c, "imports are searched next to this file and in each -I folder");
  c->cannot_read = true;
  return NULL;
}
