/* Adds declarations to a job in `amp repl`; later ones replace earlier ones. */
#include "compiler/base/compile.h"
#include "ast.h"
#include <string.h>

/* Returns NULL for blocks, imports, settings and calls, which declare no name. */
const Name *ast_decl_name(const Decl *d)
{
  bool other = d->kind == DECL_infer || d->kind == DECL_setting || d->kind == DECL_body;
  return d->name.text && !other ? &d->name : NULL;
}

/* Returns the string literal of a block's `name=`; NULL if it has none. */
static const char *block_name(const Decl *d)
{
  for (uint32_t i = 0; i < d->as.run.with.n; i++) {
    const Arg *a = &d->as.run.with.at[i];
    if (strcmp(a->key.text, "name") == 0 && a->value->kind == EXPR_string)
      return a->value->as.string.text;
  }
  return NULL;
}

static bool same_text(const char *a, const char *b)
{
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if the later declaration d replaces `old`. A name replaces the same name, even of another
 * kind. A job has only one precision. Blocks are identified by their `name=`, imports by their
 * path. */
static bool replaces(const Decl *old, const Decl *d)
{
  const Name *a = ast_decl_name(old), *b = ast_decl_name(d);
  if (a || b) return a && b && strcmp(a->text, b->text) == 0;
  if (old->kind != d->kind) return false;
  switch (d->kind) {
  case DECL_import:
    return strcmp(old->as.path.text, d->as.path.text) == 0;
  case DECL_precision:
    return true;
  case DECL_train:
  case DECL_eval:
    return same_text(block_name(old), block_name(d));
  case DECL_infer:
  case DECL_setting:
    return strcmp(old->name.text, d->name.text) == 0;
  case DECL_expr:
    return *called_name(d->as.value) &&
           strcmp(called_name(old->as.value), called_name(d->as.value)) == 0;
  default:
    return false;
  }
}

static bool contains(const Ast *ast, const Decl *d)
{
  bool found = false;
  for (uint32_t i = 0; i < ast->n; i++) found = found || ast->at[i] == d;
  return found;
}

/* Returns the first part of the keys of a declaration's settings: its name; of a block, "train2".
 */
static const char *owner_of(Compile *c, const Ast *ast, uint32_t at)
{
  const Name *name = ast_decl_name(ast->at[at]);
  DeclKind kind = ast->at[at]->kind;
  uint32_t number = 0;
  if (name) return name->text;
  for (uint32_t i = 0; i <= at; i++) number += ast->at[i]->kind == kind;
  const char *word = kind == DECL_train ? "train" : kind == DECL_eval ? "eval" : "";
  return number > 1 ? arena_printf(c->arena, "%s%u", word, number) : word;
}

/* A new declaration of `opt` drops earlier lines such as `opt.lr = 0.01`. A dropped line keeps its
 * index: its key becomes empty. */
static void drop_settings(Compile *c, Ast *into, uint32_t n, const char *owner, const Ast *more)
{
  size_t size = strlen(owner);
  for (uint32_t i = 0; i < n; i++) {
    const Decl *d = into->at[i];
    bool of_owner = d->kind == DECL_setting && strncmp(d->name.text, owner, size) == 0 &&
                    d->name.text[size] == '.';
    if (!of_owner || contains(more, d)) continue;
    Decl *none = arena_new(c->arena, Decl);
    *none = (Decl){DECL_setting, d->span, {"", d->span}, .as = d->as};
    into->at[i] = none;
  }
}

/* A replacing declaration takes the position of the old one, because blocks run in this order. */
void ast_merge(Compile *c, Ast *into, const Ast *more)
{
  uint32_t before = into->n; /* a duplicate within one text is an error of that text */
  for (uint32_t i = 0; i < more->n; i++) {
    bool placed = false;
    for (uint32_t k = 0; k < before && !placed; k++) {
      placed = replaces(into->at[k], more->at[i]);
      if (!placed) continue;
      into->at[k] = more->at[i];
      drop_settings(c, into, before, owner_of(c, into, k), more);
    }
    if (!placed) vec_push(c->arena, into, more->at[i]);
  }
}
