/* Handles members of module instances: the owner and the name of each module and parameter, and
 * ties. Paths are as in PyTorch's state_dict. */
#include "model.h"

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

/* _member(name, value) adds a member with a computed name to the module that is being built.
 * _member(name) returns that member of the module whose method is running. */
Datum native_member(Lower *l, Args *args)
{
  const Args *a = args;
  const char *name;
  if (!want_str(l, a->at.at[0].value, a->at.at[0].span, "_member", &name)) return d_of(D_error);
  if (a->at.n == 1) return instance_attr(l, l->inside, name, a->span);
  bind_member(l, l->building->body, name, a->at.at[1].value, diag_user_span(l->c, a->span));
  return d_of(D_none);
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

void walk_members(Lower *l, Instance *m, const char *path, const MemberVisitor *w)
{
  for (uint32_t i = 0; i < m->body->names.n; i++) {
    const Binding b = m->body->names.at[i];
    if (!d_contains(b.value, D_instance) && !d_contains(b.value, D_param)) continue;
    walk_item(l, b.value, path[0] ? arena_printf(l->arena, "%s.%s", path, b.name) : b.name, b.alias,
              w);
  }
}
