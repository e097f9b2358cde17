/* Describes the built-in names and their signatures, from the layer library and the op table. */
#include "describe.h"
#include "compiler/lower/model/model.h"
#include "interpret.h"
#include "compiler/lower/meaning.h"
#include "compiler/syntax/source.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- signatures ---- */

/* Copies from `(` to the matching `)`. Each run of white space becomes one space. */
static void add_arguments(Text *out, const char *from)
{
  int depth = 0;
  for (const char *p = from; *p; p++) {
    if (isspace((unsigned char)*p)) {
      if (out->at[out->n - 1] != ' ') text_puts(out, " ");
      continue;
    }
    text_add(out, p, 1);
    if (*p == '(' || *p == '[') depth++;
    if ((*p == ')' || *p == ']') && --depth == 0) return;
  }
}

/* Returns "Linear(in_features: int, out_features: int, bias: bool = true)" from the library. */
static const char *library_signature(Lower *l, Global *g)
{
  const Name *name = ast_decl_name(global_decl(l, g));
  Place place = diag_place(l->c, name->span);
  const char *p = place.source->text + (name->span.end - place.source->base);
  Text out = text_new(l->arena);
  text_puts(&out, g->name);
  if (*p == '(')
    add_arguments(&out, p);
  else
    text_puts(&out, "()");
  return out.at;
}

static void add_default(Lower *l, Text *out, const AttrInfo *a)
{
  if (a->required) return;
  if (a->kind == ATTR_float)
    text_printf(out, "=%s", ir_number_text(l->c, a->value.f));
  else if (a->kind == ATTR_bool)
    text_printf(out, "=%s", a->value.i ? "true" : "false");
  else if (a->kind == ATTR_axes && !a->value.i)
    text_puts(out, "=none");
  else
    text_printf(out, "=%lld", (long long)a->value.i);
}

/* Returns "sum(x, dim=none, keepdim=false)" */
static const char *op_signature(Lower *l, const OpInfo *op)
{
  const OpSignature *s = &op->signature;
  Text out = text_new(l->arena);
  text_printf(&out, "%s(", op->name);
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    const InputInfo *in = &s->input[i];
    text_printf(&out, in->variadic ? "%s[%s, ..]%s" : "%s%s%s", i ? ", " : "", in->name,
                in->optional && !in->variadic ? "=none" : "");
  }
  for (uint32_t i = 0; i < s->n_attrs; i++) {
    text_printf(&out, "%s%s", i || s->n_inputs ? ", " : "", s->attr[i].name);
    add_default(l, &out, &s->attr[i]);
  }
  text_puts(&out, ")");
  return out.at;
}

/* ---- facts ---- */

static const char *op_facts(Lower *l, const OpInfo *op)
{
  static const char *const classes[] = {
      [PREC_low] = "runs in 16 bits (category low)",
      [PREC_f32] = "runs in f32 (category f32)",
      [PREC_promote] = "runs in the widest type of its inputs (category promote)",
      [PREC_none] = "keeps the type of its inputs (category none)"};
  const char *gradient = op->gradient ? "differentiable" : "no gradient";
  if (op_says_type(op)) return gradient;
  return arena_printf(l->arena, "autocast: %s; %s", classes[op->precision], gradient);
}

/* ---- the list ---- */

/* Describes a built-in name. A def of the library hides an op of the same name. */
static Builtin describe(Lower *l, Arena *arena, const char *name)
{
  OpKind op;
  Builtin b = {.name = arena_strdup(arena, name)};
  Global *g = file_find(l->library, name);
  if (g) {
    b.signature = arena_strdup(arena, library_signature(l, g));
  } else if (op_lookup(name, &op)) {
    b.signature = arena_strdup(arena, op_signature(l, op_row(op)));
    b.facts = arena_strdup(arena, op_facts(l, op_row(op)));
  }
  return b;
}

static bool is_listed(const Builtins *list, const char *name)
{
  for (uint32_t i = 0; i < list->n; i++)
    if (strcmp(list->at[i].name, name) == 0) return true;
  return false;
}

/* Lists the built-ins except names that begin with `_`: only the library can use these. */
void list_builtins(Arena *arena, Builtins *out)
{
  Options options = {.error_limit = 1};
  Compile *c = compile_create(&options);
  Lower state = {.c = c, .g = ir_create(c), .arena = c->arena}, *l = &state;
  NameVec names = {0};
  open_library(l);
  visible_functions(l, &names);
  vec_push(c->arena, &names, class_sequential.name);
  for (uint32_t i = 0; i < names.n; i++)
    if (names.at[i][0] != '_' && !is_listed(out, names.at[i]))
      vec_push(arena, out, describe(l, arena, names.at[i]));
  compile_destroy(c);
}

/* ---- what names mean ---- */

/* Describes a tensor of pass lower by the node that pass precision made of it. If the compile ended
 * before, the node has a shape, but a float has no final type. */
static void describe_tensor(Lower *l, Value v, Described *out)
{
  Graph *g = l->g;
  bool typed = g->facts & IR_TYPED;
  const Nodes *before = g->moved ? &g->spare : &g->nodes;
  if (v.id >= before->n || (typed && !g->moved[v.id].id)) return;
  const Node *n = typed ? ir_node(g, g->moved[v.id]) : &before->at[v.id];
  out->layer = n->layer;
  if (typed || !dtype_is_float(n->dtype)) {
    out->text = ir_type_text(l->c, n);
    out->why = typed ? ir_why_text(l->c, n) : "";
  } else {
    out->text = arena_printf(l->arena, "float%s", ir_dims_text(l->c, n));
  }
}

/* Lists the first items: "3 values: bf16[16, 768], ..". */
static const char *list_text(Lower *l, Datum list)
{
  enum { SHOWN = 4 };
  Text out = text_new(l->arena);
  text_printf(&out, "%u values", list.n);
  for (uint32_t i = 0; i < list.n && i < SHOWN; i++) {
    const Datum *item = &list.as.list[i];
    Described d = {.text = NULL};
    if (item->kind == D_tensor) describe_tensor(l, item->as.tensor, &d);
    const char *text = item->kind == D_list     ? "a list"
                       : item->kind == D_tensor ? d.text
                                                : d_kind_text(l, *item);
    text_printf(&out, "%s%s", i ? ", " : ": ", text ? text : "a tensor");
  }
  if (list.n > SHOWN) text_puts(&out, ", ..");
  return out.at;
}

static Described describe_value(Lower *l, Datum d)
{
  Described out = {.why = "", .tensor = d.kind == D_tensor, .count = 1};
  if (d.kind == D_tensor)
    describe_tensor(l, d.as.tensor, &out);
  else if (d.kind == D_list && (d_contains(d, D_tensor) || d_contains(d, D_instance)))
    out.text = list_text(l, d);
  else
    out.text = d_kind_text(l, d);
  return out;
}

static void add_described(Lower *l, Described d, DescribedVec *out)
{
  for (uint32_t i = 0; i < out->n; i++)
    if (out->at[i].result == d.result && strcmp(out->at[i].text, d.text) == 0) {
      out->at[i].count++;
      return;
    }
  vec_push(l->arena, out, d);
}

static int by_span(const void *a, const void *b)
{
  const Meaning *x = a, *y = b;
  if (x->span.start != y->span.start) return x->span.start < y->span.start ? -1 : 1;
  if (x->span.end != y->span.end) return x->span.end < y->span.end ? -1 : 1;
  return x->order < y->order ? -1 : 1;
}

/* Returns the index of the first record from `span` on. */
static uint32_t first_meaning(const struct Meanings *m, Span span)
{
  const Meaning key = {.span = span};
  uint32_t low = 0, high = m->at.n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (by_span(&m->at.at[middle], &key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void meanings_at(Compile *c, Span span, DescribedVec *out)
{
  Lower state = {.c = c, .g = c->graph, .arena = c->arena}, *l = &state;
  struct Meanings *m = c->meanings;
  if (!m) return;
  if (!m->sorted && m->at.n) qsort(m->at.at, m->at.n, sizeof *m->at.at, by_span);
  m->sorted = true;
  for (uint32_t i = first_meaning(m, span); i < m->at.n; i++) {
    const Meaning *at = &m->at.at[i];
    if (at->span.start != span.start || at->span.end != span.end) return;
    Described d = describe_value(l, at->value);
    d.result = at->result;
    if (d.text) add_described(l, d, out);
  }
}
