/* Describes the built-in names and their signatures, from the layer library and the op table. */
#include "describe.h"
#include "compiler/lower/model/model.h"
#include "interpret.h"
#include "compiler/syntax/source.h"
#include <ctype.h>
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
