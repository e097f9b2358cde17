/* Lowers `model` declarations. First the parameters of the instance enter the graph's table with
 * their paths. Then the clauses are applied in order, so the last match wins. Initialisers are
 * resolved after all clauses: an initialiser that a clause replaces need not fit the shape. */
#include "model.h"

/* ---- registering ---- */

/* True if the parameter is frozen. As in PyTorch, `requires_grad()` of a module applies to
 * everything inside it. An outer module is built after its members, so its setting overrides
 * theirs. */
static bool is_frozen(const ParamSlot *p)
{
  bool frozen = false;
  for (const Instance *m = p->owner; m; m = m->owner)
    if (m->grad_said) frozen = m->frozen;
  return frozen;
}

/* Sets the stored type. `.to(f16)` of an outer module overrides `.to()` of its members. It
 * overrides a 16-bit type of the Parameter itself, which overrides `params` of `precision`. */
static void settle_store(Lower *l, ParamSlot *p)
{
  if (!p->buffer && p->store == AMPC_F32) p->store = level_store(l, p);
  for (const Instance *m = p->owner; m && !p->buffer; m = m->owner)
    if (m->store_said) p->store = m->store;
  if (!p->buffer) store_fits(l, p->store, p->span);
}

static void register_layer(Lower *l, const Instance *m)
{
  vec_push(l->arena, &l->g->layers, (Layer){m->layer, m->model, m->class->name});
}

/* Records that the module is part of a model and has a path. */
static void register_module(Lower *l, Instance *m, const char *path, void *data)
{
  m->path = path;
  m->model = data;
  m->layer = arena_printf(l->arena, "%s.%s", m->model, path);
  register_layer(l, m);
}

/* Adds the parameter to the graph's table, in the order of definition. That is also the order in
 * memory and in a checkpoint. A tied parameter is already there under its first path. */
static void register_param(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  if (alias || p->index >= 0) return;
  settle_store(l, p);
  if (p->copy_of) p->store = p->copy_of->store;
  if (p->copy_of && p->copy_of->index >= 0 && l->g->params.at[p->copy_of->index].fixed)
    p->dtype = p->store;
  Parameter parameter = {.path = path,
                         .model = data,
                         .buffer = p->buffer,
                         .frozen = is_frozen(p),
                         .adapts = is_within_adapter(p->owner),
                         .dtype = p->buffer ? p->dtype : l->g->weights,
                         .rank = p->rank,
                         .of = -1,
                         .optimizer = -1,
                         .span = p->span};
  memcpy(parameter.dim, p->dim, sizeof parameter.dim);
  p->index = (int)l->g->params.n;
  vec_push(l->arena, &l->g->params, parameter);
}

/* Adds the other names of a tied parameter, which files can contain. */
static void register_alias(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  (void)data;
  if (alias && p->index >= 0)
    vec_push(l->arena, &l->g->aliases, (ampc_alias){path, (uint32_t)p->index});
}

void register_members(Lower *l, Instance *m, const char *path, const char *model)
{
  /* the visitor takes the name as void *; nothing writes to it */
  MemberVisitor walk = {register_module, register_param, (void *)(uintptr_t)model};
  walk_members(l, m, path, &walk);
  walk_members(l, m, path, &(MemberVisitor){NULL, register_alias, NULL});
}

/* Checks that a weight that `store` quantizes is a frozen matrix of a size that has whole blocks.
 */
static bool packing_fits(Lower *l, const ParamSlot *p, const Parameter *q, const char *path)
{
  const char *type = ampc_packing_name(p->packing);
  if (p->buffer)
    return refuse(l, E209, p->pack_span,
                  "`%s` is a copy, whose values steps may assign: it cannot be %s", path, type);
  if (p->rank != 2) {
    fail(l, E209, p->pack_span, "%s stores matrices, but `%s` is %s", type, path,
         ir_sizes_text(l->arena, p->dim, p->rank));
    return diag_help(l->c,
                     "patterns name the matrices, for instance `\"**.{q,k,v,o}_proj.weight\"`; "
                     "store others in bf16"),
           false;
  }
  int64_t elements = dims_product(p->dim, p->rank);
  int64_t block = ampc_packed_of(p->packing, p->dim[0], p->dim[1]).block;
  if (elements % block != 0) {
    fail(l, E209, p->pack_span, "%s stores blocks of %lld elements, but `%s` has %lld", type,
         (long long)block, path, (long long)elements);
    return diag_help(l->c, "`store(int8, \"%s\")`", path), false;
  }
  if (q->frozen) return true;
  fail(l, E605, p->pack_span, "`%s` is trained, but %s is for frozen weights", path, type);
  if (q->adapts)
    diag_help(l->c, "it is part of an adapter: let `store` stand before `adapt`");
  else
    diag_help(l->c, "`freeze(\"%s\")`, or let `adapt` train adapters instead", path);
  return false;
}

/* Note [fixed]: a frozen weight that is stored in 16 bits needs no f32 master, because no optimizer
 * updates it. It is in BUFFER in its own type, where ops read it, and files contain it in this
 * type. For passes it is a buffer that nothing assigns. So is a quantized weight, except that files
 * contain it in f32, and that ops read it through a node that computes its values from codes and
 * scales (param_value). */
static void settle_fixed(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  (void)data;
  if (alias || p->index < 0) return;
  Parameter *q = &l->g->params.at[p->index];
  if (p->packing && !packing_fits(l, p, q, path)) p->packing = AMPC_UNPACKED;
  if (p->packing && !l->c->options.real64 && !l->c->options.whole_weights) {
    q->fixed = q->buffer = true;
    q->packing = p->packing;
    q->dtype = AMPC_F32;
  }
  if (p->buffer || q->fixed) return;
  if (l->c->options.real64 || !q->frozen || q->dtype != AMPC_F32 || !ampc_is_narrow(p->store))
    return;
  q->fixed = q->buffer = true;
  q->dtype = p->store;
}

/* ---- clauses ---- */

typedef struct InitClause {
  const Init *init;
  Span span;
} InitClause;

static void apply_init(Lower *l, ParamSlot *p, void *data)
{
  const InitClause *clause = data;
  (void)l;
  p->init = clause->init;
  p->init_span = clause->span;
}

/* Resolves the initialiser of a parameter: initial values depend on its shape. */
static void resolve_param(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  (void)path, (void)data;
  if (alias || p->index < 0) return;
  ampc_init *init = &l->g->params.at[p->index].init;
  if (!p->copy_of) {
    init_resolve(l, p->init, p, p->init_span, init);
  } else if (p->copy_of->index < 0) {
    fail(l, E210, p->init_span, "this copies a module that belongs to no model");
    diag_help(l->c, "copy a model or a part of one: `copy(net)`");
  } else {
    *init = (ampc_init){.kind = AMPC_INIT_COPY, .a = p->copy_of->index};
  }
}

static void apply_frozen(Lower *l, ParamSlot *p, void *data)
{
  if (p->index < 0) return;
  l->g->params.at[p->index].frozen = *(const bool *)data;
  l->g->params.at[p->index].trains = !*(const bool *)data;
}

typedef struct StoreClause {
  DType type; /* f32 if the values are quantized */
  ampc_packing packing;
  Span span;
} StoreClause;

/* Sets the stored type, except for buffers: in 16 bits most running updates would be lost. */
static void apply_store(Lower *l, ParamSlot *p, void *data)
{
  const StoreClause *clause = data;
  (void)l;
  if (!param_is_weight(p)) return;
  p->store = clause->type;
  p->packing = clause->packing;
  p->pack_span = clause->span;
}

/* Returns how a type of `store` quantizes: int8 and nf4 are no types of values. */
static ampc_packing packing_of(Datum type)
{
  ampc_packing i = AMPC_NF4;
  while (i && (type.kind != D_word || strcmp(type.as.text, ampc_packing_name(i)) != 0)) i--;
  return i;
}

Match match_of(Lower *l, const Model *model)
{
  Match m = {.owner = model->name, .broken = model->broken};
  Datum root = {.kind = D_instance, .as.instance = model->root};
  vec_push(l->arena, &m.roots, (Root){root, ""});
  return m;
}

/* Applies `init("**.bias", zeros_())`. `init(Conv2d, kaiming_normal_())` skips biases. */
static void clause_init(Lower *l, Model *model, const Args *args)
{
  uint32_t n = args->at.n;
  if (n < 2 || args->at.at[n - 1].value.kind != D_init) {
    fail(l, E205, args->span, "`init` takes patterns and then an initialiser");
    diag_help(l->c, "`init(\"**.bias\", zeros_())`");
    return;
  }
  InitClause clause = {args->at.at[n - 1].value.as.init, args->at.at[n - 1].span};
  Match m = match_of(l, model);
  m.initial = true;
  m.param = apply_init;
  m.data = &clause;
  match_patterns(l, &m, args->at.at, n - 1);
}

/* Applies `freeze("encoder.**")` or `unfreeze("encoder.head")`. */
static void clause_freeze(Lower *l, Model *model, const Args *args, bool frozen)
{
  if (!args->at.n) {
    fail(l, E205, args->span, "`%s` takes patterns", frozen ? "freeze" : "unfreeze");
    return;
  }
  Match m = match_of(l, model);
  m.param = apply_frozen;
  m.data = &frozen;
  match_patterns(l, &m, args->at.at, args->at.n);
}

/* Applies `store(f16, "embedding")` or `store(nf4, "**.q_proj.weight")`. */
static void clause_store(Lower *l, Model *model, const Args *args)
{
  StoreClause clause = {.type = AMPC_F32, .span = args->span};
  if (args->at.n < 2) {
    fail(l, E205, args->span, "`store` takes a type and then patterns");
    diag_help(l->c, "`store(bf16, \"embedding\")`");
    return;
  }
  const ArgValue *type = &args->at.at[0];
  clause.packing = packing_of(type->value);
  if (!clause.packing && !want_store(l, type->value, type->span, &clause.type)) return;
  if (!clause.packing && !store_fits(l, clause.type, type->span)) return;
  Match m = match_of(l, model);
  m.param = apply_store;
  m.data = &clause;
  match_patterns(l, &m, args->at.at + 1, args->at.n - 1);
}

static void unknown_clause(Lower *l, Span span)
{
  fail(l, E210, span, "this is no clause of a model");
  diag_help(l->c, "clauses are load, init, adapt, freeze, unfreeze, autocast, store");
}

/* Runs a clause. It looks like a call, but only the braces of a model know its name. */
static void model_clause(Lower *l, Scope *s, Model *model, const Stmt *st)
{
  if (st->kind == STMT_autocast) {
    clause_pins(l, s, model, st);
    return;
  }
  const Expr *e = st->kind == STMT_expr ? st->as.value : NULL;
  const char *name = called_name(e);
  if (!*name) {
    unknown_clause(l, st->span);
    return;
  }
  Args args = {.span = e->span};
  if (strcmp(name, "adapt") == 0 && adapt_is_built(l, e)) return;
  if (!eval_args(l, s, &e->as.call.args, &args)) return;
  if (strcmp(name, "load") == 0) {
    l->loading = model;
    library_call(l, "load", &args);
    l->loading = NULL;
  } else if (strcmp(name, "store") == 0)
    clause_store(l, model, &args);
  else if (strcmp(name, "init") == 0)
    clause_init(l, model, &args);
  else if (strcmp(name, "adapt") == 0)
    clause_adapt(l, model, &args);
  else if (strcmp(name, "freeze") == 0 || strcmp(name, "unfreeze") == 0)
    clause_freeze(l, model, &args, name[0] == 'f');
  else
    unknown_clause(l, e->as.call.callee->span);
}

/* Declares `model net = MLP(512) { clauses }`. Only parameters below a model get memory. If code
 * uses a module outside of any model, param_value() reports it. */
Datum declare_model(Lower *l, File *f, const Decl *decl)
{
  const char *name = decl->name.text;
  Scope *s = scope_new(l, NULL, f, NULL);
  uint32_t errors = diag_error_count(l->c);
  Datum v = eval(l, s, decl->as.object.value);
  bool broken = diag_error_count(l->c) != errors;
  l->broken = l->broken || broken;
  if (d_is(v, D_error)) return v;
  if (v.kind != D_instance) {
    fail(l, E209, decl->as.object.value->span, "a model needs a module, got %s", d_kind_text(l, v));
    if (v.kind == D_class) diag_help(l->c, "build it: `%s()`", v.as.class->name);
    return d_of(D_error);
  }
  Instance *root = v.as.instance;
  if (root->owner || root->path)
    return fail(l, E504, decl->as.object.value->span, "this module is already part of a model");
  root->path = "";
  root->model = root->layer = name;
  register_layer(l, root);
  register_members(l, root, "", name);
  Model model = {name, root, broken || l->broken_consts, false};
  vec_push(l->arena, &l->models, model);
  for (uint32_t i = 0; i < decl->as.object.clauses.n; i++)
    model_clause(l, s, &model, decl->as.object.clauses.at[i]);
  walk_members(l, root, "", &(MemberVisitor){NULL, resolve_param, NULL});
  walk_members(l, root, "", &(MemberVisitor){NULL, settle_fixed, NULL});
  if (model.adapts) adapters_settle(l, &model);
  return v;
}

/* Adds the model's name to paths if the job has several models, so that names in checkpoints
 * differ. */
void prefix_paths(Lower *l)
{
  Graph *g = l->g;
  bool several = false;
  for (uint32_t i = 1; i < g->params.n; i++)
    several = several || strcmp(g->params.at[i].model, g->params.at[0].model) != 0;
  if (!several) return;
  g->adapter = NULL; /* PEFT's files are about one model */
  for (uint32_t i = 0; i < g->aliases.n; i++) {
    ampc_alias *a = &g->aliases.at[i];
    a->path = arena_printf(l->arena, "%s.%s", g->params.at[a->param].model, a->path);
  }
  for (uint32_t i = 0; i < g->params.n; i++) {
    Parameter *p = &g->params.at[i];
    p->path = arena_printf(l->arena, "%s.%s", p->model, p->path);
  }
  for (uint32_t i = 0; i < g->loads.n; i++)
    g->loads.at[i].prefix = arena_printf(l->arena, "%s.", g->loads.at[i].model);
}
