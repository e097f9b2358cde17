/* Lowers `adapt(LoRA, "**.q_proj", rank=16)` of a model: adapters of layers.
 *
 * An adapter is a module that takes the layer as its first argument; its `forward` calls the layer.
 * Calls of the layer go to the adapter instead. The adapter's members have paths below the layer,
 * next to those of the layer, so paths of the layer stay as they are, as in PEFT. The clause
 * freezes the parameters of the model that belong to no adapter. */
#include "model.h"

typedef VEC(Instance *) InstanceVec;

static void find_layer(Lower *l, Instance *m, void *data)
{
  vec_push(l->arena, (InstanceVec *)data, m);
}

/* True if the module is inside of an adapter of an earlier clause. */
static bool is_inside(const Instance *m)
{
  for (; m; m = m->owner)
    if (m->adapts) return true;
  return false;
}

static void freeze_param(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  (void)path, (void)alias, (void)data;
  if (p->index >= 0 && !l->g->params.at[p->index].adapts) l->g->params.at[p->index].frozen = true;
}

/* Checks that no member of the adapter gets the path of a member of the layer. */
static bool names_differ(Lower *l, const Instance *m, const Instance *adapter, Span span)
{
  for (uint32_t i = 0; i < adapter->body->names.n; i++) {
    const Binding *b = &adapter->body->names.at[i];
    const Binding *own = scope_find(m->body, b->name);
    bool member = d_contains(b->value, D_instance) || d_contains(b->value, D_param);
    if (!member || !own || own->value.kind == D_function) continue;
    fail(l, E205, span, "`%s` is a member of %s and of %s, which adapts it", b->name,
         m->class->name, adapter->class->name);
    diag_note(l->c, b->span, "it is made here");
    return diag_help(l->c, "give the adapter's member another name: both have one path in files");
  }
  return true;
}

/* Builds the adapter of a layer: CLASS(layer, settings..). */
static bool adapt_layer(Lower *l, const Model *model, Instance *m, const Class *class,
                        const Args *clause)
{
  if (m->adapter) {
    fail(l, E504, clause->span, "`%s` has an adapter already", m->path);
    return diag_help(l->c, "let the patterns of `adapt` clauses match different layers");
  }
  Args args = {.span = clause->span};
  args_push(l, &args, (Datum){.kind = D_instance, .as.instance = m}, clause->span);
  for (uint32_t i = 2; i < clause->at.n; i++) vec_push(l->arena, &args.at, clause->at.at[i]);
  Datum made = instantiate(l, class, &args);
  if (made.kind != D_instance) return false;
  Instance *adapter = made.as.instance;
  if (!names_differ(l, m, adapter, clause->span)) return false;
  adapter->adapts = true;
  adapter->owner = m->owner;
  adapter->name = m->name;
  adapter->path = m->path;
  adapter->model = m->model;
  adapter->layer = m->layer;
  m->adapter = adapter;
  register_members(l, adapter, m->path, model->name);
  return true;
}

/* True if the arguments are a module, patterns, and settings of the module. */
static bool arguments_fit(Lower *l, const Args *args)
{
  const ArgValue *at = args->at.at;
  uint32_t n = args->at.n;
  bool fits = n >= 2 && at[0].value.kind == D_class && !at[0].key && !at[1].key;
  for (uint32_t i = 0; i < n; i++)
    if (d_is(at[i].value, D_error)) return false;
  for (uint32_t i = 2; i < n && fits; i++) fits = at[i].key != NULL;
  if (fits) return true;
  fail(l, E205, args->span, "`adapt` takes a module, patterns, and settings of the module by name");
  return diag_help(l->c, "`adapt(LoRA, [\"**.q_proj\", \"**.v_proj\"], rank=16)`");
}

void clause_adapt(Lower *l, const Model *model, const Args *args)
{
  InstanceVec found = {0};
  if (!arguments_fit(l, args)) return;
  const Class *class = args->at.at[0].value.as.class;
  Match m = match_of(l, model);
  m.modules = true;
  m.module = find_layer;
  m.data = &found;
  match_patterns(l, &m, &args->at.at[1], 1);
  for (uint32_t i = 0; i < found.n; i++) {
    bool again = is_inside(found.at[i]);
    for (uint32_t k = 0; k < i; k++) again = again || found.at[k] == found.at[i];
    if (!again && !adapt_layer(l, model, found.at[i], class, args)) return;
  }
  walk_members(l, model->root, "", &(MemberVisitor){NULL, freeze_param, NULL});
}

/* The adapter has the pin and the mode of its layer. */
Datum adapter_call(Lower *l, Instance *m, Args *args)
{
  Instance *adapter = m->adapter;
  adapter->pinned = m->pinned;
  adapter->pin = m->pin;
  adapter->pin_span = m->pin_span;
  adapter->evaluating = m->evaluating;
  m->adapting = true;
  Datum v = instance_call(l, adapter, args);
  m->adapting = false;
  return v;
}
