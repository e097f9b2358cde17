/* textDocument/definition: where a name is bound or declared; for the text of an import, the file.
 */
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
    return json_pack("{s:s, s:{s:{s:i, s:i}, s:{s:i, s:i}}}", "uri",
                     analysis_uri(q->a, c->imports.at[i]->path), "range", "start", "line", 0,
                     "character", 0, "end", "line", 0, "character", 0);
  }
  return json_null();
}

json_t *answer_definition(Query *q)
{
  Span span;
  const Decl *import = import_at(q);
  if (import) return imported_file(q, import);
  const char *name = query_name(q, &span);
  if (!name) return json_null();
  const VisibleName *n = names_meant(q, name, span);
  return n ? analysis_location(q->a, q->a->c, n->span) : json_null();
}
