/* Executes calls: evaluates arguments, binds parameters, and runs the function's body. */
#include "interpret.h"
#include "compiler/lower/model/model.h"
#include "compiler/lower/optimizer/optimizer.h"
#include "compiler/lower/own/own.h"

/* Passes each element of `*xs` in `f(*xs)` by position. */
static bool push_starred(Lower *l, Args *out, Datum value, Span span)
{
  DatumVec items = {0};
  if (!iterate(l, value, span, &items) || !count_work(l, items.n, span)) return false;
  for (uint32_t i = 0; i < items.n; i++) args_push(l, out, items.at[i], span);
  return true;
}

/* Returns where a value was given. If a def of the library passes on an argument, that is where its
 * caller wrote it. */
static Span given_span(Scope *s, const Expr *e)
{
  bool name = s->file->builtin && e->kind == EXPR_name;
  const Binding *b = name ? scope_find(s, e->as.name) : NULL;
  return b ? b->span : e->span;
}

/* Evaluates all arguments even after a mistake in one, so that each gets its own message. Returns
 * false if at least one is wrong; then the call must not be made. */
bool eval_args(Lower *l, Scope *s, const ArgList *list, Args *out)
{
  bool good = true;
  for (uint32_t i = 0; i < list->n && count_work(l, 1, list->at[i].value->span); i++) {
    const Arg *arg = &list->at[i];
    Datum v = eval(l, s, arg->value);
    if (d_is(v, D_error))
      good = false;
    else if (arg->star)
      good = push_starred(l, out, v, arg->value->span) && good;
    else
      vec_push(l->arena, &out->at,
               (ArgValue){v, arg->key.text, given_span(s, arg->value), arg->key.span});
  }
  return good && !l->stopped;
}

/* ---- parameters ---- */

/* Returns "dropout(x, p: unit = 0.5)". Types and defaults are as in the source. */
static Text signature(Lower *l, const char *name, const ParamList *params, bool types)
{
  Text t = text_new(l->arena);
  text_printf(&t, "%s(", name);
  for (uint32_t i = 0; i < params->n; i++) {
    const Param *p = &params->at[i];
    bool typed = types && p->type.name;
    Span span = {p->name.span.start, typed ? p->type.span.end : p->name.span.end};
    text_printf(&t, "%s%s", i ? ", " : "", source_text(l, span));
    if (p->value) text_printf(&t, typed ? " = %s" : "=%s", source_text(l, p->value->span));
  }
  text_puts(&t, ")");
  return t;
}

/* Returns the signature for the help of a message; a long one without types. */
static const char *params_text(Lower *l, const char *name, const void *of)
{
  Text t = signature(l, name, of, true);
  return t.n > 160 ? signature(l, name, of, false).at : t.at;
}

static const char *param_name(const void *of, uint32_t i)
{
  return ((const ParamList *)of)->at[i].name.text;
}

static bool has_default(const void *of, uint32_t i)
{
  return ((const ParamList *)of)->at[i].value != NULL;
}

/* Returns the argument, or else the default, evaluated in the scope of the call: `def f(a, b=a *
 * 2)` may use a. */
static Datum param_datum(Lower *l, Scope *s, const Param *p, const ArgValue *arg, Span *span)
{
  *span = arg ? arg->span : p->value->span;
  return arg ? arg->value : eval(l, s, p->value);
}

/* Makes three passes over the parameters. The first binds values, so that a default can use earlier
 * parameters. The second binds the sizes that annotations name: `x: f32[N, C]` binds N and C. The
 * third checks types, since an annotation may use a size that a later parameter binds. */
bool bind_params(Lower *l, Scope *s, const char *callee, const ParamList *params, Args *args)
{
  if (!count_work(l, params->n, args->span)) return false;
  const Callee f = {callee, params, params->n, param_name, has_default, params_text};
  const ArgValue **slot = arena_array(l->arena, const ArgValue *, params->n);
  if (!args_sort(l, &f, args, slot)) return false;
  Span *span = arena_array(l->arena, Span, params->n);
  for (uint32_t i = 0; i < params->n; i++) {
    const Param *p = &params->at[i];
    Datum v = param_datum(l, s, p, slot[i], &span[i]);
    if (d_is(v, D_error)) return false;
    scope_bind(l, s, p->name.text, v, s->file->builtin ? span[i] : p->name.span);
  }
  for (uint32_t i = 0; i < params->n; i++)
    bind_sizes(l, s, &params->at[i].type, scope_find(s, params->at[i].name.text)->value);
  for (uint32_t i = 0; i < params->n; i++) {
    const Param *p = &params->at[i];
    if (!p->type.name) continue;
    Datum v = scope_find(s, p->name.text)->value;
    if (!check_param(l, s, p, &v, span[i], (Typed){p->name.text, callee})) return false;
    scope_find(s, p->name.text)->value = v;
  }
  return true;
}

/* ---- functions ---- */

/* Checks results against annotations: `-> f32[N, 10]`. Several results are a tuple. */
Datum function_result(Lower *l, const Frame *f, const Function *def)
{
  Datum v = f->returned ? f->result : d_of(D_none);
  if (d_is(v, D_error) || !def->n_results) return v;
  Span span = f->returned ? f->result_span : def->name.span;
  const char *what = arena_printf(l->arena, "the result of %s", def->name.text);
  if (def->n_results == 1)
    return check_type(l, f->scope, &def->results[0], &v, span, (Typed){what, NULL}) ? v
                                                                                    : d_of(D_error);
  if (v.kind != D_list || v.n != def->n_results)
    return fail(l, E306, span, "%s has %u values, got %s", what, def->n_results, d_kind_text(l, v));
  for (uint32_t i = 0; i < v.n; i++) {
    Datum item = v.as.list[i];
    if (!check_type(l, f->scope, &def->results[i], &item, span, (Typed){what, NULL}))
      return d_of(D_error);
  }
  return v;
}

/* Reports a body that computes a value and does not return it. */
static bool return_missing(Lower *l, const Callable *f)
{
  const Block *b = &f->def->body;
  const Stmt *last = b->n ? b->at[b->n - 1] : NULL;
  if (f->file->builtin || !last || (last->kind != STMT_expr && last->kind != STMT_assign))
    return false;
  const ExprList *values = &last->as.assign.values;
  Span value = last->kind == STMT_expr
                   ? last->as.value->span
                   : (Span){values->at[0]->span.start, values->at[values->n - 1]->span.end};
  fail(l, E210, last->span, "`%s` ends without a `return`", f->def->name.text);
  diag_help(l->c, "write `return %s`", source_text(l, value));
  return true;
}

/* Runs the body of a function. No precision clause applies to a data block: its numbers keep their
 * stored types until the model uses them. If the job has mistakes and a body does not return, the
 * result is an error, not `none`, since a mistake may be in the statement that returns. */
static Datum run_body(Lower *l, const Callable *f, Scope *s, bool used)
{
  Frame frame = {.kind = f->data ? FRAME_data : FRAME_function, .scope = s};
  uint16_t region = l->at.region;
  if (f->data) l->at.region = 0;
  uint32_t errors = diag_error_count(l->c);
  exec_block(l, &frame, &f->def->body);
  l->at.region = region;
  bool wrong = diag_error_count(l->c) != errors || l->misread;
  if (!frame.returned && !wrong && used) wrong = return_missing(l, f);
  if (!frame.returned && (wrong || diag_error_count(l->c))) return d_of(D_error);
  return function_result(l, &frame, f->def);
}

/* Calls a function. The parent of a method's scope is the scope of its module's members, so the
 * method can use their names. The scope of a def at the top of a file has no parent. */
Datum call_function(Lower *l, const Callable *f, Args *args)
{
  const ParamList *params = &f->def->params;
  bool of_list = f->file->builtin && params->n && params->at[0].type.name &&
                 strcmp(params->at[0].type.name, "list") == 0;
  if (of_list && args_lack_list(l, f->def->name.text, args)) return d_of(D_error);
  if (!call_begin(l, f->def->name.text, f->file, args->span)) return d_of(D_error);
  Entry entry = instance_enter(l, f->self, args->span);
  Scope *s = scope_new(l, f->self ? f->self->body : NULL, f->file, f->self);
  const char *name = f->def->name.text;
  if (f->self) name = arena_printf(l->arena, "%s.%s", f->self->class->name, name);
  Datum r = d_of(D_error);
  policy_enter(l, f, args);
  accumulate_enter(l, f);
  ampc_mode mode = l->mode;
  l->mode = AMPC_MODE_NONE;
  bool used = args->span.start != l->dropped.start || args->span.end != l->dropped.end;
  if (bind_params(l, s, name, params, args)) r = run_body(l, f, s, used);
  mode_leave(l, r, mode);
  instance_leave(l, entry);
  call_end(l);
  return r;
}

static Datum wrong_count(Lower *l, const Native *n, const Args *args)
{
  bool few = args->at.n < n->least;
  uint32_t want = few ? n->least : n->most;
  const char *bound = n->least == n->most ? "" : few ? "at least " : "at most ";
  return fail(l, E205, args->span, "%s takes %s%u argument%s, got %u", n->name, bound, want,
              want == 1 ? "" : "s", args->at.n);
}

static Datum native_key(Lower *l, const Native *n, const ArgValue *arg)
{
  fail(l, E205, arg->key_span, "%s has no argument `%s`", n->name, arg->key);
  foreign_help(l, arena_printf(l->arena, "%s=", arg->key));
  return d_of(D_error);
}

/* Calls a native after checking the number of arguments. Natives with `keys` check keyword
 * arguments themselves. `sqrt(2)` is a number, `sqrt(x)` a node. */
static Datum call_native(Lower *l, const Native *n, Args *args)
{
  uint32_t count = args->at.n;
  bool on_tensor = count && d_is_tensor(args->at.at[0].value);
  OpKind op;
  for (uint32_t i = 0; i < count && !n->keys; i++)
    if (args->at.at[i].key) return native_key(l, n, &args->at.at[i]);
  args->native = n;
  if (count < n->least || (count > n->most && n->most != ANY_NUMBER))
    return wrong_count(l, n, args);
  return on_tensor && op_lookup(n->name, &op) ? call_op(l, op, args) : n->run(l, args);
}

/* Calls any value: an op appends a node, a class builds a module, a module runs its forward. */
Datum call(Lower *l, Datum callee, Args *args)
{
  switch ((DatumKind)callee.kind) {
  case D_error:
    return callee;
  case D_function:
    return call_function(l, callee.as.function, args);
  case D_native:
    return call_native(l, callee.as.native, args);
  case D_op:
    return call_op(l, callee.as.op, args);
  case D_own:
    return call_own(l, callee.as.own, args);
  case D_class:
    return instantiate(l, callee.as.class, args);
  case D_instance:
    return instance_call(l, callee.as.instance, args);
  case D_dtype:
    fail(l, E209, args->span, "%s is a type and cannot be called", d_text(l, callee));
    diag_help(l->c, "`x.to(%s)` casts a tensor", d_text(l, callee));
    return d_of(D_error);
  default:
    return fail(l, E209, args->span, "%s cannot be called", d_kind_text(l, callee));
  }
}
