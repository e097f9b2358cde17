/* textDocument/documentSymbol: the declarations of a file, and the members of its modules. */
#include "names.h"

/* Kinds of symbols in the protocol. */
enum {
  SYMBOL_file = 1,
  SYMBOL_class = 5,
  SYMBOL_method = 6,
  SYMBOL_field = 8,
  SYMBOL_function = 12,
  SYMBOL_variable = 13,
  SYMBOL_constant = 14,
  SYMBOL_event = 24
};

static const struct {
  const char *word;
  int kind;
} declared[] = {
    [DECL_import] = {"import", SYMBOL_file},
    [DECL_const] = {"const", SYMBOL_constant},
    [DECL_dim] = {"dim", SYMBOL_constant},
    [DECL_def] = {"def", SYMBOL_function},
    [DECL_module] = {"module", SYMBOL_class},
    [DECL_op] = {"op", SYMBOL_function},
    [DECL_data] = {"data", SYMBOL_function},
    [DECL_model] = {"model", SYMBOL_variable},
    [DECL_optimizer] = {"optimizer", SYMBOL_variable},
    [DECL_precision] = {"precision", SYMBOL_event},
    [DECL_train] = {"train", SYMBOL_event},
    [DECL_eval] = {"eval", SYMBOL_event},
    [DECL_infer] = {"infer", SYMBOL_event},
};

static json_t *symbol(const Query *q, const char *name, int kind, Span whole, Span part)
{
  return json_pack("{s:s, s:i, s:o, s:o}", "name", name, "kind", kind, "range",
                   text_range(q->a->c, whole, q->a->utf8), "selectionRange",
                   text_range(q->a->c, part, q->a->utf8));
}

/* Lists the layers and methods of a module. */
static json_t *members_of(const Query *q, const Block *body)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < body->n; i++) {
    const Stmt *st = body->at[i];
    const Expr *t = st->kind == STMT_assign ? st->as.assign.targets.at[0] : NULL;
    if (st->kind == STMT_def)
      json_array_append_new(
          out, symbol(q, st->as.def.name.text, SYMBOL_method, st->span, st->as.def.name.span));
    else if (t && t->kind == EXPR_name)
      json_array_append_new(out, symbol(q, t->as.name, SYMBOL_field, st->span, t->span));
  }
  return out;
}

json_t *answer_symbols(Query *q)
{
  json_t *out = json_array();
  for (uint32_t i = 0; i < q->ast->n; i++) {
    const Decl *d = q->ast->at[i];
    const Name *name = ast_decl_name(d);
    if (d->kind >= sizeof declared / sizeof declared[0]) continue; /* a call */
    json_t *s = symbol(q, name ? name->text : declared[d->kind].word, declared[d->kind].kind,
                       d->span, name ? name->span : d->span);
    if (d->kind == DECL_module)
      json_object_set_new(s, "children", members_of(q, &d->as.module.body));
    json_object_set_new(s, "detail", json_string(declared[d->kind].word));
    json_array_append_new(out, s);
  }
  return out;
}
