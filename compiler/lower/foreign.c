/* Reports names of PyTorch and Python. compiler/syntax/foreign.def has the cures. */
#include "elaborate.h"
#include "compiler/syntax/foreign.h"
#include "evaluate.h"

/* Quotes the call or attribute that contains the name at `span`; sets *whole to its span. */
static Quotes quotes_of(Lower *l, Span span, Span *whole)
{
  Quotes q = {{NULL}};
  const Expr *e = l->asked, *callee = e && e->kind == EXPR_call ? e->as.call.callee : e;
  if (!e || callee->span.end != span.end || callee->span.start > span.start) return q;
  *whole = e->span;
  if (callee->kind == EXPR_attr) q.at[Q_base] = source_text(l, callee->as.attr.base->span);
  if (e->kind != EXPR_call) return q;
  const ArgList *args = &e->as.call.args;
  uint32_t start = callee->span.end + 1;
  q.at[Q_args] = e->span.end > start ? source_text(l, (Span){start, e->span.end - 1}) : "";
  if (args->n > 0) q.at[Q_1] = source_text(l, args->at[0].value->span);
  for (uint32_t i = 0; i < args->n && !q.at[Q_value]; i++)
    if (args->at[i].value->kind != EXPR_string)
      q.at[Q_value] = source_text(l, args->at[i].value->span);
  if (args->n > 1) q.at[Q_2] = source_text(l, args->at[1].value->span);
  return q;
}

/* Reports `x.add_(y)`, if x.add exists. */
static bool in_place_said(Lower *l, const char *key, Span span)
{
  size_t n = strlen(key);
  if (n < 3 || *key != '.' || key[n - 1] != '_') return false;
  const char *name = arena_strndup(l->arena, key + 1, n - 2);
  if (d_is(lookup_global(l, l->library, name, span), D_absent)) return false;
  Span whole = span;
  Quotes q = quotes_of(l, span, &whole);
  if (!q.at[Q_base] || !q.at[Q_args]) return false;
  const char *x = q.at[Q_base];
  fail(l, E201, whole, "there is no `%s%s`", x, key);
  diag_help(l->c, "write `%s = %s.%s(%s)`: no operation works in place", x, x, name, q.at[Q_args]);
  l->asked = NULL;
  return true;
}

bool foreign_said(Lower *l, const char *key, Span span)
{
  const Foreign *f = foreign_name(key);
  if (!f) return in_place_said(l, key, span);
  Span whole = span;
  Quotes q = quotes_of(l, span, &whole);
  const char *base = q.at[Q_base] && *key == '.' ? q.at[Q_base] : "";
  fail(l, E201, whole, "there is no `%s%.*s`", base, (int)strcspn(key, " "), key);
  diag_help(l->c, "%s", foreign_cure(l->arena, f, &q));
  l->asked = NULL;
  return true;
}

bool foreign_base_said(Lower *l, const char *base, Span span)
{
  const Expr *e = l->asked, *callee = e && e->kind == EXPR_call ? e->as.call.callee : e;
  if (!callee || callee->kind != EXPR_attr || callee->as.attr.base->span.start != span.start ||
      callee->as.attr.base->span.end != span.end)
    return false;
  const Name *method = &callee->as.attr.name;
  const Foreign *f = foreign_name(arena_printf(l->arena, ".%s", method->text));
  if (!f || strncmp(f->cure, "write `$base`", 13) == 0) return false;
  Span whole = span;
  Quotes q = quotes_of(l, method->span, &whole);
  fail(l, E201, whole, "unknown name `%s`", base);
  diag_help(l->c, "%s", foreign_cure(l->arena, f, &q));
  l->asked = NULL;
  return true;
}

/* Returns the row for `print` of the value. A metric is one number of a step. */
static const char *print_key(Lower *l, Datum v)
{
  const int64_t *dim;
  uint32_t rank;
  if (d_is_number(v) || !d_is_tensor(v)) return "print of a size";
  bool step = !l->depth && l->run && l->g->blocks.at[l->run->block].kind != AMPC_INFER;
  return step && tensor_dims(l, v, &dim, &rank) && !rank ? "print" : "print of a tensor";
}

bool print_said(Lower *l, Scope *s, Span span)
{
  const Expr *call = l->asked;
  if (!call || call->kind != EXPR_call || call->as.call.callee->span.start != span.start)
    return false;
  const ArgList *args = &call->as.call.args;
  Datum *values = arena_array(l->arena, Datum, args->n);
  const char *key = "print of a text";
  for (uint32_t i = 0; i < args->n; i++) {
    values[i] = eval(l, s, args->at[i].value);
    if (d_is(values[i], D_error)) return l->asked = NULL, true;
    if (values[i].kind != D_str) key = print_key(l, values[i]);
  }
  l->asked = call;
  foreign_said(l, key, span);
  for (uint32_t i = 0; i < args->n; i++)
    if (values[i].kind != D_str)
      diag_note(l->c, args->at[i].value->span, "this is %s", d_text(l, values[i]));
  return true;
}

bool foreign_help(Lower *l, const char *key)
{
  const Foreign *f = foreign_name(key);
  return f && (diag_help(l->c, "%s", foreign_cure(l->arena, f, &(Quotes){{NULL}})), true);
}

static bool is_prefix(const char *name)
{
  static const char *const prefixes[] = {
      "nn",         "F",        "torch",       "self", "np", "numpy",   "math", "random",  "optim",
      "transforms", "datasets", "torchvision", "jnp",  "tf", "metrics", "pd",   "autograd"};
  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
    if (strcmp(name, prefixes[i]) == 0) return true;
  return false;
}

/* Reports a name behind a prefix that neither the table nor the library has. */
static void prefix_unknown(Lower *l, const Expr *attr)
{
  const char *name = attr->as.attr.name.text;
  NameVec names = {0};
  fail(l, E201, attr->span, "there is no `%s`", source_text(l, attr->span));
  if (!diag_is_muted(l->c)) visible_functions(l, &names);
  const char *near = diag_nearest(name, names.at, names.n);
  if (near) diag_help(l->c, "did you mean `%s`?", near);
}

/* A job may declare such a name itself; then it is no prefix. */
bool foreign_prefix_said(Lower *l, Scope *s, const Expr *attr)
{
  const Expr *root = attr;
  while (root->kind == EXPR_attr) root = root->as.attr.base;
  const char *name = attr->as.attr.name.text;
  if (root->kind != EXPR_name || !is_prefix(root->as.name)) return false;
  if (!d_is(lookup_quiet(l, s, root->as.name, root->span), D_absent)) return false;
  /* The keys are torch.autograd.grad, autograd.grad, grad. */
  for (const char *key = source_text(l, attr->span), *dot = key; dot; key = dot ? dot + 1 : key) {
    if (foreign_said(l, key, attr->span)) return true;
    dot = strchr(key, '.');
  }
  if (strcmp(root->as.name, "self") == 0) {
    fail(l, E203, attr->span, "there is no `self`");
    diag_help(l->c, "write `%s`: members are used by name",
              source_text(l, (Span){root->span.end + 1, attr->span.end}));
  } else if (d_is(lookup_quiet(l, s, name, attr->span), D_absent)) {
    prefix_unknown(l, attr);
  } else {
    fail(l, E202, attr->span, "`%s`: built-ins have no prefix", source_text(l, attr->span));
    diag_help(l->c, "write `%s`", name);
  }
  return true;
}
