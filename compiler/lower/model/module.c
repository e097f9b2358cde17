/* Builds, calls and reads modules. Members and paths are in member.c. */
#include "model.h"
#include "compiler/lower/watch.h"

const Class class_sequential = {"Sequential", NULL, NULL};

/* Makes an instance. The scope of the module's parameters is the parent of the scope of its
 * members, so methods can use both. */
static Instance *instance_new(Lower *l, const Class *class, File *file, Span span)
{
  Instance *m = arena_new(l->arena, Instance);
  m->class = class;
  m->params = scope_new(l, NULL, file, NULL);
  m->body = scope_new(l, m->params, file, m);
  m->span = diag_user_span(l->c, span);
  return m;
}

static Datum d_instance(Instance *m)
{
  return (Datum){.kind = D_instance, .as.instance = m};
}

/* ---- Sequential ---- */

/* Adds a child of a Sequential. The most common mistakes are `Sequential(relu)` for
 * `Sequential(ReLU())`, and `Linear` without an argument list. */
static bool add_child(Lower *l, Instance *m, const char *name, Datum child, Span span)
{
  if (child.kind != D_instance) {
    if (!d_is(child, D_error))
      fail(l, E209, span, "Sequential takes modules, got %s", d_kind_text(l, child));
    if (child.kind == D_list)
      diag_help(l->c, "write `Sequential(*%s)`", source_text(l, span));
    else if (child.kind == D_class)
      diag_help(l->c, "build it first: `%s(...)`", child.as.class->name);
    else if (child.kind == D_op || child.kind == D_function)
      diag_help(l->c, "activations have a module form: `ReLU()` for `relu`");
    return false;
  }
  if (scope_find(m->body, name)) return refuse(l, E205, span, "Sequential gets `%s` twice", name);
  bind_member(l, m->body, name, child, span);
  return true;
}

/* True for ["name", module], which names a child. */
static bool is_pair(Datum d)
{
  return d.kind == D_list && d.n == 2 && d.as.list[0].kind == D_str;
}

/* Makes a Sequential. Children are members, named by keyword, pair, or position: "0", "1". */
static Datum make_sequential(Lower *l, Args *args)
{
  Instance *m = instance_new(l, &class_sequential, l->library, args->span);
  bool good = true;
  for (uint32_t i = 0; i < args->at.n && good; i++) {
    const ArgValue *arg = &args->at.at[i];
    const char *name = arg->key;
    Datum child = arg->value;
    if (!name && is_pair(child)) {
      name = child.as.list[0].as.text;
      child = child.as.list[1];
    }
    if (!name) name = arena_printf(l->arena, "%u", i);
    good = add_child(l, m, name, child, arg->span);
  }
  return good ? d_instance(m) : d_of(D_error);
}

/* Calls each child with the result of the child before it. */
static Datum call_sequential(Lower *l, Instance *m, Args *args)
{
  if (args->at.n != 1 || args->at.at[0].key)
    return fail(l, E205, args->span, "a Sequential takes 1 argument, got %u", args->at.n);
  Datum x = args->at.at[0].value;
  Entry entry = instance_enter(l, m, args->span);
  for (uint32_t i = 0; i < m->body->names.n && !d_is(x, D_error); i++) {
    Args one = {.span = args->span};
    args_push(l, &one, x, args->at.at[0].span);
    x = call(l, m->body->names.at[i].value, &one);
  }
  instance_leave(l, entry);
  return x;
}

/* ---- building ---- */

/* Reports `def forward(self, x)`, a habit from Python. After the message, elaboration continues
 * with the method without `self`. */
static const Function *without_self(Lower *l, const Function *def)
{
  if (!def->params.n || strcmp(def->params.at[0].name.text, "self") != 0) return def;
  Text t = text_new(l->arena);
  for (uint32_t i = 1; i < def->params.n; i++)
    text_printf(&t, "%s%s", i > 1 ? ", " : "", def->params.at[i].name.text);
  fail(l, E203, def->params.at[0].name.span, "methods have no `self`");
  if (!foreign_help(l, def->name.text))
    diag_help(l->c, "write `def %s(%s)`; members are used by their name", def->name.text, t.at);
  Function *rest = arena_new(l->arena, Function);
  *rest = *def;
  rest->params.at++;
  rest->params.n--;
  return rest;
}

/* Binds methods before the body runs, which may call them. Members and methods share a scope. */
static void bind_methods(Lower *l, Instance *m)
{
  const Block *body = &m->class->decl->as.module.body;
  for (uint32_t i = 0; i < body->n; i++) {
    if (body->at[i]->kind != STMT_def) continue;
    const Function *def = without_self(l, &body->at[i]->as.def);
    Callable *f = arena_new(l->arena, Callable);
    *f = (Callable){def, m->class->file, m, false};
    if (scope_find(m->body, def->name.text))
      fail(l, E210, def->name.span, "`%s` is defined twice in %s", def->name.text, m->class->name);
    scope_bind(l, m->body, def->name.text, (Datum){.kind = D_function, .as.function = f},
               def->name.span);
  }
}

static void run_body(Lower *l, Instance *m)
{
  Frame frame = {.kind = FRAME_module, .scope = m->body};
  Instance *outer = l->building, *inside = l->inside;
  l->building = m;
  l->inside = NULL;
  exec_block(l, &frame, &m->class->decl->as.module.body);
  l->building = outer;
  l->inside = inside;
}

/* Builds `Linear(4, 2)`: runs the body once. The names that it binds are the members. */
Datum instantiate(Lower *l, const Class *class, Args *args)
{
  if (class == &class_sequential) return make_sequential(l, args);
  if (!call_begin(l, class->name, class->file, args->span)) return d_of(D_error);
  Instance *m = instance_new(l, class, class->file, args->span);
  bool good = bind_params(l, m->params, class->name, &class->decl->as.module.params, args);
  if (good) {
    bind_methods(l, m);
    run_body(l, m);
  }
  call_end(l);
  return good ? d_instance(m) : d_of(D_error);
}

static Datum copied(Lower *l, Datum v)
{
  if (v.kind == D_instance) return instance_copy(l, v.as.instance);
  if (v.kind != D_list || !d_contains(v, D_instance)) return v;
  DatumVec items = {0};
  for (uint32_t i = 0; i < v.n; i++) vec_push(l->arena, &items, copied(l, v.as.list[i]));
  return d_list_of(l, &items);
}

/* Returns another instance with the same arguments. Modules among the arguments (the children of a
 * Sequential) are copied, and the body runs again, so the copy shares nothing. */
Datum instance_copy(Lower *l, const Instance *from)
{
  File *file = from->body->file; /* also of a Sequential, whose class has none */
  if (!call_begin(l, from->class->name, file, from->span)) return d_of(D_error);
  Instance *m = instance_new(l, from->class, file, from->span);
  const Scope *given = from->class->decl ? from->params : from->body;
  for (uint32_t i = 0; i < given->names.n; i++) {
    const Binding *b = &given->names.at[i];
    if (from->class->decl)
      scope_bind(l, m->params, b->name, copied(l, b->value), b->span);
    else
      bind_member(l, m->body, b->name, copied(l, b->value), b->span);
  }
  if (from->class->decl) {
    bind_methods(l, m);
    run_body(l, m);
  }
  copy_parametrized(l, m, from);
  m->pinned = from->pinned;
  m->pin = from->pin;
  m->pin_span = from->pin_span;
  m->evaluating = from->evaluating;
  m->frozen = from->frozen;
  call_end(l);
  return d_instance(m);
}

/* ---- using ---- */

/* Enters a module, unless it calls its own method. A call from outside applies the module's pin and
 * `.eval()`, and messages then name its path: "in net.encoder.0". */
Entry instance_enter(Lower *l, Instance *m, Span call)
{
  Entry e = {l->inside, l->inside_call, l->at.layer, l->at.region, l->training};
  if (!m || m == l->inside) return e;
  if (m->pinned) {
    const char *kind = region_kind_names[m->pin];
    const char *label = arena_printf(l->arena, "pin %s on %s", kind,
                                     m->path && m->path[0] ? m->path : m->class->name);
    l->at.region = region_push(l, m->pin, false, m->pin_span, label);
  }
  if (m->evaluating) l->training = false;
  l->inside = m;
  l->at.layer = m->layer;
  l->inside_call = diag_user_span(l->c, call);
  return e;
}

void instance_leave(Lower *l, Entry e)
{
  l->inside = e.inside;
  l->inside_call = e.inside_call;
  l->at.layer = e.layer;
  l->at.region = e.region;
  l->training = e.training;
}

/* Calls `net(x)` as `net.forward(x)`. */
Datum instance_call(Lower *l, Instance *m, Args *args)
{
  if (m->of) return average_call(l, m, (Datum){.kind = D_instance}, args);
  if (m->adapter && !m->adapting) return adapter_call(l, m, args);
  Binding *b = scope_find(m->body, "forward");
  bool sequential = m->class == &class_sequential;
  if (sequential || (b && b->value.kind == D_function)) {
    bool casts = level_enter(l, m, args);
    Datum v =
        sequential ? call_sequential(l, m, args) : call_function(l, b->value.as.function, args);
    if (casts) v = level_leave(l, v, args->span);
    watch_call(l, m, v);
    return v;
  }
  fail(l, E209, args->span, "%s has no `forward` and cannot be called", m->class->name);
  if (m->class->decl) diag_note(l->c, m->class->decl->name.span, "it is declared here");
  return d_of(D_error);
}

/* Like unknown_name(), for members of a module: E206 if a branch that was not taken would have made
 * the member. */
static Datum unknown_member(Lower *l, Instance *m, const char *name, Span span)
{
  const Missing *missing = scope_missing(m->body, name);
  if (missing) {
    fail(l, E206, span, "`%s` is not defined when %s", name, missing->why);
    diag_note(l->c, missing->span, "it is defined in the other branch");
    return d_of(D_error);
  }
  if (foreign_said(l, arena_printf(l->arena, ".%s", name), span)) return d_of(D_error);
  NameVec names = {0};
  for (Scope *s = m->body; s; s = s->parent)
    for (uint32_t i = 0; i < s->names.n; i++) vec_push(l->arena, &names, s->names.at[i].name);
  fail(l, E201, span, "%s has no member `%s`", m->class->name, name);
  const char *near = diag_nearest(name, names.at, names.n);
  if (near) diag_help(l->c, "did you mean `%s`?", near);
  return d_of(D_error);
}

/* Returns the value of a name. A parametrized weight is computed at each use. */
Datum binding_value(Lower *l, const Binding *b, Span span)
{
  Args none = {.span = span};
  return b->computes ? instance_call(l, b->computes, &none) : b->value;
}

/* Returns a member, a method or a parameter of the module: `net.fc1`, `net.width`; also a member of
 * its adapter, whose path is below the module's. */
Datum instance_attr(Lower *l, Instance *m, const char *name, Span span)
{
  for (Scope *s = m->body; s; s = s->parent) {
    Binding *b = scope_find(s, name);
    if (b) return m->of ? average_member(l, b, span) : binding_value(l, b, span);
  }
  if (m->adapter && scope_find(m->adapter->body, name))
    return instance_attr(l, m->adapter, name, span);
  return unknown_member(l, m, name, span);
}

/* Applies `Linear(4, 4).autocast(f32)`: the module's forward always runs in that precision. */
static Datum pin_instance(Lower *l, Instance *m, const Args *args)
{
  if (args->at.n != 1)
    return fail(l, E205, args->span, "`autocast` takes one type: " AMPC_NARROW_LIST "f32 or off");
  if (!region_kind_of_datum(l, args->at.at[0].value, args->at.at[0].span, &m->pin))
    return d_of(D_error);
  m->pinned = true;
  m->pin_span = diag_user_span(l->c, args->span);
  return d_instance(m);
}

/* Applies `.requires_grad(false)`: optimizers do not update the parameters below. With `true` they
 * do, even if a submodule has `false`. */
static Datum freeze_instance(Lower *l, Instance *m, const Args *args)
{
  bool needed = true;
  if (args->at.n != 1) return fail(l, E205, args->span, "`requires_grad` takes true or false");
  if (!want_bool(l, args->at.at[0].value, args->at.at[0].span, "`requires_grad`", &needed))
    return d_of(D_error);
  m->grad_said = true;
  m->frozen = !needed;
  return d_instance(m);
}

/* Applies `.to(f16)`: the type in which the parameters below are stored. Masters stay f32. */
static Datum store_instance(Lower *l, Instance *m, const Args *args)
{
  if (args->at.n != 1)
    return fail(l, E205, args->span, "`to` of a module takes " AMPC_NARROW_LIST "or f32");
  if (!want_store(l, args->at.at[0].value, args->at.at[0].span, &m->store)) return d_of(D_error);
  m->store_said = true;
  return d_instance(m);
}

/* Calls a method. The module's own methods come first, so a module may define `eval`. The built-in
 * methods return the module, for chains such as `Sequential(...).eval()`. */
Datum instance_method(Lower *l, Instance *m, const Name *name, Args *args)
{
  Binding *own = scope_find(m->body, name->text);
  if (own) return m->of ? average_call(l, m, own->value, args) : call(l, own->value, args);
  if (strcmp(name->text, "forward") == 0) return instance_call(l, m, args);
  if (strcmp(name->text, "autocast") == 0) return pin_instance(l, m, args);
  if (strcmp(name->text, "requires_grad") == 0) return freeze_instance(l, m, args);
  if (strcmp(name->text, "to") == 0) return store_instance(l, m, args);
  if (strcmp(name->text, "eval") == 0 && !args->at.n) {
    m->evaluating = true;
    return d_instance(m);
  }
  if (strcmp(name->text, "ema") == 0 && !args->at.n) return average_module(l, m, args->span);
  return unknown_member(l, m, name->text, name->span);
}
