/* Columns of names: the classes that a file has, and their numbers. All files of a job number them
 * in the same way, and infer blocks as training did. */
#include "block.h"
#include "runtime/data/formats/args.h"
#include "runtime/data/formats/classes.h"
#include <stdlib.h>
#include <string.h>

/* Checks that files of one job number the classes of a column in the same way. */
static bool same_classes(Lower *l, const ampc_source *s, Span span)
{
  int n, m;
  const char *column = args_next(s->args, "column", NULL, &n);
  for (uint32_t i = 0; i < l->g->sources.n; i++) {
    const ampc_source *o = &l->g->sources.at[i];
    if (o->kind != s->kind || !args_integer(o->args, "labels")) continue;
    const char *other = args_next(o->args, "column", NULL, &m);
    const char *ours = strstr(s->args, "\nclass="), *theirs = strstr(o->args, "\nclass=");
    bool same = m != n || memcmp(column, other, (size_t)n) != 0 || !ours || !theirs ||
                strcmp(ours, theirs) == 0;
    if (!same)
      return refuse(l, E605, span,
                    "%s and %s have different names in column %.*s, so they would number the "
                    "classes differently: list the names, classes=[\"..\", ..]",
                    o->path, s->path, n, column);
  }
  return true;
}

/* Gives a column the numbers that its classes had in training, which the weights know. `lines`: the
 * classes of the file and of the weights. A list in the job must agree. */
static bool keep_numbers(Lower *l, const char *known, size_t n, const char *lines, Span span,
                         ampc_source *s)
{
  int size, m;
  const char *column = args_next(s->args, "column", NULL, &size);
  const char *listed = strstr(s->args, "\nclass=");
  if (listed) {
    if (strncmp(listed + 1, known, n) == 0 && !listed[1 + n]) return true;
    fail(
        l, E605, span,
        "`classes` lists other names than those that column %.*s had in training, so numbers would "
        "mean other classes",
        size, column);
    return diag_help(l->c, "classes=true takes the names and their order from the weights");
  }
  s->args = arena_printf(l->arena, "%s%.*s", s->args, (int)n, known);
  Classes classes;
  if (classes_read(s->args, &classes)) {
    classes_free(&classes);
    return refuse(l, E604, span, "the weights name classes of column %.*s wrongly: %s", size,
                  column, ampc_last_error());
  }
  const char *at = lines ? args_next(lines, "class", NULL, &m) : NULL;
  while (at && classes_find(&classes, arena_strndup(l->arena, at, (size_t)m)))
    at = args_next(lines, "class", at, &m);
  int64_t count = classes.n;
  classes_free(&classes);
  if (!at) return true;
  fail(l, E605, span,
       "%s has the class `%.*s` in column %.*s, which is none of the %lld in training", s->path, m,
       at, size, column, (long long)count);
  return diag_help(l->c, "leave such samples out, or train again with samples of this class");
}

/* Keeps the numbers of the classes of a column for checkpoints. */
static void keep_column(Lower *l, const ampc_source *s)
{
  int n;
  const char *known, *before = l->g->columns;
  const char *column = args_next(s->args, "column", NULL, &n);
  if (!column || (before && classes_of_column(before, column, n, &known))) return;
  Text t = text_new(l->arena);
  text_printf(&t, "%scolumn=%.*s\n", before ? before : "", n, column);
  for (const char *at = args_next(s->args, "class", NULL, &n); at;
       at = args_next(s->args, "class", at, &n))
    text_printf(&t, "class=%.*s\n", n, at);
  l->g->columns = t.at;
}

bool read_classes(Lower *l, const ampc_format *format, Span span, ampc_source *s)
{
  char *lines = NULL;
  bool there = true;
  if (!format->classes || !args_integer(s->args, "labels")) return true;
  const char *path = data_path(l, s->path), *known = NULL;
  ampc_status status = ampc_shards_classes(format, path, s->args, &there, &lines);
  if (status == AMPC_RUN_FAILED) arena_out_of_memory();
  int size;
  const char *column = args_next(s->args, "column", NULL, &size);
  const char *columns = l->c->options.columns;
  size_t n = columns && column ? classes_of_column(columns, column, size, &known) : 0;
  bool good = !n || keep_numbers(l, known, n, lines, span, s);
  if (lines && !n) s->args = arena_printf(l->arena, "%s%s", s->args, lines);
  free(lines);
  if (!good) return false;
  if (status || !there) l->c->cannot_read = true;
  if (status) return refuse(l, E604, span, "%s", ampc_last_error());
  if (there || args_integer(s->args, "listed")) {
    keep_column(l, s);
    return same_classes(l, s, span);
  }
  fail(l, E604, span, "%s cannot be opened, so its classes are unknown", path);
  return diag_help(l->c, "classes=[\"..\", ..] names them without the file");
}
