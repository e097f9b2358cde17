/* textDocument/definition: where a name is bound or declared; for the text of an import, the file.
 */
#include "context.h"
#include "names.h"

/* Returns the declaration of the import around the offset. */
static const Decl *import_at(const Query *q)
{
  for (uint32_t i = 0; i < q->ast->n; i++) {
    const Decl *d = q->ast->at[i];
    if (d->kind == DECL_import && q->offset >= d->span.start && q->offset <= d->span.end) return d;
  }
  return NULL;
}

/* Returns the start of the imported file. */
static json_t *imported_file(const Query *q, const Decl *d)
{
  Compile *c = q->a->c;
  const Ast *ast = source_import(c, d->as.path.text, d->span);
  for (uint32_t i = 0; i < c->imports.n; i++) {
    if (c->imports.at[i]->ast != ast) continue;
    return json_pack("{s:s, s:o}", "uri", analysis_uri(q->a, c->imports.at[i]->path), "range",
                     text_range(c, (Span){0, 0}, q->a->utf8));
  }
  return json_null();
}

/* Returns the parameter that an argument of a call sets: `width` of `Net(width=5)`. */
static json_t *parameter(const Query *q, const Context *at)
{
  const VisibleName *n = at->callee ? names_called(q, names_meant(q, at->callee)) : NULL;
  const ParamList *params = n ? names_params(n) : NULL;
  for (uint32_t i = 0; params && i < params->n; i++)
    if (same_name(params->at[i].name.text, at->name->as.name))
      return analysis_location(q->a, q->a->c, params->at[i].name.span);
  return json_null();
}

json_t *answer_definition(Query *q)
{
  const Decl *import = import_at(q);
  const Context at = context_at(q);
  if (import) return imported_file(q, import);
  if (!at.name) return json_null();
  if (at.argument) return parameter(q, &at);
  const VisibleName *n = names_meant(q, at.name);
  return n ? analysis_location(q->a, q->a->c, n->span) : json_null();
}
