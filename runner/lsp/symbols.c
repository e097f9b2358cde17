/* textDocument/documentSymbol: the declarations of a file, and the members of its modules. */
#include "names.h"
#include "compiler/syntax/ast_forms.h"

/* Kinds of symbols in the protocol. */
enum {
  SYMBOL_file = 1,
  SYMBOL_class = 5,
  SYMBOL_method = 6,
  SYMBOL_property = 7,
  SYMBOL_field = 8,
  SYMBOL_function = 12,
  SYMBOL_variable = 13,
  SYMBOL_constant = 14,
  SYMBOL_event = 24
};

static const int kinds[] = {
    [DECL_import] = SYMBOL_file,        [DECL_const] = SYMBOL_constant,
    [DECL_dim] = SYMBOL_constant,       [DECL_def] = SYMBOL_function,
    [DECL_module] = SYMBOL_class,       [DECL_op] = SYMBOL_function,
    [DECL_data] = SYMBOL_function,      [DECL_model] = SYMBOL_variable,
    [DECL_optimizer] = SYMBOL_variable, [DECL_precision] = SYMBOL_event,
    [DECL_train] = SYMBOL_event,        [DECL_eval] = SYMBOL_event,
    [DECL_infer] = SYMBOL_event,        [DECL_setting] = SYMBOL_property,
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
    const char *word = decl_forms[d->kind].word;
    if (d->kind >= sizeof kinds / sizeof kinds[0]) continue; /* a call */
    json_t *s =
        symbol(q, name ? name->text : word, kinds[d->kind], d->span, name ? name->span : d->span);
    if (d->kind == DECL_module)
      json_object_set_new(s, "children", members_of(q, &d->as.module.body));
    json_object_set_new(s, "detail", json_string(word));
    json_array_append_new(out, s);
  }
  return out;
}
