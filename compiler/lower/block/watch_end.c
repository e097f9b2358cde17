/* Finds the value that options.watch names, at the end of its block. */
#include "block.h"
#include "compiler/lower/watch.h"

/* True if the text names a variable of the block, except after a dot or inside quotes. */
static bool mentions_local(Lower *l, Scope *s)
{
  const char *text = l->c->options.watch;
  bool quoted = false;
  for (const char *p = text; *p;) {
    size_t n = name_size(p);
    quoted = quoted != (*p == '"' && !(p > text && p[-1] == '\\'));
    bool member = p > text && p[-1] == '.';
    if (n && !member && !quoted && scope_find(s, arena_strndup(l->arena, p, n))) return true;
    p += n ? n : 1;
  }
  return false;
}

static Datum eval_text(Lower *l, Scope *s)
{
  const char *text = l->c->options.watch;
  uint32_t base = diag_add_source(l->c, "<expression>", text, (uint32_t)strlen(text), false);
  Ast ast = {0};
  if (!ast_parse_input(l->c, base, &ast)) return d_of(D_error);
  const Block *body = ast.n ? &ast.at[0]->as.function.body : NULL;
  bool one = ast.n == 1 && ast.at[0]->kind == DECL_body && body->n == 1;
  if (!one || body->at[0]->kind != STMT_return)
    return fail(l, E210, (Span){base, base + (uint32_t)strlen(text)}, "an expression is needed");
  return eval(l, s, body->at[0]->as.exprs.at[0]);
}

/* Returns the latest node with this name, even in functions that the block calls. */
static Datum named_node(Lower *l)
{
  for (uint32_t i = l->g->nodes.n; --i;) {
    const Node *n = &l->g->nodes.at[i];
    if (n->block == l->run->block && n->name && strcmp(n->name, l->c->options.watch) == 0)
      return d_tensor((Value){i});
  }
  return d_of(D_absent);
}

/* Searches names of the block, then of functions that it calls, then metrics and layers. */
static Datum find(Lower *l, Scope *s)
{
  const Binding *b = scope_find(s, l->c->options.watch);
  if (b) return b->value;
  Datum v = named_node(l);
  if (!d_is(v, D_absent)) return v;
  if (!d_is(l->watched, D_absent)) return l->watched;
  return mentions_local(l, s) ? eval_text(l, s) : v;
}

void watch_end(Lower *l, Scope *s)
{
  if (!watch_is_on(l)) return;
  Datum v = find(l, s);
  Span span = {0, 0};
  if (d_is(v, D_absent) || d_is(v, D_error)) return;
  if (v.kind == D_tensor) {
    l->at.region = ir_node(l->g, v.as.tensor)->region;
    span = ir_node(l->g, v.as.tensor)->span;
  }
  add_answer(l, v, span);
}
