/* Handles members of module instances: the owner and the name of each module and parameter, and
 * ties. Paths are as in PyTorch's state_dict. */
#include "model.h"
#include <ctype.h>

/* Returns "encoder.0.fc1.weight": the names from the root module down, as in PyTorch's state_dict.
 * Checkpoints and patterns use them. */
static const char *path_of(Lower *l, const Instance *owner, const char *name)
{
  for (; owner && owner->name; owner = owner->owner)
    name = arena_printf(l->arena, "%s.%s", owner->name, name);
  return name;
}

/* Returns the name of an element of a list of modules, its index, as in ModuleList: "layers.3". */
static const char *element_name(Lower *l, const char *name, uint32_t i)
{
  return arena_printf(l->arena, "%s.%u", name, i);
}

/* ---- owning ---- */

/* Makes a module a member. That happens only once: its parameters have one path in a checkpoint. */
static bool claim_module(Lower *l, Instance *owner, const char *name, Instance *m, Span span)
{
  if (m->owner) {
    fail(l, E504, span, "this module is already a member, as `%s`", path_of(l, m->owner, m->name));
    diag_note(l->c, m->span, "it is built here");
    return diag_help(l->c, "build another one; `a.weight = b.weight` shares the weight");
  }
  m->owner = owner;
  m->name = name;
  return true;
}

/* Makes `owner` the owner of the modules and parameters in `v`. If a parameter already has an
 * owner, it is tied, and *alias becomes true. */
static bool claim(Lower *l, Instance *owner, const char *name, Datum v, Span span, bool *alias)
{
  if (v.kind == D_instance) return claim_module(l, owner, name, v.as.instance, span);
  if (v.kind == D_param) {
    *alias = v.as.param->owner != NULL;
    if (*alias) return true;
    v.as.param->owner = owner;
    v.as.param->name = name;
    return true;
  }
  if (v.kind != D_list) return true;
  for (uint32_t i = 0; i < v.n; i++) {
    bool tied = false;
    if (!claim(l, owner, element_name(l, name, i), v.as.list[i], span, &tied)) return false;
    if (tied)
      return refuse(l, E504, span, "this parameter is already a member, as `%s`",
                    path_of(l, v.as.list[i].as.param->owner, v.as.list[i].as.param->name));
  }
  return true;
}

/* Releases the value that a name held before it was rebound, so that it can become a member
 * elsewhere. After `fc = Linear(4, 4)` and `fc = Linear(8, 8)` the first layer has no owner, and
 * its parameters are not part of the model. */
static void release(Instance *owner, Datum v)
{
  if (v.kind == D_instance && v.as.instance->owner == owner) v.as.instance->owner = NULL;
  if (v.kind == D_param && v.as.param->owner == owner) v.as.param->owner = NULL;
  for (uint32_t i = 0; v.kind == D_list && i < v.n; i++) release(owner, v.as.list[i]);
}

/* Binds a name in a module's body. The module owns modules and parameters in the value. */
void bind_member(Lower *l, Scope *s, const char *name, Datum value, Span span)
{
  Binding *old = scope_find(s, name);
  bool alias = false;
  if (old && !old->alias) release(s->self, old->value);
  if (!claim(l, s->self, name, value, span, &alias)) value = d_of(D_error);
  scope_bind(l, s, name, value, span);
  scope_find(s, name)->alias = alias;
}

/* True if paths can contain the name. In a path a dot separates names, and `*` is a pattern. */
static bool is_member_name(const char *name)
{
  for (const char *s = name; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '_' && *s != '-') return false;
  return *name != 0;
}

static Datum add_member(Lower *l, const char *name, const ArgValue *value)
{
  Instance *m = l->building;
  Span span = diag_user_span(l->c, value->span);
  if (!m) {
    fail(l, E210, span, "`member(\"%s\", ..)` stands outside of a module's body", name);
    diag_help(l->c, "a method reads a member: `member(\"%s\")`", name);
    return d_of(D_error);
  }
  const Binding *old = scope_find(m->body, name);
  if (old && old->value.kind == D_function && value->value.kind != D_function)
    return fail(l, E210, span, "`%s` is already a method of %s", name, m->class->name);
  if (old) return fail(l, E205, span, "%s has a member `%s` already", m->class->name, name);
  bind_member(l, m->body, name, value->value, span);
  return d_of(D_none);
}

/* member(name, value) adds a member with a computed name to the module that is being built.
 * member(name) returns that member of the module whose body or method is running. */
Datum native_member(Lower *l, Args *args)
{
  const ArgValue *at = args->at.at;
  const char *name;
  if (!want_str(l, at[0].value, at[0].span, "the name of a member", &name)) return d_of(D_error);
  if (!is_member_name(name))
    return fail(l, E209, at[0].span, "a member's name has letters, digits, `_` and `-`, got \"%s\"",
                name);
  if (args->at.n == 2) return add_member(l, name, &at[1]);
  Instance *m = l->inside ? l->inside : l->building;
  if (!m) return fail(l, E210, args->span, "`member(\"%s\")` stands outside of a module", name);
  return instance_attr(l, m, name, args->span);
}

/* ---- parametrized weights ---- */

/* Replaces a parameter by a module that computes it at each use. The module, of `class`, gets the
 * parameter and the other arguments. As in PyTorch it is the member `parametrizations.NAME`. */
static bool parametrize(Lower *l, Instance *m, const char *name, const Class *class, Args *rest,
                        Span span)
{
  Binding *b = scope_find(m->body, name);
  if (!b || b->value.kind != D_param || b->alias || b->value.as.param->buffer)
    return refuse(l, E209, span, "%s has no parameter `%s` of its own", m->class->name, name);
  Args args = {.span = span};
  args_push(l, &args, b->value, span);
  for (uint32_t i = 0; i < rest->at.n; i++) vec_push(l->arena, &args.at, rest->at.at[i]);
  release(m, b->value);
  b->value = d_of(D_none);
  Datum made = instantiate(l, class, &args);
  if (d_is(made, D_error)) return false;
  b->computes = made.as.instance;
  Args none = {.span = span};
  if (!scope_find(m->body, "parametrizations"))
    bind_member(l, m->body, "parametrizations", instantiate(l, &class_sequential, &none), span);
  Instance *all = scope_find(m->body, "parametrizations")->value.as.instance;
  bind_member(l, all->body, name, made, span);
  return true;
}

/* Runs _parametrize(layer, name, class, ..) and returns the layer. */
Datum native_parametrize(Lower *l, Args *args)
{
  Args rest = {0};
  const char *name;
  const ArgValue *at = args->at.at;
  Span span = diag_user_span(l->c, args->span);
  if (at[0].value.kind != D_instance)
    return fail(l, E209, span, "a layer is needed, got %s", d_kind_text(l, at[0].value));
  if (!want_str(l, at[1].value, at[1].span, "`name`", &name)) return d_of(D_error);
  for (uint32_t i = 3; i < args->at.n; i++) vec_push(l->arena, &rest.at, at[i]);
  bool good = parametrize(l, at[0].value.as.instance, name, at[2].value.as.class, &rest, span);
  return good ? at[0].value : d_of(D_error);
}

/* Parametrizes a copy of a layer as the layer. Arguments after the first are those of the call. */
void copy_parametrized(Lower *l, Instance *to, const Instance *from)
{
  for (uint32_t i = 0; i < from->body->names.n; i++) {
    const Binding b = from->body->names.at[i];
    Args rest = {0};
    if (!b.computes) continue;
    const Scope *given = b.computes->params;
    for (uint32_t k = 1; k < given->names.n; k++)
      args_push(l, &rest, given->names.at[k].value, from->span);
    parametrize(l, to, b.name, b.computes->class, &rest, from->span);
  }
}

/* ---- ties: a.weight = b.weight ---- */

static bool same_shape(const ParamSlot *a, const ParamSlot *b)
{
  return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

/* Checks that both sides are parameters with one shape. */
static bool tie_fits(Lower *l, const Expr *target, Datum old, Datum value, Span span)
{
  const char *text = source_text(l, target->span);
  if (old.kind != D_param)
    return refuse(l, E210, span, "`%s` is not a parameter, so it cannot be tied", text);
  if (value.kind != D_param)
    return refuse(l, E209, span, "`%s` needs a parameter, got %s", text, d_kind_text(l, value));
  if (same_shape(old.as.param, value.as.param)) return true;
  fail(l, E311, span, "`%s` is %s, but the parameter that it is tied to is %s", text,
       d_text(l, old), d_text(l, value));
  return diag_note(l->c, value.as.param->span, "this one");
}

/* Ties parameters by `fc2.weight = fc1.weight` in a module's body: the name on the left now holds
 * the parameter on the right, and its old parameter is dropped. A checkpoint contains the parameter
 * once, under its first path. */
void tie(Lower *l, Scope *s, const Expr *target, Datum value, Span span)
{
  const Name *name = &target->as.attr.name;
  Datum base = eval(l, s, target->as.attr.base);
  if (d_is(base, D_error) || d_is(value, D_error)) return;
  if (base.kind != D_instance) {
    fail(l, E210, span, "only the parameters of a module can be assigned, this is %s",
         d_kind_text(l, base));
    return;
  }
  Instance *m = base.as.instance;
  Datum old = instance_attr(l, m, name->text, name->span);
  if (d_is(old, D_error) || !tie_fits(l, target, old, value, span)) return;
  if (old.as.param == value.as.param) return;
  Binding *b = scope_find(m->body, name->text);
  if (!b->alias) release(m, old);
  b->value = value;
  claim(l, m, name->text, value, span, &b->alias);
}

/* ---- walking ---- */

/* Visits a member, or each member in a list, with its path. */
static void walk_item(Lower *l, Datum v, const char *path, bool alias, const MemberVisitor *w)
{
  if (v.kind == D_param && w->param) w->param(l, v.as.param, path, alias, w->data);
  if (v.kind == D_instance) {
    if (w->module) w->module(l, v.as.instance, path, w->data);
    walk_members(l, v.as.instance, path, w);
  }
  for (uint32_t i = 0; v.kind == D_list && i < v.n; i++)
    walk_item(l, v.as.list[i], element_name(l, path, i), alias, w);
}

/* The members of an adapter have paths below the module that it adapts, after the module's own. */
void walk_members(Lower *l, Instance *m, const char *path, const MemberVisitor *w)
{
  for (uint32_t i = 0; i < m->body->names.n; i++) {
    const Binding b = m->body->names.at[i];
    if (!d_contains(b.value, D_instance) && !d_contains(b.value, D_param)) continue;
    walk_item(l, b.value, path[0] ? arena_printf(l->arena, "%s.%s", path, b.name) : b.name, b.alias,
              w);
  }
  if (m->adapter) walk_members(l, m->adapter, path, w);
}
