/* textDocument/inlayHint: the types of assigned tensors, at the end of each assignment. */
#include "names.h"

typedef struct Hints {
  Query *q;
  Span wanted; /* the range that the client shows */
  json_t *out;
} Hints;

/* Returns the type of the tensors that a name gets; NULL if it gets none. */
static const char *type_bound(const Query *q, Span name)
{
  DescribedVec values = {0};
  meanings_at(q->a->c, name, &values);
  const char *type = NULL;
  for (uint32_t i = 0; i < values.n && !type; i++)
    if (values.at[i].tensor) type = values.at[i].text;
  return type && values.n > 1 ? arena_printf(q->a->arena, "%s and %u more", type, values.n - 1)
                              : type;
}

/* Adds "q, k, v: bf16[16, 12, 1024, 64]" for the targets of an assignment. */
static void add_hint(void *data, const Stmt *st)
{
  Hints *h = data;
  if (st->kind != STMT_assign || st->span.end < h->wanted.start || st->span.start > h->wanted.end)
    return;
  const ExprList *targets = &st->as.assign.targets;
  Text label = text_new(h->q->a->arena);
  const char *last = NULL;
  for (uint32_t i = 0; i < targets->n; i++) {
    const Expr *t = targets->at[i];
    const char *type = t->kind == EXPR_name ? type_bound(h->q, t->span) : NULL;
    if (!type) continue;
    if (last && strcmp(last, type) != 0) text_printf(&label, ": %s", last);
    text_printf(&label, "%s%s", last ? ", " : "", t->as.name);
    last = type;
  }
  if (!last) return;
  text_printf(&label, ": %s", last);
  json_t *range = text_range(h->q->a->c, (Span){st->span.end, st->span.end}, h->q->a->utf8);
  json_array_append_new(h->out,
                        json_pack("{s:O, s:s, s:i, s:b}", "position", json_object_get(range, "end"),
                                  "label", label.at, "kind", 1, "paddingLeft", 1));
  json_decref(range);
}

json_t *answer_hints(Query *q)
{
  const json_t *range = json_object_get(q->params, "range");
  Hints h = {q,
             {query_offset(q, json_object_get(range, "start")),
              query_offset(q, json_object_get(range, "end"))},
             json_array()};
  for (uint32_t i = 0; i < q->ast->n; i++) {
    const Block *body = names_body(q->ast->at[i]);
    if (body) names_walk(body, add_hint, &h);
  }
  return h.out;
}
