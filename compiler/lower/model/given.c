/* Calls of a module with other values than those of its parameters: functional_call(), which takes
 * them from the job, and `.ema()`, which takes the averages that an optimizer keeps. */
#include "model.h"
#include "compiler/graph/shares.h"

/* ---- functional_call ---- */

typedef struct Given {
  const char *path;
  ParamSlot *param; /* NULL: not found */
  NameVec paths;    /* of all parameters, for a suggestion */
} Given;

static void try_path(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  Given *g = data;
  (void)alias;
  vec_push(l->arena, &g->paths, path);
  if (strcmp(path, g->path) == 0) g->param = p;
}

/* Gives the parameter that a pair names its value. Returns the parameter; NULL after a message. */
static ParamSlot *give(Lower *l, Instance *m, Datum pair, Span span)
{
  if (pair.kind != D_list || pair.n != 2 || pair.as.list[0].kind != D_str) {
    fail(l, E209, span, "`functional_call` takes pairs of a path and a tensor, got %s",
         d_kind_text(l, pair));
    diag_help(l->c, "`functional_call(layer, [[\"weight\", w], [\"bias\", b]], x)`");
    return NULL;
  }
  Given g = {.path = pair.as.list[0].as.text};
  walk_members(l, m, "", &(MemberVisitor){NULL, try_path, &g});
  if (!g.param) {
    fail(l, E501, span, "%s has no parameter `%s`", m->class->name, g.path);
    const char *near = diag_nearest(g.path, g.paths.at, g.paths.n);
    if (near) diag_help(l->c, "did you mean \"%s\"?", near);
    return NULL;
  }
  Value v = as_tensor(l, pair.as.list[1], span);
  if (!v.id) return NULL;
  const Node *n = ir_node(l->g, v);
  ParamSlot *p = g.param;
  if (p->given.id) {
    fail(l, E205, span, "`functional_call` gets `%s` twice", g.path);
  } else if (n->rank != p->rank || memcmp(n->dim, p->dim, p->rank * sizeof *p->dim) != 0) {
    fail(l, E311, span, "`%s` of %s is %s, the tensor is %s", g.path, m->class->name,
         d_text(l, (Datum){.kind = D_param, .as.param = p}), d_text(l, d_tensor(v)));
    diag_note(l->c, p->span, "it is made here");
  } else {
    p->given = v;
    return p;
  }
  return NULL;
}

/* Runs functional_call(module, pairs, ...): module(...) with the given tensors as parameters. */
static Datum run_functional_call(Lower *l, Args *args)
{
  const ArgValue *a = args->at.at;
  for (uint32_t i = 0; i < args->at.n; i++)
    if (d_is(a[i].value, D_error)) return a[i].value;
  if (a[0].value.kind != D_instance || a[1].value.kind != D_list)
    return fail(l, E209, args->span, "`functional_call` takes a module and a list, got %s and %s",
                d_kind_text(l, a[0].value), d_kind_text(l, a[1].value));
  Instance *m = a[0].value.as.instance;
  VEC(ParamSlot *) given = {0};
  Args rest = {.span = args->span};
  for (uint32_t i = 2; i < args->at.n; i++) vec_push(l->arena, &rest.at, a[i]);
  bool good = true;
  for (uint32_t i = 0; i < a[1].value.n && good; i++) {
    ParamSlot *p = give(l, m, a[1].value.as.list[i], a[1].span);
    good = p != NULL;
    if (good) vec_push(l->arena, &given, p);
  }
  Datum v = good ? call(l, a[0].value, &rest) : d_of(D_error);
  for (uint32_t i = 0; i < given.n; i++) given.at[i]->given = (Value){0};
  return v;
}

const Native given_natives[] = {
    {"functional_call", 2, ANY_NUMBER, .keys = true, .run = run_functional_call}, {0}};

/* ---- averages ---- */

typedef struct Weights {
  bool own, copied;
} Weights;

static void find_weights(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  Weights *w = data;
  (void)l, (void)path, (void)alias;
  w->own = w->own || !p->buffer;
  w->copied = w->copied || (p->copy_of && param_is_weight(p));
}

/* Returns `net.ema()`: the averaged module, whose calls read averages. */
Datum average_module(Lower *l, Instance *m, Span span)
{
  Weights w = {false, false};
  walk_members(l, m, "", &(MemberVisitor){NULL, find_weights, &w});
  if (w.copied && !w.own)
    return fail(l, E210, span,
                "this is a copy, which no optimizer averages: `.ema()` reads the "
                "averages of the model that it copies");
  Instance *average = arena_new(l->arena, Instance);
  *average = *m;
  average->of = m;
  average->evaluating = false;
  return (Datum){.kind = D_instance, .as.instance = average};
}

/* Calls an averaged module, or a method of it. */
Datum average_call(Lower *l, const Instance *average, Datum callee, Args *args)
{
  bool training = l->training;
  Span outer = l->averages;
  l->averages = diag_user_span(l->c, args->span);
  if (average->evaluating) l->training = false;
  if (callee.kind == D_instance) callee.as.instance = average->of;
  Datum v = call(l, callee, args);
  l->averages = outer;
  l->training = training;
  return v;
}

/* Returns what a value is in an averaged module: a module is averaged, too; a parameter is its
 * average. */
static Datum averaged(Lower *l, Datum v, Span span)
{
  if (v.kind == D_instance) return average_module(l, v.as.instance, span);
  if (v.kind == D_list && d_contains(v, D_instance)) {
    DatumVec items = {0};
    for (uint32_t i = 0; i < v.n; i++) vec_push(l->arena, &items, averaged(l, v.as.list[i], span));
    return d_list_of(l, &items);
  }
  if (v.kind != D_param) return v;
  Value x = as_tensor(l, v, span);
  return x.id ? d_tensor(x) : d_of(D_error);
}

/* Returns a member of an averaged module. A parametrized weight is computed from averages. */
Datum average_member(Lower *l, const Binding *b, Span span)
{
  Span outer = l->averages;
  l->averages = diag_user_span(l->c, span);
  Datum v = averaged(l, binding_value(l, b, span), span);
  l->averages = outer;
  return v;
}

/* Reports reads of averages that no optimizer keeps. Call it when all optimizers are known. */
void check_averages_kept(Lower *l)
{
  for (uint32_t id = 1; id < l->g->nodes.n; id++) {
    const Node *n = ir_node(l->g, (Value){id});
    if (n->op != OP_param || !attr_int(n, "average")) continue;
    uint32_t index = (uint32_t)attr_int(n, "index");
    const Parameter *p = &l->g->params.at[index];
    if (share_average(l->g, index) >= 0) continue;
    fail(l, E210, n->span, "`.ema()` reads the average of `%s`, which no optimizer keeps", p->path);
    diag_help(l->c,
              p->optimizer < 0 ? "train `%s` with an optimizer that has `ema=0.999`"
                               : "add `ema=0.999` to `optimizer %s`",
              p->optimizer < 0 ? p->model : l->g->optimizers.at[p->optimizer].name);
    return;
  }
}
