/* Lowers `adapt(LoRA, "**.q_proj", rank=16)` of a model: adapters of layers.
 *
 * An adapter is a module that takes the layer as its first argument; its `forward` calls the layer.
 * Calls of the layer go to the adapter instead. The adapter's members have paths below the layer,
 * next to those of the layer, so paths of the layer stay as they are, as in PEFT. The clause
 * freezes the parameters of the model that belong to no adapter, unless `unfreeze` names them. */
#include "model.h"
#include "common/pattern.h"
#include "compiler/base/json.h"
#include <math.h>

typedef VEC(Instance *) InstanceVec;

static void find_layer(Lower *l, Instance *m, void *data)
{
  vec_push(l->arena, (InstanceVec *)data, m);
}

bool is_within_adapter(const Instance *m)
{
  for (; m; m = m->owner)
    if (m->adapts) return true;
  return false;
}

static void freeze_param(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  (void)path, (void)alias, (void)data;
  if (p->index < 0) return;
  Parameter *q = &l->g->params.at[p->index];
  q->frozen = q->frozen || (!q->adapts && !q->trains);
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

/* Lets calls of the layer go to its adapter, which gets the layer's place in the model. */
static void attach(Instance *m, Instance *adapter)
{
  adapter->adapts = true;
  adapter->owner = m->owner;
  adapter->name = m->name;
  adapter->path = m->path;
  adapter->model = m->model;
  adapter->layer = m->layer;
  m->adapter = adapter;
}

/* Refuses what cannot be an adapter of the layer. */
static bool class_fits(Lower *l, const Instance *m, const Class *class, Span span)
{
  bool lora = class->file && class->file->builtin && strcmp(class->name, "LoRA") == 0;
  bool linear = m->class->file && m->class->file->builtin && strcmp(m->class->name, "Linear") == 0;
  if (class->decl && !class->decl->as.module.params.n) {
    fail(l, E205, span, "%s takes no argument, but an adapter takes its layer", class->name);
    return diag_help(l->c, "`module %s(layer) { .. }`; `forward` calls `layer(x)`", class->name),
           false;
  }
  if (!lora || linear) return true;
  fail(l, E209, span, "LoRA adapts a Linear, but `%s` is a %s", m->path, m->class->name);
  return diag_help(l->c, "patterns name the Linear layers in it, or `Linear` for all of them"),
         false;
}

/* Builds the adapter of a layer: CLASS(layer, settings..). */
static bool adapt_layer(Lower *l, const Model *model, Instance *m, const Class *class,
                        const Args *clause)
{
  if (m->adapter) {
    fail(l, E504, clause->span, "`%s` has an adapter already", m->path);
    return diag_help(l->c, "let the patterns of `adapt` clauses match different layers");
  }
  if (!class_fits(l, m, class, clause->at.at[0].span)) return false;
  Args args = {.span = clause->span};
  args_push(l, &args, (Datum){.kind = D_instance, .as.instance = m}, clause->span);
  for (uint32_t i = 2; i < clause->at.n; i++) vec_push(l->arena, &args.at, clause->at.at[i]);
  Datum made = instantiate(l, class, &args);
  if (made.kind != D_instance) return false;
  Instance *adapter = made.as.instance;
  if (!names_differ(l, m, adapter, clause->span)) return false;
  attach(m, adapter);
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

bool adapt_is_built(Lower *l, const Expr *clause)
{
  const ArgList *args = &clause->as.call.args;
  const Expr *built = args->n ? args->at[0].value : NULL;
  const char *name = built ? called_name(built) : "";
  if (!*name) return false;
  fail(l, E205, built->span, "`adapt` builds an adapter for each layer itself");
  return diag_help(l->c, "settings follow the patterns: `adapt(%s, \"fc\", rank=4)`", name), true;
}

void clause_adapt(Lower *l, Model *model, const Args *args)
{
  InstanceVec found = {0};
  if (!arguments_fit(l, args)) return;
  const Class *class = args->at.at[0].value.as.class;
  Match m = match_of(l, model);
  m.modules = true;
  m.module = find_layer;
  m.data = &found;
  match_patterns(l, &m, &args->at.at[1], 1);
  bool any = false, inside = false;
  for (uint32_t i = 0; i < found.n; i++) {
    bool within = is_within_adapter(found.at[i]), again = within;
    any = any || !within;
    inside = inside || within;
    for (uint32_t k = 0; k < i; k++) again = again || found.at[k] == found.at[i];
    if (!again && !adapt_layer(l, model, found.at[i], class, args)) return;
    model->adapts = true;
  }
  if (inside && !any) {
    fail(l, E504, args->at.at[1].span, "the pattern matches only modules of adapters");
    diag_help(l->c, "an adapter has no adapter: let its own module do more");
  }
  walk_members(l, model->root, "", &(MemberVisitor){NULL, freeze_param, NULL});
}

/* Lists the modules below a layer that belong to no adapter. */
static void list_layers(Lower *l, Instance *m, const char *path, void *data)
{
  (void)path;
  if (!is_within_adapter(m)) vec_push(l->arena, (InstanceVec *)data, m);
}

void copy_adapters(Lower *l, Instance *to, Instance *from, Span span)
{
  InstanceVec a = {0}, b = {0};
  vec_push(l->arena, &a, from);
  vec_push(l->arena, &b, to);
  walk_members(l, from, "", &(MemberVisitor){list_layers, NULL, &a});
  walk_members(l, to, "", &(MemberVisitor){list_layers, NULL, &b});
  for (uint32_t i = 0; i < a.n && a.n == b.n; i++) {
    const Instance *adapter = a.at[i]->adapter;
    Args args = {.span = span};
    if (!adapter) continue;
    args_push(l, &args, (Datum){.kind = D_instance, .as.instance = b.at[i]}, span);
    for (uint32_t k = 1; k < adapter->params->names.n; k++)
      args_push(l, &args, adapter->params->names.at[k].value, span);
    Datum made = instantiate(l, adapter->class, &args);
    if (made.kind == D_instance) attach(b.at[i], made.as.instance);
  }
}

/* The adapter has the pin and the mode of its layer. A copy gets its path only when its model is
 * declared. */
Datum adapter_call(Lower *l, Instance *m, Args *args)
{
  Instance *adapter = m->adapter;
  adapter->pinned = m->pinned;
  adapter->pin = m->pin;
  adapter->pin_span = m->pin_span;
  adapter->evaluating = m->evaluating;
  attach(m, adapter);
  m->adapting = true;
  Datum v = instance_call(l, adapter, args);
  m->adapting = false;
  return v;
}

/* ---- after all clauses ---- */

/* True if a clause that names the parameter in `missing` leaves it at its initial value. */
static bool is_missing(const ampc_load *load, const char *path)
{
  uint32_t first = 2 * load->n_rename + load->n_transpose;
  for (uint32_t i = 0; i < load->n_missing; i++)
    if (pattern_matches(load->patterns[first + i], path, false)) return true;
  return false;
}

/* A frozen parameter that `load` gives is read at the beginning of each run. */
static void settle_given(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  const Model *model = data;
  if (alias || p->index < 0) return;
  Parameter *q = &l->g->params.at[p->index];
  if (!q->frozen || q->adapts || p->buffer) return;
  for (uint32_t i = 0; i < l->g->loads.n; i++) {
    const ampc_load *load = &l->g->loads.at[i];
    if (load->adapter || strcmp(load->model, model->name) != 0 || is_missing(load, path)) continue;
    q->given = true;
  }
}

/* A number among the settings of an adapter. */
static double setting(const Instance *adapter, const char *name)
{
  const Binding *b = scope_find(adapter->params, name);
  return b->value.kind == D_bool ? b->value.as.truth : d_number(b->value);
}

/* PEFT's description of the adapters of a model: adapter_config.json. */
typedef struct Config {
  const Instance *first; /* the first adapter, whose settings are the general ones */
  bool other;            /* an adapter is no LoRA of the layer library */
  Text layers, ranks, alphas, trained;
} Config;

static void add_entry(Text *t, const char *path, const char *value)
{
  text_puts(t, t->n ? ", " : "");
  text_add_json(t, path);
  text_puts(t, value);
}

/* Describes the adapter of a layer. PEFT has one `use_rslora` for all, so the scaling of a layer
 * that differs from the first one is expressed by its alpha. */
static void describe_adapter(Lower *l, Instance *m, const char *path, void *data)
{
  Config *x = data;
  const Instance *a = m->adapter;
  if (!a) return;
  if (!a->class->file->builtin || strcmp(a->class->name, "LoRA") != 0) {
    x->other = true;
    return;
  }
  if (!x->first) x->first = a;
  double rank = setting(a, "rank"), alpha = setting(a, "alpha");
  double all_rank = setting(x->first, "rank"), all_alpha = setting(x->first, "alpha");
  bool root = setting(x->first, "rslora") != 0;
  if (setting(a, "rslora") != setting(x->first, "rslora"))
    alpha *= root ? 1 / sqrt(rank) : sqrt(rank);
  add_entry(&x->layers, path, "");
  if (rank != all_rank) add_entry(&x->ranks, path, arena_printf(l->arena, ": %.0f", rank));
  if (alpha != all_alpha) add_entry(&x->alphas, path, arena_printf(l->arena, ": %.9g", alpha));
}

/* Lists the modules whose own parameters train beside the adapters. */
static void describe_trained(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  Config *x = data;
  const char *dot = strrchr(path, '.');
  if (alias || p->index < 0 || p->buffer || !dot) return;
  const Parameter *q = &l->g->params.at[p->index];
  const char *module = arena_strndup(l->arena, path, (size_t)(dot - path));
  if (q->frozen || q->adapts || strstr(x->trained.at, arena_printf(l->arena, "\"%s\"", module)))
    return;
  add_entry(&x->trained, module, "");
}

void adapters_settle(Lower *l, const Model *model)
{
  Config x = {.layers = text_new(l->arena),
              .ranks = text_new(l->arena),
              .alphas = text_new(l->arena),
              .trained = text_new(l->arena)};
  walk_members(l, model->root, "", &(MemberVisitor){NULL, settle_given, (void *)(uintptr_t)model});
  walk_members(l, model->root, "", &(MemberVisitor){describe_adapter, describe_trained, &x});
  if (!x.first || x.other) return;
  l->g->adapter = arena_printf(
      l->arena,
      "{\"peft_type\": \"LORA\", \"task_type\": null, \"base_model_name_or_path\": null, "
      "\"inference_mode\": true, \"r\": %.0f, \"lora_alpha\": %.9g, \"lora_dropout\": %.9g, "
      "\"use_rslora\": %s, \"bias\": \"none\", \"fan_in_fan_out\": false, "
      "\"target_modules\": [%s], \"rank_pattern\": {%s}, \"alpha_pattern\": {%s}, "
      "\"modules_to_save\": %s%s%s}\n",
      setting(x.first, "rank"), setting(x.first, "alpha"), setting(x.first, "dropout"),
      setting(x.first, "rslora") != 0 ? "true" : "false", x.layers.at, x.ranks.at, x.alphas.at,
      x.trained.n ? "[" : "null", x.trained.at, x.trained.n ? "]" : "");
}
