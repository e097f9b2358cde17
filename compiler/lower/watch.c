/* options.watch, from `amp repl`: a value of a train or eval block that becomes an output too, so
 * that a prompt can look at it. The text is a name, the path of a layer, or an expression over the
 * block's names. */
#include "lower.h"
#include "watch.h"
#include <ctype.h>

/* A name or a path of names: "logits", "fc1", "net.blocks.0.conv". */
static bool is_path(const char *s)
{
  if (!isalpha((unsigned char)*s) && *s != '_') return false;
  while (isalnum((unsigned char)*s) || *s == '_' || *s == '.') s++;
  return *s == 0;
}

/* The block that runs gives its value: not the smaller last batch of another. */
static bool is_watching(const Lower *l)
{
  return l->c->options.watch && l->run && l->run->first == l->run->block;
}

/* An expression is worked out where the block ends, with the weights that the step began with: so
 * nothing may update them before. */
bool watch_stops_updates(const Lower *l)
{
  return is_watching(l) && !is_path(l->c->options.watch);
}

void watch_value(Lower *l, const char *name, Datum v)
{
  if (is_watching(l) && strcmp(l->c->options.watch, name) == 0) l->watched = v;
}

/* "fc1" or "net.fc1": the last call in the block counts. */
void watch_call(Lower *l, const Instance *m, Datum v)
{
  if (!is_watching(l) || !m->path) return;
  watch_value(l, m->path, v);
  watch_value(l, m->layer, v);
}

/* Does the text name something that the block itself has bound? Members behind a dot do not count,
 * nor does what stands in quotes. */
static bool mentions_local(Lower *l, Scope *s)
{
  const char *text = l->c->options.watch;
  bool quoted = false;
  for (const char *p = text; *p;) {
    size_t n = 0;
    quoted = quoted != (*p == '"' && !(p > text && p[-1] == '\\'));
    while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
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

/* The latest value of the name in the functions that the block calls. */
static Datum named_node(Lower *l)
{
  for (uint32_t i = l->g->nodes.n; --i;) {
    const Node *n = &l->g->nodes.at[i];
    if (n->block == l->run->block && n->name && strcmp(n->name, l->c->options.watch) == 0)
      return d_tensor((Value){i});
  }
  return d_of(D_absent);
}

/* The block's own names first, then those of what it calls, its metrics and layers. */
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
  if (!is_watching(l)) return;
  Datum v = find(l, s);
  Span span = {0, 0};
  if (d_is(v, D_absent) || d_is(v, D_error)) return;
  if (v.kind == D_tensor) {
    l->at.region = ir_node(l->g, v.as.tensor)->region;
    span = ir_node(l->g, v.as.tensor)->span;
  }
  add_answer(l, v, span);
}
