/* What the names of the tensors in a file say about the job. */
#include <stdlib.h>
#include <string.h>
#include "common/pattern.h"
#include "folder.h"
#include "runtime/state/load.h"

static const struct {
  const char *family, *constant, *pattern;
} tensors[] = {
#define TENSOR(family, ...) {#family, __VA_ARGS__},
#include "families.def"
};

static bool any_matches(const Loading *x, const char *pattern)
{
  for (uint32_t i = 0; i < x->n; i++)
    if (pattern_matches(pattern, x->at[i].name, false)) return true;
  return false;
}

/* The patterns of a family that some tensor matches. A pattern that matches nothing is an error. */
static void list_unused(Folder *f, const Loading *x)
{
  Text t = text_new(f->arena);
  for (const char *at = f->family->unused; *at; at += strcspn(at, " "), at += *at == ' ') {
    const char *pattern = arena_strndup(f->arena, at, strcspn(at, " "));
    if (any_matches(x, pattern)) text_printf(&t, "%s\"%s\"", t.n ? ", " : "", pattern);
  }
  setting_add(f, "UNUSED", arena_printf(f->arena, "[%s]", t.n ? t.at : ""));
}

/* A path as the job names it: relative to the job's folder if the file is in it or below. */
static const char *path_in_job(Arena *arena, const char *path, const char *job_folder)
{
  char *whole = realpath(path, NULL), *root = realpath(job_folder, NULL);
  size_t n = root ? strlen(root) : 0;
  const char *own = whole && root && strncmp(whole, root, n) == 0 && whole[n] == '/' ? whole + n + 1
                    : whole                                                          ? whole
                                                                                     : path;
  own = arena_strdup(arena, own);
  free(whole);
  free(root);
  return own;
}

const char *path_code(Arena *arena, const char *path, const char *job_folder)
{
  path = path_in_job(arena, path, job_folder);
  json_t *text = json_string(path);
  char *code = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
  const char *out = arena_strdup(arena, code ? code : "\"\"");
  free(code);
  json_decref(text);
  return out;
}

void weights_settings(Folder *f, const Loading *x, const char *job_folder)
{
  const char *prefix = f->family->prefix;
  setting_add(f, "WEIGHTS", path_code(f->arena, f->weights, job_folder));
  if (f->gguf)
    gguf_settings(f, x);
  else if (*prefix && !any_matches(x, prefix))
    setting_add(f, "RENAME", arena_printf(f->arena, "[[\"**\", \"%s.**\"]]", prefix));
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
    if (strcmp(tensors[i].family, f->family->name) == 0)
      setting_add(f, tensors[i].constant, any_matches(x, tensors[i].pattern) ? "true" : "false");
  list_unused(f, x);
}
