/* Evaluates expressions. */
#include "interpret.h"
#include "compiler/lower/meaning.h"
#include "compiler/lower/model/model.h"

/* Lists the elements of a list or a Sequential, for `for`, `*xs` and unpacking. A tensor has no
 * elements at compile time, so the help says how to loop over its first axis. */
bool iterate(Lower *l, Datum d, Span span, DatumVec *out)
{
  if (d.kind == D_list) {
    if (!count_work(l, d.n / ELEMENTS_PER_WORK, span)) return false;
    for (uint32_t i = 0; i < d.n; i++) vec_push(l->arena, out, d.as.list[i]);
    return true;
  }
  if (d.kind == D_instance && d.as.instance->class == &class_sequential) {
    const Scope *s = d.as.instance->body;
    for (uint32_t i = 0; i < s->names.n; i++) vec_push(l->arena, out, s->names.at[i].value);
    return true;
  }
  if (d_is(d, D_error)) return false;
  fail(l, E209, span, "a list is needed here, got %s", d_kind_text(l, d));
  if (d.kind == D_int) diag_help(l->c, "`range(%s)`", d_text(l, d));
  if (d_is_tensor(d)) diag_help(l->c, "`for i in range(x.size(0)) { ... x[i] ... }`");
  return false;
}

/* Returns `f32` as a value, as in `.to(f32)`. `int` and `float` are types and conversion functions;
 * as values they are functions. */
static Datum type_value(Lower *l, const char *name, Span span)
{
  DType d = ampc_dtype_by(name);
  if (d != AMPC_DTYPE_COUNT) return d_dtype(d);
  const Native *n = native_find(name, false);
  if (n) return (Datum){.kind = D_native, .as.native = n};
  return fail(l, E209, span, "`%s` is no value", name);
}

/* Evaluates `[a, *b, c]` and `(a, b)`. A tuple is a list with a mark, which messages use. */
static Datum eval_items(Lower *l, Scope *s, const Expr *e)
{
  DatumVec items = {0};
  bool good = true;
  for (uint32_t i = 0; i < e->as.args.n; i++) {
    const Arg *arg = &e->as.args.at[i];
    Datum v = eval(l, s, arg->value);
    if (d_is(v, D_error))
      good = false;
    else if (arg->star)
      good = iterate(l, v, arg->value->span, &items) && good;
    else
      vec_push(l->arena, &items, v);
  }
  if (!good || !count_work(l, items.n / ELEMENTS_PER_WORK, e->span)) return d_of(D_error);
  Datum list = d_list_of(l, &items);
  list.tuple = e->kind == EXPR_tuple;
  return list;
}

/* Unpacks `a, b = f(x)`: one value for each name. A single name takes the whole value. */
bool unpack(Lower *l, Datum v, uint32_t n, Span span, Datum *out)
{
  if (n == 1) {
    out[0] = v;
    return true;
  }
  DatumVec items = {0};
  if (!iterate(l, v, span, &items)) return false;
  if (items.n != n) return refuse(l, E209, span, "%u names for %u values", n, items.n);
  memcpy(out, items.at, n * sizeof *out);
  return true;
}

/* Binds the names of a `for` to one element. */
bool bind_loop_names(Lower *l, Scope *s, const NameList *names, Datum item, Span span)
{
  Datum *values = arena_array(l->arena, Datum, names->n);
  if (!unpack(l, item, names->n, span, values)) return false;
  for (uint32_t i = 0; i < names->n; i++)
    scope_bind(l, s, names->at[i].text, values[i], names->at[i].span);
  return true;
}

/* Reports a loop over a range of a dim. Each size is elaborated on its own, but unrolled code would
 * grow with the size, and might be far too large for the largest size. */
bool may_unroll(Lower *l, Datum list, Span span)
{
  if (!list.sized) return true;
  fail(l, E308, span, "`%s` has a run-time size and cannot be unrolled", source_text(l, span));
  return diag_help(l->c, "`scan t in %s carry h { ... }`", source_text(l, span));
}

/* Evaluates `[Linear(n, n) for i in range(3) if i > 0]`. Each iteration has its own scope, so the
 * loop names are not visible outside. */
static Datum eval_comp(Lower *l, Scope *s, const Expr *e)
{
  Datum source = eval(l, s, e->as.comp.iter);
  DatumVec items = {0}, out = {0};
  if (!may_unroll(l, source, e->as.comp.iter->span) ||
      !iterate(l, source, e->as.comp.iter->span, &items))
    return d_of(D_error);
  bool good = true;
  for (uint32_t i = 0; i < items.n && good; i++) {
    Scope *inner = scope_new(l, s, s->file, s->self);
    good = count_work(l, 1, e->span) &&
           bind_loop_names(l, inner, &e->as.comp.names, items.at[i], e->as.comp.iter->span);
    if (good && e->as.comp.cond) {
      int keep = d_truth(l, eval(l, inner, e->as.comp.cond), e->as.comp.cond->span, "`if`");
      good = keep >= 0;
      if (keep <= 0) continue;
    }
    Datum v = good ? eval(l, inner, e->as.comp.value) : d_of(D_error);
    good = !d_is(v, D_error);
    vec_push(l->arena, &out, v);
  }
  return good ? d_list_of(l, &out) : d_of(D_error);
}

/* ---- a.b ---- */

/* Reports an unknown attribute and suggests a function: every function is a method of tensors. */
static Datum no_attr(Lower *l, Datum base, const Name *name)
{
  if (foreign_said(l, arena_printf(l->arena, ".%s", name->text), name->span)) return d_of(D_error);
  bool module = base.kind == D_function || base.kind == D_op || base.kind == D_native;
  if (module && foreign_said(l, name->text, name->span)) return d_of(D_error); /* copy.deepcopy */
  fail(l, E201, name->span, "%s has no `%s`", d_kind_text(l, base), name->text);
  if (d_is_tensor(base) && !diag_is_muted(l->c)) {
    NameVec names = {0};
    visible_functions(l, &names);
    const char *near = diag_nearest(name->text, names.at, names.n);
    if (near) diag_help(l->c, "did you mean `%s`?", near);
  }
  if (base.kind == D_none) diag_help(l->c, "a `def` without `return` returns none");
  return d_of(D_error);
}

/* Returns an attribute: `x.shape`, `fc.weight`. If it is the name of a function, the call probably
 * lacks its parentheses. */
static Datum attr_of(Lower *l, Scope *s, Datum base, const Expr *e)
{
  const Name *name = &e->as.attr.name;
  const int64_t *dim;
  uint32_t rank;
  if (d_is(base, D_error)) return base;
  if (base.kind == D_instance) return instance_attr(l, base.as.instance, name->text, name->span);
  if (!d_is_tensor(base)) return no_attr(l, base, name);
  if (strcmp(name->text, "shape") == 0) {
    tensor_dims(l, base, &dim, &rank);
    return d_sizes(l, dim, rank);
  }
  if (strcmp(name->text, "dtype") == 0) return type_of_tensor(l, base, e->span);
  Datum f = lookup_global(l, s->file, name->text, name->span);
  if (!d_is(f, D_absent) && !d_is(f, D_error)) {
    const char *key = arena_printf(l->arena, ".%s", name->text);
    if (foreign_said(l, key, name->span)) return d_of(D_error); /* x.grad */
    fail(l, E209, e->span, "`%s` is a function", name->text);
    diag_help(l->c, "call it: `%s()`", source_text(l, e->span));
    return d_of(D_error);
  }
  return d_is(f, D_error) ? f : no_attr(l, base, name);
}

static Datum eval_attr(Lower *l, Scope *s, const Expr *e)
{
  l->asked = e;
  if (foreign_prefix_said(l, s, e)) return d_of(D_error);
  Datum base = eval(l, s, e->as.attr.base);
  l->asked = e;
  return attr_of(l, s, base, e);
}

/* ---- calls ---- */

/* Calls x.f(a) as f(x, a). Only built-ins and defs of files can be methods, never locals or
 * members: otherwise a local variable `mean` would break `x.mean()`. */
static Datum call_method(Lower *l, Scope *s, const Expr *e, Datum base)
{
  const Name *name = &e->as.call.callee->as.attr.name;
  Args args = {.span = e->span};
  l->asked = e;
  if (d_is(base, D_error)) return base;
  if (base.kind == D_instance) {
    if (!eval_args(l, s, &e->as.call.args, &args)) return d_of(D_error);
    l->asked = e;
    return instance_method(l, base.as.instance, name, &args);
  }
  if (!d_is_tensor(base)) return no_attr(l, base, name);
  Datum f = lookup_global(l, s->file, name->text, name->span);
  if (d_is(f, D_absent)) return no_attr(l, base, name);
  args_push(l, &args, base, e->as.call.callee->as.attr.base->span);
  if (!eval_args(l, s, &e->as.call.args, &args)) return d_of(D_error);
  return call(l, f, &args);
}

static Datum eval_call(Lower *l, Scope *s, const Expr *e)
{
  const Expr *callee = e->as.call.callee;
  l->asked = e;
  if (callee->kind == EXPR_attr) {
    if (foreign_prefix_said(l, s, callee)) return d_of(D_error);
    return call_method(l, s, e, eval(l, s, callee->as.attr.base));
  }
  Datum f = eval(l, s, callee);
  if (d_is(f, D_error) && !l->asked) return f;
  Args args = {.span = e->span};
  bool good = eval_args(l, s, &e->as.call.args, &args);
  return good ? call(l, f, &args) : d_of(D_error);
}

/* ---- operators ---- */

/* Evaluates `and`, `or`. As in Python, the result is one of the operands, and the right one is
 * evaluated only if the left one does not decide: `bias and zeros_(b)`. */
static Datum eval_logic(Lower *l, Scope *s, const Expr *e)
{
  bool is_and = e->as.binary.op == OPER_and;
  Datum a = eval(l, s, e->as.binary.left);
  int truth = d_truth(l, a, e->as.binary.left->span, is_and ? "`and`" : "`or`");
  if (truth < 0) return d_of(D_error);
  if (truth != is_and) return a;
  Datum b = eval(l, s, e->as.binary.right);
  return d_truth(l, b, e->as.binary.right->span, is_and ? "`and`" : "`or`") < 0 ? d_of(D_error) : b;
}

/* Applies an operator: on a tensor as a node; on numbers now. */
Datum apply_binary(Lower *l, Operator op, Datum a, Datum b, Span span)
{
  if (d_is(a, D_error) || d_is(b, D_error)) return d_of(D_error);
  if (d_is_tensor(a) || d_is_tensor(b)) return tensor_binary(l, op, a, b, span);
  return number_binary(l, op, a, b, span);
}

static Datum eval_binary(Lower *l, Scope *s, const Expr *e)
{
  Operator op = e->as.binary.op;
  if (op == OPER_and || op == OPER_or) return eval_logic(l, s, e);
  Datum a = eval(l, s, e->as.binary.left);
  Datum b = eval(l, s, e->as.binary.right);
  return apply_binary(l, op, a, b, e->span);
}

static Datum eval_unary(Lower *l, Scope *s, const Expr *e)
{
  Datum a = eval(l, s, e->as.unary.operand);
  if (d_is(a, D_error)) return a;
  if (e->as.unary.op == OPER_not) {
    int truth = d_truth(l, a, e->as.unary.operand->span, "`not`");
    return truth < 0 ? d_of(D_error) : d_bool(!truth);
  }
  if (d_is_tensor(a)) return tensor_unary(l, e->as.unary.op, a, e->span);
  return number_unary(l, e->as.unary.op, a, e->span);
}

/* Evaluates `a if test else b`: only the selected operand; the other may be invalid here. */
static Datum eval_cond(Lower *l, Scope *s, const Expr *e)
{
  Datum test = eval(l, s, e->as.cond.test);
  int truth = d_truth(l, test, e->as.cond.test->span, "`... if ...`");
  if (truth < 0) return d_of(D_error);
  return eval(l, s, truth ? e->as.cond.then : e->as.cond.other);
}

static Datum eval_literal(const Expr *e)
{
  switch (e->kind) {
  case EXPR_int:
    return d_int(e->as.integer);
  case EXPR_float:
    return d_float(e->as.number);
  case EXPR_string:
    return d_str(e->as.string.text);
  case EXPR_none:
    return d_of(D_none);
  default:
    return d_bool(e->kind == EXPR_true);
  }
}

static Datum eval_any(Lower *l, Scope *s, const Expr *e)
{
  static Datum (*const run[])(Lower *, Scope *, const Expr *) = {
      [EXPR_list] = eval_items,  [EXPR_tuple] = eval_items,   [EXPR_comp] = eval_comp,
      [EXPR_call] = eval_call,   [EXPR_index] = eval_index,   [EXPR_attr] = eval_attr,
      [EXPR_unary] = eval_unary, [EXPR_binary] = eval_binary, [EXPR_cond] = eval_cond,
  };
  if (e->kind == EXPR_name) return lookup(l, s, e->as.name, e->span);
  if (e->kind == EXPR_type) return type_value(l, e->as.name, e->span);
  return run[e->kind] ? run[e->kind](l, s, e) : eval_literal(e);
}

/* Checks the limits on lists, on which recursion relies. They count shared sublists once for each
 * occurrence. */
static bool list_fits(Lower *l, Datum d, Span span)
{
  if (d.depth > MAX_NESTING)
    fail(l, E209, span, "lists are nested more than %d deep", MAX_NESTING);
  else if (d.total > MAX_LIST)
    fail(l, E209, span, "a list has at most %d values, including those of nested lists", MAX_LIST);
  return d.depth <= MAX_NESTING && d.total <= MAX_LIST;
}

/* Evaluates any expression. A D_error is returned and not reported again. */
Datum eval(Lower *l, Scope *s, const Expr *e)
{
  bool counts = ++l->expressions % ELEMENTS_PER_WORK == 0;
  if (l->stopped || (counts && !count_work(l, 1, e->span)) || !go_deeper(l, e->span))
    return d_of(D_error);
  Datum d = eval_any(l, s, e);
  meaning_add_expression(l, s->file, e, d);
  l->stack--;
  return d.kind == D_list && !list_fits(l, d, e->span) ? d_of(D_error) : d;
}
