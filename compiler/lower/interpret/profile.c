/* Reads `precision auto` and `precision profile("file.amp")`: the `precision` of another file,
 * which `amp tune` has written. `auto` is the file beside the job, net.precision.amp for net.amp.
 */
#include "compiler/syntax/source.h"
#include "interpret.h"

static const char *auto_path(Lower *l, const Decl *decl)
{
  const char *path = diag_place(l->c, decl->span).source->path;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  size_t n = strlen(name), end = n > 4 && strcmp(name + n - 4, ".amp") == 0 ? n - 4 : n;
  return arena_printf(l->arena, "%.*s.precision.amp", (int)end, name);
}

/* Returns the path of the file; NULL: the declaration names none; "": after a message. */
static const char *profile_path(Lower *l, const Decl *decl)
{
  const Expr *e = decl->as.object.value;
  if (e->kind == EXPR_name && strcmp(e->as.name, "auto") == 0) return auto_path(l, decl);
  if (strcmp(called_name(e), "profile") != 0) return NULL;
  const ArgList *args = &e->as.call.args;
  if (args->n == 1 && !args->at[0].key.text && args->at[0].value->kind == EXPR_string)
    return args->at[0].value->as.string.text;
  fail(l, E205, e->span, "`profile` takes the path of a file");
  diag_help(l->c, "`precision profile(\"net.precision.amp\")`");
  return "";
}

static const Decl *precision_in(const Ast *ast)
{
  for (uint32_t i = 0; i < ast->n; i++)
    if (ast->at[i]->kind == DECL_precision) return ast->at[i];
  return NULL;
}

const Decl *precision_profile(Lower *l, const Decl *decl)
{
  const char *path = decl ? profile_path(l, decl) : NULL;
  if (!path || !*path) return path ? NULL : decl;
  const Block *clauses = &decl->as.object.clauses;
  if (clauses->n) {
    fail(l, E210, clauses->at[0]->span, "\"%s\" has the clauses of this precision", path);
    diag_help(l->c, "move this clause to the file");
  }
  const Ast *file = source_import(l->c, path, decl->span);
  if (!file) {
    diag_help(l->c, "`amp tune --save` writes such a file");
    return NULL;
  }
  const Decl *found = precision_in(file);
  if (!found)
    fail(l, E210, decl->span, "\"%s\" declares no `precision`", path);
  else if (profile_path(l, found))
    fail(l, E210, found->span, "the `precision` of a profile is no profile itself");
  else
    return found;
  return NULL;
}
